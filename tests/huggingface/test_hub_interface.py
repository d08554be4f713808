"""Models in Python: the same features and probabilities as transformers, from released folders and from checkpoints."""

import shutil
from pathlib import Path

import pytest
import torch
from fairseq.data.data_utils import collate_tokens
from files import refused
from huggingface_models import PIECES, write_vocabulary

from tn_fairseq import from_pretrained
from tn_fairseq.core.checkpoints import load_checkpoint, save_checkpoint
from tn_fairseq.core.errors import InputError
from tn_fairseq.huggingface.importing import import_model
from tn_fairseq.models import BertModel, ElectraModel

transformers = pytest.importorskip("transformers")
families = pytest.mark.parametrize("family", ["bert", "electra"])
TEXT, PAIR = "noun1 the [MASK] verb30s", ("the noun1s verb2", "adjective3 noun4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, released, wordpiece_bin) -> Path:
    """Released models, and the same models as checkpoints."""
    folder = tmp_path_factory.mktemp("hub") / "released"
    shutil.copytree(released, folder)
    (folder / "discriminator").rename(folder / "electra")
    import_model(folder / "bert", wordpiece_bin, folder / "bert.pt")
    import_model(folder / "electra", wordpiece_bin, folder / "electra.pt", folder / "generator")
    return folder


@pytest.fixture(params=["released", "checkpoint"])
def load(request, folder):
    def load_one(family: str):
        if request.param == "checkpoint":
            return from_pretrained(folder, f"{family}.pt")
        generator = {"generator": folder / "generator"} if family == "electra" else {}
        return from_pretrained(folder / family, **generator)

    return load_one


@torch.no_grad()
def run(kind: str, folder: Path, *text: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids (T) and the first output of a class of ``transformers``, without its batch dimension."""
    batch = transformers.AutoTokenizer.from_pretrained(folder)(*text, return_tensors="pt")
    return batch["input_ids"][0], getattr(transformers, kind).from_pretrained(folder).eval()(**batch)[0][0]


@families
def test_fill_mask_gives_the_words_and_probabilities_of_transformers(load, folder, family):
    ids, logits = run("AutoModelForMaskedLM", folder / ("bert" if family == "bert" else "generator"), TEXT)
    expected = logits[ids == PIECES.index("[MASK]")][0].softmax(dim=-1).topk(len(PIECES))
    found = load(family).fill_mask(TEXT.replace("[MASK]", "<mask>"), topk=len(PIECES))
    probabilities = torch.tensor([filled.probability for filled in found])
    torch.testing.assert_close(probabilities, expected.values, atol=1e-6, rtol=1e-4)
    for filled, index in list(zip(found, expected.indices.tolist()))[:20]:
        piece = PIECES[index]
        if piece not in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"):
            assert filled.token == piece.removeprefix("##")
            before = "noun1 the" if piece.startswith("##") else "noun1 the "
            assert filled.text == f"{before}{filled.token} verb30s"
    assert load(family).fill_mask(TEXT) == found[:5]


@families
def test_features_of_a_pair_are_those_of_transformers(load, folder, family):
    ids, features = run("AutoModel", folder / family, *PAIR)
    interface = load(family)
    tokens = interface.encode(*PAIR)
    assert [interface.dictionary[token] for token in tokens] == [
        {"[CLS]": "<s>", "[SEP]": "</s>"}.get(PIECES[index], PIECES[index]) for index in ids
    ]
    torch.testing.assert_close(interface.extract_features(tokens)[0], features, atol=1e-5, rtol=1e-4)
    assert interface.decode(tokens) == list(PAIR)

    other = interface.encode("noun9")
    batch = collate_tokens([tokens, other], interface.dictionary.pad())
    together = interface.extract_features(batch)
    torch.testing.assert_close(together[0], features, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(together[1, : len(other)], interface.extract_features(other)[0], atol=1e-5, rtol=1e-4)
    assert interface.decode(batch[1]) == "noun9"


def test_the_features_of_the_generator(load, folder):
    _, features = run("ElectraModel", folder / "generator", "noun1 verb2")
    interface = load("electra")
    found = interface.extract_features(interface.encode("noun1 verb2"), encoder="generator")
    torch.testing.assert_close(found[0], features, atol=1e-5, rtol=1e-4)


def test_probabilities_of_replacement_are_those_of_transformers(load, folder):
    _, logits = run("ElectraForPreTraining", folder / "electra", "noun1 verb2s verb3")
    found = load("electra").replaced_probabilities("noun1 verb2s verb3")
    assert [token for token, _ in found] == ["noun1", "verb2", "s", "verb3"]
    torch.testing.assert_close(torch.tensor([p for _, p in found]), logits[1:-1].sigmoid(), atol=1e-6, rtol=1e-4)


def test_predictions_have_no_dropout_and_training_mode_is_kept(load):
    interface = load("electra")
    filled, replaced = interface.fill_mask(TEXT), interface.replaced_probabilities("noun1")
    assert not interface.model.training
    interface.train()
    assert (interface.fill_mask(TEXT), interface.replaced_probabilities("noun1")) == (filled, replaced)
    assert interface.model.training


# Invalid input


def test_texts_and_numbers_that_do_not_fit(folder):
    bert = from_pretrained(folder / "bert")
    for masks in (0, 2):
        with pytest.raises(InputError, match=f"^the text has {masks} masks; give exactly one <mask>.*$"):
            bert.fill_mask("noun1 " + "<mask> [MASK]" * (masks > 0))
    for topk in (0, len(PIECES) + 1):
        with pytest.raises(InputError, match=f"topk must be between 1 and {len(PIECES)}, .*, not {topk}"):
            bert.fill_mask(TEXT, topk)
    with pytest.raises(InputError, match="longer than the model's 512 positions"):
        bert.extract_features(bert.encode("noun1 " * 600))


def test_what_a_released_model_lacks_is_not_made_up(folder, tmp_path):
    """A newly initialized head would give meaningless predictions."""
    bert, electra = from_pretrained(folder / "alone"), from_pretrained(folder / "electra")
    assert bert.extract_features(bert.encode("noun1")).shape == (1, 3, 32)
    with pytest.raises(InputError, match="no masked_lm_head to fill in masks; give a model that was saved with"):
        bert.fill_mask(TEXT)
    assert len(electra.replaced_probabilities("noun1")) == 1
    with pytest.raises(InputError, match="no generator_head to fill in masks; also give .* generator="):
        electra.fill_mask(TEXT)
    with pytest.raises(InputError, match="no generator to compute its features; also give"):
        electra.extract_features(electra.encode("noun1"), encoder="generator")
    encoder = transformers.ElectraModel.from_pretrained(folder / "electra")
    encoder.save_pretrained(write_vocabulary(tmp_path))
    with pytest.raises(InputError, match="no discriminator_head to detect replaced tokens; give a discriminator"):
        from_pretrained(tmp_path).replaced_probabilities("noun1")


def test_arguments_that_do_not_fit_are_refused(folder):
    with pytest.raises(InputError, match="config.json: No such file.*; give a folder of save_pretrained"):
        from_pretrained(folder)
    with pytest.raises(InputError, match="generator: only for a folder of save_pretrained; a checkpoint has its own"):
        from_pretrained(folder, "electra.pt", generator=folder / "generator")
    with pytest.raises(InputError, match="data_name_or_path: only for a checkpoint_file; a folder of save_pretrained"):
        from_pretrained(folder / "bert", data_name_or_path=folder)
    for model in (BertModel, ElectraModel):  # whose method in fairseq would unpickle the file
        with pytest.raises(InputError, match=r"load the model with tn_fairseq.from_pretrained\(\.\.\.\)"):
            model.from_pretrained(folder, "bert.pt")


HEAD = {"classification_heads.a.output.bias": torch.zeros(2)}


# changes of the parameters, the task and the model's configuration
@pytest.mark.parametrize(
    ("parameters", "task", "model", "expected"),
    [
        (HEAD, {}, {}, "is fine-tuned; give a checkpoint of pre-training"),
        ({"dictionary_fingerprint": torch.zeros(32).byte()}, {}, {}, "the model of another dictionary"),
        ({}, {"data": "nowhere"}, {}, "its data, nowhere, no longer exists; give its new folder with data_name_or"),
        ({}, {}, {"encoder_layers": 3}, "changed.pt: *encoder.layers.2.attention.output.bias is missing there"),
    ],
)
def test_checkpoints_that_do_not_fit_raise_errors_and_never_exit(folder, tmp_path, parameters, task, model, expected):
    state = load_checkpoint(folder / "bert.pt")
    state["model"].update(parameters)
    state["cfg"]["task"].update(task)
    state["cfg"]["model"].update(model)
    save_checkpoint(state, tmp_path / "changed.pt")
    message = refused(from_pretrained, tmp_path, "changed.pt")
    assert all(part in message for part in expected.split("*")) and not message.startswith("error: ")
