"""Export: the contents of the folders, the model card, and rejected input."""

import shutil
from pathlib import Path

import pytest
import torch
from helpers import FAMILIES, prepare_training, write_table
from huggingface_models import PIECES, make_bert, refusal, save_models, write_bin, write_vocabulary

from tn_fairseq.__main__ import main
from tn_fairseq.core.checkpoints import load_checkpoint
from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.huggingface.exporting import export_model
from tn_fairseq.huggingface.model_card import model_card

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory, wordpiece_bin) -> Path:
    """ELECTRA after two updates with hard correction."""
    folder = tmp_path_factory.mktemp("trained")
    dictionary = load_dictionary(wordpiece_bin / "dict.txt")
    table = write_table(folder / "synonyms.safetensors", dictionary, {"noun1": ["noun2"]})
    flags = [*FAMILIES["electra"].split(), "--criterion", "mlm_hard_correction", "--synonym-table", table]
    flags += ["--hard-correction-weight", 0.25, "--max-update", 2]
    prepare_training(wordpiece_bin, folder / "save", *flags)()
    return folder / "save" / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def exported(checkpoint, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "electra"
    export_model(checkpoint, folder)
    return folder


def test_the_auto_classes_fine_tune_and_tokenize(exported, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    classifier, info = transformers.AutoModelForSequenceClassification.from_pretrained(
        exported / "generator", output_loading_info=True, num_labels=3
    )
    assert all(name.startswith("classifier.") for name in info["missing_keys"])

    tokenizer = transformers.AutoTokenizer.from_pretrained(exported / "generator")
    batch = tokenizer(["the noun1 verb2", "noun3"], ["noun4s", "unheard-of"], padding=True, return_tensors="pt")
    assert batch["input_ids"][1].tolist()[:3] == [PIECES.index(piece) for piece in ("[CLS]", "noun3", "[SEP]")]
    assert batch["token_type_ids"][0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert classifier.eval()(**batch).logits.shape == (2, 3)


def test_an_imported_model_with_odd_pieces_is_exported_as_it_was(tmp_path, capsys):
    pieces = [*PIECES, "the", "\u2028", "a b", "<s>", PIECES[7], "<unk>"]  # two are repeated
    model = make_bert(len(pieces))
    save_models(tmp_path, {"released": model}, pieces)
    data = write_bin(tmp_path, tmp_path / "released")
    main(["import", str(tmp_path / "released"), "--data", str(data), "--output", str(tmp_path / "bert.pt")])
    assert "removed: the rows of 2 token ids without a piece" in capsys.readouterr().out
    export_model(tmp_path / "bert.pt", tmp_path / "exported")
    assert "imported weights" in (tmp_path / "exported" / "README.md").read_text()
    released, exported = (
        transformers.AutoTokenizer.from_pretrained(tmp_path / name) for name in ("released", "exported")
    )
    assert exported.get_vocab() == released.get_vocab()
    again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "exported").eval()
    assert again.config.vocab_size == len(pieces)
    batch = released("the noun1 [MASK] the verb2", return_tensors="pt")
    gone = [5, 7]
    ours, theirs = (one.eval()(**batch).logits.detach() for one in (again, model))
    torch.testing.assert_close(ours[..., gone], torch.full_like(ours[..., gone], -10_000))
    kept = [index for index in range(len(pieces)) if index not in gone]
    torch.testing.assert_close(ours[..., kept], theirs[..., kept], atol=1e-5, rtol=0)
    main(["import", str(tmp_path / "exported"), "--data", str(data), "--output", str(tmp_path / "again.pt")])


def test_half_precision_halves_the_file_and_is_loaded_as_float32(checkpoint, exported, tmp_path):
    main(["export", str(checkpoint), "--output", str(tmp_path / "half"), "--half"])
    folders = [folder / "discriminator" for folder in (exported, tmp_path / "half")]
    sizes = [(folder / "model.safetensors").stat().st_size for folder in folders]
    assert sizes[1] / sizes[0] == pytest.approx(0.5, abs=0.01)
    load = transformers.AutoModelForPreTraining.from_pretrained
    full, half = (load(folder).state_dict() for folder in folders)
    for name, tensor in full.items():
        assert half[name].dtype == tensor.dtype and torch.equal(half[name], tensor.half().to(tensor.dtype)), name


def test_the_card_describes_the_training(exported, wordpiece_bin):
    card = (exported / "generator" / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: transformers\npipeline_tag: fill-mask\n")
    for told in (
        "`--criterion mlm_hard_correction`",
        "hard_correction_weight 0.25",
        "| synonym table | synonyms.safetensors (test)",
        "| architecture | `electra_tiny` |",
        "| data | data-bin |",
        "| steps | 2 |",
        "| batch | 8 sequences",
        "| sequence length | 32 tokens |",
        "| learning rate | 0.001 |",
    ):
        assert told in card, (told, card)
    assert str(wordpiece_bin.parent) not in card  # the card does not reveal local folders
    assert "AutoModelForPreTraining" in (exported / "discriminator" / "README.md").read_text()


def test_the_card_includes_options_that_are_zero_but_not_unset_flags_or_folders(checkpoint):
    state = load_checkpoint(checkpoint)
    criterion = {"hard_correction_weight": 0.0, "discriminator_loss_weight": 0, "a_flag": False, "unset": None}
    paths = {"correction_judge": "/home/someone/encoder.pt", "save_dir": "/home/someone/checkpoints"}
    state["cfg"]["criterion"] |= {**criterion, **paths}
    state["cfg"]["dataset"].update(batch_size=None, max_tokens=4096)
    card = model_card("electra", "generator", state)
    assert "hard_correction_weight 0.0, " in card and "discriminator_loss_weight 0, " in card
    assert "correction_judge encoder.pt" in card and "someone" not in card
    assert "a_flag" not in card and "unset" not in card and "save_dir" not in card
    assert "| batch | at most 4,096 tokens x 1 accumulated" in card
    state["cfg"]["criterion"] = {"_name": "not ours", "weight": 2, "synonym_table": "/home/someone/table.safetensors"}
    card = model_card("electra", "generator", state)
    assert "weight 2" in card and "someone" not in card


# Invalid input


def test_an_output_that_already_exists(checkpoint, tmp_path):
    (tmp_path / "precious.txt").write_text("1")
    assert str(tmp_path) in refusal("export", checkpoint, "--output", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_data_that_has_moved(checkpoint, wordpiece_bin, tmp_path):
    state = torch.load(checkpoint, weights_only=True)
    state["cfg"]["task"]["data"] = str(tmp_path / "moved")
    torch.save(state, tmp_path / "moved.pt")
    assert "--data" in refusal("export", tmp_path / "moved.pt", "--output", tmp_path / "out")
    main(["export", str(tmp_path / "moved.pt"), "--output", str(tmp_path / "out"), "--data", str(wordpiece_bin)])
    assert (tmp_path / "out" / "generator" / "model.safetensors").exists()


def test_data_with_another_vocabulary(checkpoint, tmp_path):
    data_bin = write_bin(tmp_path / "data", write_vocabulary(tmp_path / "other", [*PIECES[:-1], "##er"]))
    words = ["export", checkpoint, "--data", data_bin, "--output", tmp_path / "out"]
    assert "dictionary" in refusal(*words)
    shutil.rmtree(data_bin / "tokenizer")
    assert "tokenizer" in refusal(*words)
