"""The reader of BLiMP, its sample, and the accuracy of a model."""

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from files import refused
from lexical_files import write_blimp

from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tools.evaluate.lexical import blimp
from tn_fairseq.tools.evaluate.lexical.blimp import (
    MinimalPair,
    by_group,
    prefers_good,
    pseudo_log_likelihoods,
    read_blimp,
)

MANY = {name: [(f"{name} {n}.", f"{name} not {n}.") for n in range(50)] for name in ("second", "first")}


def test_pairs_are_in_the_order_of_file_names_and_a_sample_is_always_the_same(tmp_path):
    path = write_blimp(tmp_path / "B.zip", MANY)
    pairs = read_blimp(path)
    assert len(pairs) == 100 and pairs[0] == ("first 0.", "first not 0.", "binding", "first")
    assert [pair.paradigm for pair in pairs] == ["first"] * 50 + ["second"] * 50
    assert read_blimp(path, 50) == pairs
    sample = read_blimp(path, 7)
    assert sample == read_blimp(path, 7) and len(sample) == 14
    places = [pairs.index(pair) for pair in sample]
    assert places == sorted(places) and places != list(range(7)) + list(range(50, 57))
    # the paper counts selection as argument structure
    (pair,) = read_blimp(write_blimp(tmp_path / "B.zip", {"animate": [("a", "b")]}, "s-selection"))
    assert pair == ("a", "b", "argument_structure", "animate")


def test_groups():
    pairs = [MinimalPair("", "", *names) for names in (("binding", "b1"), ("ellipsis", "e"), ("binding", "b2"))]
    found = {group: members.tolist() for group, members in by_group(pairs).items()}
    assert found == {
        ("", ""): [0, 1, 2],
        (" by phenomenon", "binding"): [0, 2],
        (" by phenomenon", "ellipsis"): [1],
        (" by paradigm", "b1"): [0],
        (" by paradigm", "b2"): [2],
        (" by paradigm", "e"): [1],
    }


@pytest.mark.parametrize("at_a_time", [1, 500])
def test_the_better_sentence_has_the_higher_pseudo_log_likelihood(models, english, at_a_time, monkeypatch):
    monkeypatch.setattr(blimp, "_PAIRS_AT_A_TIME", at_a_time)
    tokenizer = load_tokenizer(english / "tokenizer")
    dictionary = load_dictionary(english / "dict.txt")
    texts = ["The dog barked .", "The dogs barked .", "he cries , it is", "he cry", "SHE cry", "she cry"]
    pairs = [MinimalPair(good, bad, "", "") for good, bad in zip(texts[::2], texts[1::2])]
    pairs += [MinimalPair(pair.bad, pair.good, "", "") for pair in pairs]

    words = [[dictionary.index(word) for word in text.lower().split()] for text in texts]
    values = pseudo_log_likelihoods(
        models["bert"], [np.array([dictionary.bos(), *ids, dictionary.eos()]) for ids in words]
    )
    better = [50 * (1 + np.sign(good - bad)) for good, bad in zip(values[::2], values[1::2])]
    assert better[2] == 50 and {*better} <= {0, 50, 100}
    found = prefers_good(models["bert"], pairs, tokenizer, tokenizer.lookup_table(dictionary))
    assert found.tolist() == [*better, *(100 - value for value in better)]


def test_damaged_and_foreign_files_get_one_line(tmp_path):
    path = write_blimp(tmp_path / "B.zip", MANY)
    complete = path.read_bytes()
    for data in (complete[:-30], complete[:60] + bytes(40) + complete[100:], b"tiger cat 7.35"):
        path.write_bytes(data)
        assert f"{path}: damaged, or not a zip file" in refused(read_blimp, path)
    numbers = '{"sentence_good": 1, "sentence_bad": "b", "linguistics_term": "c", "UID": "d"}'
    surrogate, empty = (numbers.replace("1", text) for text in ('"\\ud800"', '""'))
    for text in ("", "[]\n", '{"sentence_good": "a"}', "plain text\n", numbers, surrogate, empty):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data/x.jsonl", text)
        message = refused(read_blimp, path)
        assert str(path) in message and ("data/x.jsonl, line 1: " in message) == bool(text)


def test_unusual_lines_are_read_and_other_files_are_named(tmp_path, caplog):
    pair = {"sentence_good": "a\u0085b", "sentence_bad": "b", "linguistics_term": "c", "UID": "d"}
    line = json.dumps(pair, ensure_ascii=False)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("data/", "")
        archive.writestr("data/x.jsonl", f"\ufeff{line}\r\n{line}\n\n")
        archive.writestr("data/empty.jsonl", "\n")
        archive.writestr("data/y.json", f"{line}\n")
    assert read_blimp(tmp_path / "a.zip") == [("a\u0085b", "b", "c", "d")] * 2
    assert "a.zip: 1 files whose names lack .jsonl are not read, such as 'data/y.json'" in caplog.text


@pytest.mark.skipif("TN_FAIRSEQ_DATA" not in os.environ, reason="needs the real data")
def test_the_real_file():
    pairs = read_blimp(Path(os.environ["TN_FAIRSEQ_DATA"]) / "lexical" / "BLiMP.zip")
    groups = by_group(pairs)
    assert len(pairs) == 67_000
    assert sum(kind == " by phenomenon" for kind, _ in groups) == 12
    assert {len(members) for (kind, _), members in groups.items() if kind == " by paradigm"} == {1000}
