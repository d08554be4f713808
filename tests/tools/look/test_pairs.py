"""Pairs of gold word and prediction, counted by hand."""

import math

import pytest
import torch

from tn_fairseq.core.synonym_table import PADDING
from tn_fairseq.tools.look.pairs import (
    COLUMNS,
    MISSED_PAIRS,
    pair_cosines,
    pair_rows,
    typical_similarity,
)

TABLE = torch.full((8, 2), PADDING, dtype=torch.int32)
TABLE[4, 0], TABLE[5, 0] = 5, 4
EMPTY = torch.full((8, 1), PADDING, dtype=torch.int32)
# 4, 5 and 6 have similar directions, 7 is orthogonal to 4
EMBEDDINGS = torch.zeros(8, 2)
EMBEDDINGS[4:] = torch.tensor([[1.0, 0.0], [1.0, 0.5], [1.0, 0.1], [0.0, 1.0]])
IS_WORD = torch.arange(8) >= 4


def wrong(*pairs, probability=0.5):
    """A batch for each pair of a gold token and a wrong prediction."""
    return [(torch.tensor([gold]), torch.tensor([other]), torch.tensor([probability])) for gold, other in pairs]


def rows_of(batches, is_word=IS_WORD, tables=None):
    return pair_rows(batches, tables or {"mine": TABLE}, EMBEDDINGS, is_word, list("abcdefgh"), "{}|{}".format)


def test_pairs_are_counted_over_batches_most_frequent_first():
    batches = wrong((5, 4), (4, 5), probability=0.2) + wrong((4, 5), probability=0.4)
    batches.append((torch.tensor([5, 4]), torch.tensor([4, 5]), torch.tensor([0.8, 0.3])))
    rows = rows_of(batches)
    assert all(tuple(row) == COLUMNS for row in rows)
    assert [(row["gold"], row["prediction"], row["count"], row["inflection"]) for row in rows] == [
        ("e", "f", 3, "e|f"),
        ("f", "e", 2, "f|e"),
    ]
    assert [row["mean_probability"] for row in rows] == pytest.approx([0.3, 0.5])


def test_the_typical_similarity_is_the_median_over_the_tables():
    assert typical_similarity(EMBEDDINGS, [TABLE]) == pytest.approx(1 / math.sqrt(1.25))
    other = EMPTY.clone()
    other[4], other[6], other[7] = 7, 7, 4  # cosines of 0, about 0.1 and 0
    assert typical_similarity(EMBEDDINGS, [TABLE, other]) < 0.2
    assert math.isnan(typical_similarity(EMBEDDINGS, [EMPTY]))


def test_corrected_pairs_come_before_similar_words_that_are_in_no_table():
    rows = rows_of(wrong((4, 6), (4, 6), (4, 7), (5, 4)))
    assert [(row["list"], row["gold"], row["prediction"], row["count"], row["tables"]) for row in rows] == [
        ("corrected", "f", "e", 1, "mine"),
        ("missed", "e", "g", 2, ""),  # 4 and 7 are not similar
    ]
    assert rows[0]["similarity"] == pytest.approx(1 / math.sqrt(1.25))


def test_candidates_are_words_and_every_table_that_fires_is_named():
    for pair in ((4, 6), (6, 4)):
        assert rows_of(wrong(pair), IS_WORD & (torch.arange(8) != 6)) == []
    (row,) = rows_of(wrong((4, 5)), tables={"one": TABLE, "none": EMPTY, "two": TABLE})
    assert row["tables"] == "one two"
    nothing = [(torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.long), torch.empty(0))]
    assert rows_of(nothing) == rows_of(wrong((4, 6)), tables={"empty": EMPTY}) == []


def test_missed_pairs_are_limited_and_corrected_pairs_are_not():
    size = MISSED_PAIRS + 60
    table = torch.full((size, 1), PADDING, dtype=torch.int32)
    table[:50, 0] = torch.arange(50, dtype=torch.int32) + 1
    gold = torch.arange(size - 1)
    batches, words = [(gold, gold + 1, torch.full((size - 1,), 0.5))], torch.ones(size, dtype=torch.bool)
    found = pair_rows(batches, {"t": table}, torch.ones(size, 2), words, ["x"] * size, max)
    assert [row["list"] for row in found] == ["corrected"] * 50 + ["missed"] * MISSED_PAIRS


def test_cosines_of_pairs_by_hand():
    """Rows 4 and 5 are synonyms at 60 degrees, row 6 and 7 at 90 degrees; lengths do not matter."""
    table = torch.full((8, 2), PADDING, dtype=torch.int32)
    table[4, 0], table[5, 0], table[6, 0] = 5, 4, 7
    embeddings = torch.zeros(8, 3)
    embeddings[4], embeddings[5] = torch.tensor([2.0, 0, 0]), torch.tensor([0.5, 0.75**0.5, 0])
    embeddings[6], embeddings[7] = torch.tensor([0, 0, 3.0]), torch.tensor([0.0, 1, 0])
    found = pair_cosines(embeddings, table)
    assert found["pair_cosine"] == pytest.approx((0.5 + 0.5 + 0) / 3)
    assert found["other_cosine"] == pytest.approx((0.5 + 0 + 0) / 3)  # of 4, 5 and 6, which have a synonym
    assert pair_cosines(embeddings, EMPTY) == {}
