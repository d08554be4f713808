"""Text with twins: merging them gives the original text, and the objectives that merge them train as on it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from files import contents, refused
from helpers import FAMILIES, load_script, prepare_training, write_split
from scipy.stats import binom

from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.core.synonym_table import load_synonym_table
from tn_fairseq.data.data_bin import load_sentences
from tn_fairseq.objectives.mlm_merged_synonyms import first_of_group

twins = load_script("examples/study/twins.py")
main = twins.main


@pytest.fixture(scope="module")
def twin_bin(data_bin, tmp_path_factory) -> Path:
    destdir = tmp_path_factory.mktemp("twins") / "twin-bin"
    main(["--data", str(data_bin), "--destdir", str(destdir), "--share", "0.5", "--seed", "3"])
    return destdir


def tokens(folder: Path, split: str = "train") -> np.ndarray:
    sentences = load_sentences(folder / split, "binarize")
    return np.concatenate([sentences[index].numpy() for index in range(len(sentences))])


def table_of(folder: Path) -> torch.Tensor:
    return load_synonym_table(folder / twins.TABLE, load_dictionary(folder / "dict.txt")).synonyms


def test_merging_the_twins_gives_the_original_text(twin_bin, data_bin):
    merged = first_of_group(table_of(twin_bin)).numpy()
    for split in ("train", "valid"):
        original = tokens(data_bin, split)
        assert (tokens(twin_bin, split) != original).any()
        assert (merged[tokens(twin_bin, split)] == original).all()
        assert (tokens(twin_bin / "oracle", split) == original).all()
    old, new = load_dictionary(data_bin / "dict.txt"), load_dictionary(twin_bin / "dict.txt")
    assert new.symbols[: len(old) - 1] == old.symbols[:-1] and new.symbols[-1] == old.symbols[-1]
    assert (twin_bin / "oracle" / "dict.txt").read_bytes() == (twin_bin / "dict.txt").read_bytes()


def test_the_share_of_the_tokens_has_a_twin_which_replaces_half_of_them(twin_bin, data_bin):
    report = json.loads((twin_bin / twins.REPORT).read_text())
    original, changed = tokens(data_bin), tokens(twin_bin)
    has_twin = (table_of(twin_bin)[original] >= 0).any(dim=1).numpy()
    words = (original != load_dictionary(data_bin / "dict.txt").eos()).sum()
    assert 0.47 < has_twin.sum() / words <= 0.5
    counts = {"tokens": len(original), "with_twin": has_twin.sum(), "replaced": (changed != original).sum()}
    assert report["splits"]["train"] == counts
    low, high = binom.interval(0.999, counts["with_twin"], 0.5)
    assert low < counts["replaced"] < high
    (ids, replaced), occurring = np.unique(original[changed != original], return_counts=True), np.bincount(original)
    assert len(ids) == report["words"]
    low, high = binom.interval(1 - 1e-6, occurring[ids], 0.5)
    assert ((low <= replaced) & (replaced <= high)).all()


def test_twins_replace_this_share_of_the_occurrences(data_bin, tmp_path):
    main(["--data", str(data_bin), "--destdir", str(tmp_path / "twins"), "--share", "0.5", "--occurrences", "0.2"])
    original, changed = tokens(data_bin), tokens(tmp_path / "twins")
    with_twin = (table_of(tmp_path / "twins")[original] >= 0).any(dim=1).sum().item()
    low, high = binom.interval(0.999, with_twin, 0.2)
    assert with_twin > 100 and low <= (changed != original).sum() <= high


def test_the_table_is_exact(twin_bin):
    table, dictionary = table_of(twin_bin), load_dictionary(twin_bin / "dict.txt")
    assert table.shape[1] == 1
    for word, (twin,) in enumerate(table.tolist()):
        if twin >= 0:
            assert table[twin] == word
            assert dictionary[max(word, twin)] == f"{dictionary[min(word, twin)]}~"
    assert (table >= 0).sum() == 2 * json.loads((twin_bin / twins.REPORT).read_text())["words"]
    assert not load_synonym_table(twin_bin / twins.TABLE, dictionary).continues_word.any()


def test_a_share_of_zero_changes_no_byte(data_bin, tmp_path):
    twins.write_twins(data_bin, tmp_path / "none", share=0, occurrences=0.5, min_count=1, seed=1)
    for name in ("dict.txt", "train.bin", "train.idx", "valid.bin", "valid.idx"):
        assert (tmp_path / "none" / name).read_bytes() == (data_bin / name).read_bytes(), name
        assert (tmp_path / "none" / "oracle" / name).read_bytes() == (data_bin / name).read_bytes(), name


def test_the_seed_decides_the_bytes_and_the_size_of_the_parts_does_not(twin_bin, data_bin, tmp_path, monkeypatch):
    monkeypatch.setattr(twins, "SENTENCES", 7)
    for seed in (3, 4):
        twins.write_twins(data_bin, tmp_path / str(seed), share=0.5, occurrences=0.5, min_count=10, seed=seed)
    assert contents(tmp_path / "3") == contents(twin_bin)
    assert (tmp_path / "4" / "train.bin").read_bytes() != (twin_bin / "train.bin").read_bytes()


def test_training_on_merged_twins_is_training_on_the_original_text(twin_bin, tmp_path):
    words = [*FAMILIES["bert"].replace("masked_lm", "electra").split(), "--synonym-table", twin_bin / twins.TABLE]
    weights = []
    for data, criterion in ((twin_bin / "oracle", "mlm"), (twin_bin, "mlm_merged_synonyms")):
        prepare_training(data, tmp_path / criterion, *words, "--criterion", criterion, "--max-update", 2)()
        state = torch.load(tmp_path / criterion / "checkpoint_last.pt", weights_only=False)["model"]
        weights.append(state["embeddings.word_embeddings.weight"])
    assert torch.equal(*weights)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ("--share 1.5", "--share"),
        ("--share 1 --min-count 30", "--share 1.0"),
        ("--share 1e-9 --min-count 1", "--share 1e-09"),
        ("--data nothing", "nothing"),
        ("--destdir .", "."),
    ],
)
def test_wrong_input_gets_one_line_and_nothing_is_written(data_bin, tmp_path, monkeypatch, flags, named):
    monkeypatch.chdir(tmp_path)
    assert named in refused(main, ["--data", str(data_bin), "--destdir", "out", "--share", "0.5", *flags.split()])
    assert not list(tmp_path.iterdir())


def test_data_without_text_is_refused(data_bin, tmp_path):
    folder = shutil.copytree(data_bin, tmp_path / "empty")
    write_split(folder, "train", load_dictionary(folder / "dict.txt"), [[]] * 3)
    message = refused(twins.write_twins, folder, tmp_path / "out", 0.5, 0.5, min_count=1, seed=1)
    assert f"{folder / 'train.bin'}" in message


def test_a_table_without_groups_cannot_be_merged():
    assert first_of_group(torch.tensor([[2, -1], [-1, -1], [0, -1]])).tolist() == [0, 1, 0]
    assert "groups" in refused(first_of_group, torch.tensor([[1], [2], [-1]]))
