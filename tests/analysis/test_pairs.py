"""Pairs of gold word and prediction, counted by hand."""

import csv
import math

import torch

from tn_fairseq.analysis.pairs import (
    COLUMNS,
    MISSED_PAIRS,
    PairCounter,
    pair_rows,
    similarities,
    typical_similarity,
    write_pairs,
)
from tn_fairseq.synonym_table import PADDING

TABLE = torch.full((8, 2), PADDING, dtype=torch.int32)
TABLE[4, 0], TABLE[5, 0] = 5, 4
# 4, 5 and 6 have similar directions, 7 is orthogonal to 4
EMBEDDINGS = torch.zeros(8, 2)
EMBEDDINGS[4:] = torch.tensor([[1.0, 0.0], [1.0, 0.5], [1.0, 0.1], [0.0, 1.0]])
IS_WORD = torch.arange(8) >= 4


def counted(*pairs, probability=0.5):
    counter = PairCounter()
    for gold, prediction in pairs:
        counter.add(torch.tensor([gold]), torch.tensor([prediction]), torch.tensor([probability]))
    return counter


def rows_of(counter, is_word=IS_WORD, tables=None):
    return pair_rows(counter, tables or {"mine": TABLE}, EMBEDDINGS, is_word, list("abcdefgh"), "{}|{}".format)


def test_wrong_pairs_are_counted_over_batches_most_frequent_first():
    counter = PairCounter()
    counter.add(torch.tensor([4, 5, 6]), torch.tensor([5, 5, 7]), torch.tensor([0.2, 0.9, 0.5]))
    counter.add(torch.tensor([4]), torch.tensor([5]), torch.tensor([0.4]))
    gold, prediction, count, probability = counter.pairs()
    assert gold.tolist() == [4, 6] and prediction.tolist() == [5, 7] and count.tolist() == [2, 1]
    assert torch.allclose(probability, torch.tensor([0.3, 0.5], dtype=torch.float64))


def test_the_typical_similarity_is_the_median_over_the_tables():
    cosine = 1 / math.sqrt(1.25)
    assert math.isclose(typical_similarity(EMBEDDINGS, [TABLE]), cosine, rel_tol=1e-6)
    other = torch.full((8, 1), PADDING, dtype=torch.int32)
    other[4], other[6], other[7] = 7, 7, 4  # cosines of 0, about 0.1 and 0
    assert typical_similarity(EMBEDDINGS, [TABLE, other]) < 0.2
    assert math.isnan(typical_similarity(EMBEDDINGS, [torch.full((8, 1), PADDING)]))
    assert torch.allclose(similarities(EMBEDDINGS, torch.tensor([4]), torch.tensor([7])), torch.zeros(1))


def test_corrected_pairs_come_before_similar_words_that_are_in_no_table():
    rows = rows_of(counted((4, 6), (4, 6), (4, 7), (5, 4)))
    assert [(row["list"], row["gold"], row["prediction"], row["count"]) for row in rows] == [
        ("corrected", "f", "e", 1),
        ("missed", "e", "g", 2),  # 4 and 7 are not similar
    ]
    assert [row["tables"] for row in rows] == ["mine", ""]
    assert math.isclose(rows[0]["similarity"], 1 / math.sqrt(1.25), rel_tol=1e-6) and rows[0]["mean_probability"] == 0.5


def test_candidates_are_words_and_every_table_that_fires_is_named():
    is_word = IS_WORD.clone()
    is_word[6] = False
    assert rows_of(counted((4, 6)), is_word) == []
    (row,) = rows_of(counted((4, 5)), tables={"one": TABLE, "none": torch.full_like(TABLE, PADDING), "two": TABLE})
    assert row["tables"] == "one two"


def test_no_pairs_and_no_synonyms_give_no_rows():
    empty = {"empty": torch.full((8, 1), PADDING, dtype=torch.int32)}
    assert rows_of(PairCounter()) == [] and rows_of(counted((4, 6)), tables=empty) == []


def test_missed_pairs_are_limited_and_corrected_pairs_are_not():
    size = MISSED_PAIRS + 60
    table = torch.full((size, 1), PADDING, dtype=torch.int32)
    table[:50, 0] = torch.arange(50, dtype=torch.int32) + 1
    counter = PairCounter()
    gold = torch.arange(size - 1)
    counter.add(gold, gold + 1, torch.full((size - 1,), 0.5))
    found = pair_rows(counter, {"t": table}, torch.ones(size, 2), torch.ones(size, dtype=torch.bool), ["x"] * size, max)
    assert [row["list"] for row in found] == ["corrected"] * 50 + ["missed"] * MISSED_PAIRS


def test_the_file_can_be_read_back(tmp_path):
    rows = rows_of(counted((4, 5), (5, 6)))
    write_pairs(rows, tmp_path / "pairs.csv")
    with open(tmp_path / "pairs.csv", newline="", encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    assert tuple(read[0]) == COLUMNS and len(read) == 2
    assert [pair["prediction"] for pair in read] == ["f", "g"] and read[0]["mean_probability"] == "0.5"
    assert [pair["inflection"] for pair in read] == ["e|f", "f|g"]
    write_pairs([], tmp_path / "none.csv")
    assert (tmp_path / "none.csv").read_text() == ",".join(COLUMNS) + "\n"
