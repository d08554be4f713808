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
from tn_fairseq.huggingface.importing import import_model
from tn_fairseq.models import BertModel

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


def test_features_of_the_generator_and_detection_are_those_of_transformers(load, folder):
    text, interface = "noun1 verb2s verb3", load("electra")
    _, features = run("ElectraModel", folder / "generator", text)
    found = interface.extract_features(interface.encode(text), encoder="generator")
    torch.testing.assert_close(found[0], features, atol=1e-5, rtol=1e-4)
    _, logits = run("ElectraForPreTraining", folder / "electra", text)
    found = interface.replaced_probabilities(text)
    assert [token for token, _ in found] == ["noun1", "verb2", "s", "verb3"]
    torch.testing.assert_close(torch.tensor([p for _, p in found]), logits[1:-1].sigmoid(), atol=1e-6, rtol=1e-4)
    # predictions have no dropout, and training mode is kept
    filled = interface.fill_mask(TEXT)
    assert not interface.model.training
    interface.train()
    assert (interface.fill_mask(TEXT), interface.replaced_probabilities(text)) == (filled, found)
    assert interface.model.training


# Invalid input


def encoder_alone(folder: Path) -> Path:
    """ELECTRA's discriminator without its head."""
    encoder = transformers.ElectraModel.from_pretrained(folder / "electra")
    encoder.save_pretrained(write_vocabulary(folder / "encoder"))
    return folder / "encoder"


def test_what_does_not_fit_is_refused_and_what_a_model_lacks_is_not_made_up(folder):
    """A newly initialized head would give meaningless predictions."""
    bert, alone, electra = (from_pretrained(folder / name) for name in ("bert", "alone", "electra"))
    assert alone.extract_features(alone.encode("noun1")).shape == (1, 3, 32)
    assert len(electra.replaced_probabilities("noun1")) == 1
    for named, call in (
        ("<mask>", lambda: bert.fill_mask("noun1 <mask> [MASK]")),
        ("topk", lambda: bert.fill_mask(TEXT, len(PIECES) + 1)),
        ("512 positions", lambda: bert.extract_features(bert.encode("noun1 " * 600))),
        ("masked_lm_head", lambda: alone.fill_mask(TEXT)),
        ("generator=", lambda: electra.fill_mask(TEXT)),
        ("discriminator_head", lambda: from_pretrained(encoder_alone(folder)).replaced_probabilities("noun1")),
        ("config.json", lambda: from_pretrained(folder)),
        ("generator", lambda: from_pretrained(folder, "electra.pt", generator=folder / "generator")),
        ("data_name_or_path", lambda: from_pretrained(folder / "bert", data_name_or_path=folder)),
        # whose method in fairseq would unpickle the file
        ("from_pretrained", lambda: BertModel.from_pretrained(folder, "bert.pt")),
    ):
        assert named in refused(call)


HEAD = {"classification_heads.a.output.bias": torch.zeros(2)}


# changes of the parameters, the task and the model's configuration
@pytest.mark.parametrize(
    ("parameters", "task", "model", "named"),
    [
        (HEAD, {}, {}, "fine-tuned"),
        ({"dictionary_fingerprint": torch.zeros(32).byte()}, {}, {}, "dictionary"),
        ({}, {"data": "nowhere"}, {}, "data_name_or_path"),
        ({}, {}, {"encoder_layers": 3}, "encoder.layers.2."),
    ],
)
def test_checkpoints_that_do_not_fit_raise_errors_and_never_exit(folder, tmp_path, parameters, task, model, named):
    state = load_checkpoint(folder / "bert.pt")
    state["model"].update(parameters)
    state["cfg"]["task"].update(task)
    state["cfg"]["model"].update(model)
    save_checkpoint(state, tmp_path / "changed.pt")
    message = refused(from_pretrained, tmp_path, "changed.pt")
    assert named in message and not message.startswith("error: ")
