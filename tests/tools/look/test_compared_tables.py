"""The comparison of tables: counts by hand, and those of sets."""

import pytest
import torch

from tn_fairseq.core.synonym_table import PADDING
from tn_fairseq.tools.look.compared_tables import source_rows, table_rows

P = PADDING
# 6 symbols; pairs 1-2 1-3 2-1 5-4, and 1-3 2-1 2-5 4-1 4-2 with another width
FIRST = torch.tensor([[P, P], [2, 3], [1, P], [P, P], [P, P], [4, P]], dtype=torch.int32)
SECOND = torch.tensor([[P, P, P], [3, P, P], [5, 1, P], [P] * 3, [1, 2, P], [P] * 3], dtype=torch.int32)
EMPTY = torch.full((6, 1), P, dtype=torch.int32)
FIRED = torch.tensor([[8, 3], [3, 5]])
DESCRIPTIONS = {"first": {"source": "wordnet", "source_version": "WordNet 3.0"}, "second": {"source": "vectors"}}
COUNTS = ("words", "other_words", "common_words", "pairs", "other_pairs", "common_pairs")


def compare(first, second, fired=FIRED, masked=100, mismatches=80):
    return source_rows({"first": first, "second": second}, DESCRIPTIONS, fired, masked, mismatches)


def test_by_hand():
    first, both, second = rows = compare(FIRST, SECOND)
    assert [both[key] for key in COUNTS] == [3, 3, 2, 4, 5, 2]
    assert both["pair_overlap"] == pytest.approx(100 * 2 / 7)
    assert [both[key] for key in ("fired", "other_fired", "common_fired")] == [8, 5, 3]
    rates = [both[key] for key in ("fired_rate", "other_fired_rate", "common_fired_rate")]
    assert rates == pytest.approx([10, 6.25, 3.75])
    assert (both["masked"], both["mismatches"], both["dictionary_size"]) == (100, 80, 6)
    assert (both["source"], both["source_version"]) == ("wordnet", "WordNet 3.0")
    assert (both["other_source"], both["other_source_version"]) == ("vectors", None)
    # a table with itself has all in common
    assert [[row[key] for key in COUNTS] for row in (first, second)] == [[3, 3, 3, 4, 4, 4], [3, 3, 3, 5, 5, 5]]
    assert [row["common_fired"] for row in (first, second)] == [8, 5] and first["pair_overlap"] == 100
    # the table of results has what two tables share
    values = {(row["arm"], row["measure"]): row["value"] for row in table_rows(rows)}
    words = {arm: value for (arm, measure), value in values.items() if measure == "table words"}
    assert words == {"first": 3, "first and second": 2, "second": 3}
    assert values["first", "table pairs"] == 4 and values["first and second", "table fired"] == 3.75


def test_empty_tables_and_no_mismatches():
    rows = compare(EMPTY, EMPTY, torch.zeros(2, 2, dtype=torch.int64), mismatches=0)
    assert {row[key] for row in rows for key in (*COUNTS, "pair_overlap", "fired", "fired_rate")} == {0}


def test_counts_are_those_of_set_intersections():
    generator = torch.Generator().manual_seed(1)
    tables = {}
    for name, columns in (("a", 3), ("b", 5), ("c", 4)):
        table = torch.randint(40, (40, columns), generator=generator, dtype=torch.int32)
        tables[name] = table.masked_fill(torch.rand(table.shape, generator=generator) < 0.5, P)
    pairs = {
        name: {(gold, synonym) for gold, row in enumerate(table.tolist()) for synonym in row if synonym != P}
        for name, table in tables.items()
    }
    fired = torch.arange(9).reshape(3, 3)
    rows = source_rows(tables, dict.fromkeys(tables, {}), fired, 100, 80)
    assert [row["table"] + row["other"] for row in rows] == ["aa", "ab", "ac", "bb", "bc", "cc"]
    for row in rows:
        one, other = pairs[row["table"]], pairs[row["other"]]
        assert 0 < len(one & other) <= row["pairs"] == len(one)
        assert row["common_pairs"] == len(one & other)
        assert row["pair_overlap"] == pytest.approx(100 * len(one & other) / len(one | other))
        assert row["common_words"] == len({gold for gold, _ in one} & {gold for gold, _ in other})
        assert row["common_fired"] == fired["abc".index(row["table"]), "abc".index(row["other"])]


def test_pairs_of_a_large_vocabulary_do_not_collide():
    """With 70,000 words, pair numbers do not fit in 32 bits."""
    size = 70_000
    one, other = torch.full((2, size, 1), P, dtype=torch.int32)
    one[61_359, 0] = 43_000
    other[(61_359 * size + 43_000 - 2**32) // size, 0] = (61_359 * size + 43_000 - 2**32) % size
    _, both, _ = compare(one, other)
    assert (both["pairs"], both["other_pairs"], both["common_pairs"]) == (1, 1, 0)
