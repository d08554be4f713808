"""Parity: our logits match those of ``transformers``, and a round trip preserves every bit."""

from pathlib import Path

import pytest
import torch
from fairseq import tasks
from fairseq.checkpoint_utils import load_checkpoint_to_cpu, load_model_ensemble
from huggingface_models import PIECES, make_bert, make_electra, save_models
from omegaconf import OmegaConf

from tn_fairseq.huggingface.exporting import export_model
from tn_fairseq.huggingface.importing import import_model
from tn_fairseq.huggingface.vocabulary_files import read_data_bin
from tn_fairseq.models import ElectraModel

transformers = pytest.importorskip("transformers")
TOLERANCE = 1e-5


def load_ours(checkpoint: Path):
    task = tasks.setup_task(load_checkpoint_to_cpu(str(checkpoint))["cfg"]["task"])
    (model,), _ = load_model_ensemble([str(checkpoint)], task=task)
    return model.eval()


@torch.no_grad()
def differences(data_bin: Path, checkpoint: Path, masked_lm=None, detector=None, encoder=None) -> dict[str, float]:
    """The largest absolute difference between our logits and features and theirs, over the tokens of padded pairs."""
    (dictionary, tokenizer), (rows, length) = read_data_bin(data_bin), (3, 12)
    token_ids = torch.from_numpy(tokenizer.token_ids(dictionary))
    ours = torch.randint(len(dictionary), (rows, length), generator=torch.Generator().manual_seed(5))
    ours[ours == dictionary.pad()] = dictionary.unk()
    types = (torch.arange(length) >= length // 2).long().repeat(rows, 1)
    for row in range(1, rows):
        ours[row, length - 3 * row :] = dictionary.pad()
    is_token = ours.ne(dictionary.pad())
    theirs = {"input_ids": token_ids[ours], "token_type_ids": types, "attention_mask": is_token.long()}
    model = load_ours(checkpoint)
    pairs = {}
    if masked_lm is not None:
        pairs["masked LM"] = model(ours, token_types=types)[0], masked_lm(**theirs).logits[..., token_ids]
    hidden = model(ours, token_types=types, features_only=True)[0]
    if encoder is not None:
        pairs["features"] = hidden, encoder(**theirs).last_hidden_state
    if detector is not None:
        pairs["detection"] = model.discriminator_head(hidden), detector(**theirs).logits
    return {name: (one - other)[is_token].abs().max().item() for name, (one, other) in pairs.items()}


def assert_same_parameters(one: Path, other: Path) -> None:
    ours, theirs = (torch.load(path, weights_only=True)["model"] for path in (one, other))
    assert ours.keys() == theirs.keys()
    # transformers does not record how long the sequences were: an import assumes that all positions were trained
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] in ([], ["trained_positions"])


def assert_loads_alike(exported: Path, model) -> None:
    """``transformers`` loads the exported folder with the class, parameters and sizes of the original."""
    loaded, info = type(model).from_pretrained(exported, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]
    state = model.state_dict()
    assert all(torch.equal(tensor, state[name]) for name, tensor in loaded.state_dict().items())
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    sizes += ("max_position_embeddings", "type_vocab_size", "layer_norm_eps", "hidden_act", "pad_token_id")
    assert {key: getattr(loaded.config, key) for key in sizes} == {key: getattr(model.config, key) for key in sizes}


def round_trip(folder: Path, data_bin: Path, models: dict) -> dict[str, float]:
    """Convert theirs -> ours -> theirs -> ours, check that no tensor changes, and return the differences of logits."""
    save_models(folder, models)
    checkpoint = folder / "imported.pt"
    if "bert" in models:
        import_model(folder / "bert", data_bin, checkpoint)
        found = differences(data_bin, checkpoint, models["bert"])
    else:
        import_model(folder / "discriminator", data_bin, checkpoint, generator=folder / "generator")
        found = differences(data_bin, checkpoint, models["generator"], models["discriminator"])
    export_model(checkpoint, folder / "exported")
    for name, model in models.items():
        assert_loads_alike(folder / "exported" / ("" if name == "bert" else name), model)
    generator = folder / "exported" / "generator" if "generator" in models else None
    import_model(folder / "exported" / ("discriminator" if generator else ""), data_bin, folder / "again.pt", generator)
    assert_same_parameters(checkpoint, folder / "again.pt")
    return found


# the widths of google/electra-small and bert-base-uncased, with fewer layers and pieces
SMALL = {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024, "embedding_size": 128}
SMALL["generator_sizes"] = {"hidden_size": 64, "num_attention_heads": 1, "intermediate_size": 256}
BASE = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "num_hidden_layers": 1}


@pytest.mark.parametrize("sizes", [{"embedding_size": 32}, SMALL])
def test_electra_of_transformers_survives_a_round_trip(tmp_path, wordpiece_bin, sizes):
    """Embeddings of the same size as the discriminator, and real sizes, which each encoder projects."""
    models = dict(zip(("discriminator", "generator"), make_electra(len(PIECES), **sizes)))
    found = round_trip(tmp_path, wordpiece_bin, models)
    assert found.keys() == {"masked LM", "detection"} and max(found.values()) < TOLERANCE, found


def test_bert_of_transformers_survives_a_round_trip(tmp_path, wordpiece_bin):
    found = round_trip(tmp_path, wordpiece_bin, {"bert": make_bert(len(PIECES), **BASE)})
    assert found.keys() == {"masked LM"} and max(found.values()) < TOLERANCE, found


@pytest.mark.parametrize("embedding_size", [None, 24, 40])
def test_a_frozen_generator_is_exported_with_its_own_embeddings(tmp_path, wordpiece_bin, released, embedding_size):
    """Of the same size as the discriminator's, which it projects; of the generator's own size; and of another."""
    import_model(released / "discriminator", wordpiece_bin, tmp_path / "imported.pt", released / "generator")
    state = torch.load(tmp_path / "imported.pt", weights_only=True)
    state["cfg"]["model"] |= {"freeze_generator": True, "generator_embedding_size": embedding_size}
    dictionary, _ = read_data_bin(wordpiece_bin)
    model = ElectraModel(OmegaConf.create(state["cfg"]["model"]), dictionary)
    for parameter in model.parameters():
        parameter.data.normal_(std=0.1)
    state["model"] = model.state_dict()
    torch.save(state, tmp_path / "frozen.pt")
    discriminator, generator = export_model(tmp_path / "frozen.pt", tmp_path / "exported")
    masked_lm = transformers.AutoModelForMaskedLM.from_pretrained(generator).eval()
    detector = transformers.AutoModelForPreTraining.from_pretrained(discriminator).eval()
    assert masked_lm.config.embedding_size == (embedding_size or 16) and detector.config.embedding_size == 16
    found = differences(wordpiece_bin, tmp_path / "frozen.pt", masked_lm, detector)
    assert max(found.values()) < TOLERANCE, found


def test_bert_as_electra_has_the_features_and_logits_of_bert(tmp_path, wordpiece_bin, released):
    """The discriminator has BERT's features, the copy BERT's logits, and so have both in transformers after export."""
    checkpoint, folder = tmp_path / "imported.pt", released / "bert"
    import_model(folder, wordpiece_bin, checkpoint, generator=folder, as_electra=True)
    masked_lm = transformers.BertForMaskedLM.from_pretrained(folder).eval()
    found = differences(wordpiece_bin, checkpoint, masked_lm, encoder=masked_lm.bert)
    assert max(found.values()) < TOLERANCE, found

    export_model(checkpoint, tmp_path / "exported")
    detector = transformers.ElectraForPreTraining.from_pretrained(tmp_path / "exported" / "discriminator").eval()
    generator = transformers.ElectraForMaskedLM.from_pretrained(tmp_path / "exported" / "generator").eval()
    found = differences(wordpiece_bin, checkpoint, generator, detector, detector.electra)
    assert found.keys() == {"masked LM", "features", "detection"} and max(found.values()) < TOLERANCE, found
