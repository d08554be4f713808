"""Rows of measures, and their layout in a terminal."""

import numpy as np
import pytest

from tn_fairseq.synonyms.acceptance import Crossings, TableQuality
from tn_fairseq.tools.evaluation import bootstrap
from tn_fairseq.tools.evaluation.bootstrap import Measure, rank_correlation
from tn_fairseq.tools.evaluation.lexical.results import Measured, checkpoint_rows, table_rows, tables_text

LENIENCY, AUC = Measure("swords", "leniency"), Measure("swords", "RTD AUC", unit="%")
COSINES = Measure("pairs", "Spearman", statistic=rank_correlation)


def measured(name: str, *leniency: list[float], updates: int | None = 5, **more: np.ndarray) -> Measured:
    values = {LENIENCY: np.array(leniency)}
    return Measured(name, updates, values | ({AUC: more["auc"]} if more else {}))


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    monkeypatch.setattr(bootstrap, "RESAMPLES", 50)


def test_undefined_items_are_left_out():
    (row,) = checkpoint_rows([measured("a", [1.0, np.nan, 3.0])])
    assert (row.value, row.items, row.seeds, row.updates) == (2, 2, 1, 5)
    assert 1 <= row.low <= row.high <= 3
    assert row.seed_sd is row.baseline is row.difference is None
    assert checkpoint_rows([measured("a", [np.nan, np.nan])]) == []


def test_items_in_one_context_are_resampled_together():
    """Twice the targets, all alike in a context, have the same interval; an undefined one has no context."""
    leniency = np.arange(20.0) ** 2
    once = measured("a", [*leniency, np.nan])
    twice = measured("a", [*np.repeat(leniency, 2), np.nan])
    contexts = [f"context {number}" for number in range(21)]
    (row,) = checkpoint_rows([once], contexts={"swords": contexts})
    (plain,) = checkpoint_rows([once])
    (double,) = checkpoint_rows([twice], contexts={"swords": np.repeat(contexts, 2)[:41].tolist()})
    assert row == plain and double.items == 2 * row.items
    assert (double.low, double.high) == pytest.approx((row.low, row.high))
    (other,) = checkpoint_rows([twice], contexts={"other data": contexts})
    assert other.high - other.low < 0.9 * (row.high - row.low)


def test_a_checkpoint_is_compared_only_if_the_baseline_has_the_measure():
    electra = measured("e", [1.0, 2.0], auc=np.array([[60.0, 80.0]]))
    rows = checkpoint_rows([measured("a", [3.0, 5.0]), electra], "a")
    assert [(row.name, row.measure, row.baseline) for row in rows] == [
        ("a", "leniency", None),
        ("e", "leniency", "a"),
        ("e", "RTD AUC", None),
    ]
    assert rows[1].difference == -2.5 and rows[1].holm == rows[1].p


def test_word_pairs_are_correlated_with_the_gold_similarities():
    cosines = np.array([[0.1, 0.2, 0.4, 0.3], [0.9, 0.8, 0.2, 0.1]])
    values = np.stack([np.broadcast_to([1.0, 2, 3, 4], cosines.shape), cosines], axis=2)
    (row,) = checkpoint_rows([Measured("a", None, {COSINES: values})])
    assert row.value == pytest.approx((0.8 - 1) / 2) and row.seeds == 2 and row.items == 4


def test_the_table_of_the_synonym_tables_fits_in_120_columns():
    quality = TableQuality(10_000, 100_000, 30_000, 30_000, 40_000, 5_000, 50_000)
    found = Crossings(30_000, 1_000_000, 3_000, 10_000, 200_000)
    text = tables_text(table_rows("t" * 80, {"lemma": quality, "spelling": quality}, found, 20_000))
    assert max(map(len, text.splitlines())) <= 120
    assert "10,000 of 20,000 targets are not one piece" in text


def test_an_empty_table_has_no_shares():
    rows = table_rows("t", {"lemma": TableQuality(3, 0, 0, 0, 0, 0, 4)}, Crossings(0, 0, 0, 0, 0), 3)
    assert rows[0]["acceptable_percent"] is rows[0]["rows_crossing_percent"] is None and rows[0]["held_percent"] == 0
    line = tables_text(rows).splitlines()[2].split()
    assert line == ["t", "0", "-", "-", "-", "0.0", "0", "-", "0", "-", "-"]
