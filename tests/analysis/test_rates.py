"""Rates computed by hand, the printed table, the files, and the paper's Table 2."""

import csv
import json
import math

import pytest
from scipy import stats

from tn_fairseq.analysis.rates import LEGEND, Counts, Evaluated, rates_table, rows, write_rates
from tn_fairseq.reporting.paper import HEADING, TABLE_2

# rates of FIRST: 10 of 40 sequences, 16 of 80 mismatches, 16 of 100 masked, 20 of 100 correct
FIRST = Counts(40, 10, masked=100, correct=20, corrected=16, loss=400.0, synonym_probability=3.0)
SECOND = Counts(40, 14, masked=200, correct=100, corrected=18, loss=600.0, synonym_probability=10.0)
KEYS = ["checkpoint", "updates", "table", "mask_seeds"]
KEYS += ["sequences", "corrected_sequences", "masked", "mismatches", "corrected"]
for rate in ("sequence_rate", "prediction_rate", "masked_rate", "accuracy", "loss", "synonym_probability"):
    KEYS += [rate, f"{rate}_low", f"{rate}_high"]


def one(*counts: Counts, checkpoint: str = "runs/a/checkpoint_1_50.pt", updates: int | None = 50, table: str = "wn"):
    return Evaluated(checkpoint, updates, table, counts)


def line_of(table: str, label: str) -> list[str]:
    """The cells of the only line that starts with ``label``."""
    (line,) = [line.strip() for line in table.splitlines() if line.strip().startswith(label)]
    return line.removeprefix(label).split()


def test_one_seed_by_hand():
    (row,) = rows([one(FIRST)])
    assert list(row) == KEYS
    expected = {"sequence_rate": 25, "prediction_rate": 20, "masked_rate": 16, "accuracy": 20}
    expected |= {"loss": 4, "synonym_probability": 3}
    assert {key: row[key] for key in expected} == expected
    assert [row[f"{rate}_{end}"] for rate in expected for end in ("low", "high")] == [None] * 12
    assert [row[key] for key in KEYS[:9]] == ["runs/a/checkpoint_1_50.pt", 50, "wn", 1, 40, 10, 100, 80, 16]


def test_counts_are_summed_and_rates_are_means_over_seeds():
    (row,) = rows([one(FIRST, SECOND)])
    assert [row[key] for key in KEYS[3:9]] == [2, 80, 24, 300, 180, 34]
    # means of 25 and 35, 20 and 18, 16 and 9, 20 and 50, 4 and 3, 3 and 5, not the rates of the sums
    assert [row[key] for key in KEYS[9::3]] == pytest.approx([30, 19, 12.5, 35, 3.5, 4])
    # two values d apart: standard deviation d / sqrt(2), standard error d / 2
    half = stats.t.ppf(0.975, 1) * 10 / 2
    assert (row["sequence_rate_low"], row["sequence_rate_high"]) == pytest.approx((30 - half, 30 + half))


def test_a_rate_with_denominator_zero_is_zero():
    perfect = Counts(sequences=4, corrected_sequences=0, masked=10, correct=10, corrected=0)
    nothing = Counts(0, 0, 0, 0, 0)
    (row,) = rows([one(perfect)])
    assert (row["prediction_rate"], row["mismatches"], row["accuracy"]) == (0, 0, 100)
    (row,) = rows([one(nothing, nothing)])
    assert [row[key] for key in KEYS[9:]] == [0] * 18
    assert rates_table([row])


def test_the_table_shows_the_rows():
    both = [
        one(FIRST, SECOND),
        one(FIRST, FIRST, table="vectors"),
        one(SECOND, SECOND, checkpoint="b.pt", updates=None),
    ]
    table = rates_table(rows(both))
    wordnet, vectors = table.split(LEGEND)[0].split("\n\n")[:2]
    assert wordnet.splitlines()[0] == "wn" and vectors.splitlines()[0] == "vectors"
    half = f"{stats.t.ppf(0.975, 1) * 5:.3f}"
    assert line_of(wordnet, "checkpoint_1_50.pt")[:5] == ["50", "34", "30.000", "±", half]
    assert line_of(wordnet, "b.pt")[:2] == ["-", "36"]
    assert line_of(vectors, "checkpoint_1_50.pt")[:5] == ["50", "32", "25.000", "±", "0.000"]
    assert line_of(vectors, "checkpoint_1_50.pt")[-3:] == ["20.00", "±", "0.00"]
    assert "other text or another training run" in table
    assert "Masking seeds: 2. In total, 200 to 400 tokens were masked in 80 sequences." in table
    assert HEADING not in table


def test_one_seed_is_shown_without_an_interval():
    table = rates_table(rows([one(FIRST)]))
    assert line_of(table, "checkpoint_1_50.pt") == ["50", "16", "25.000", "20.000", "16.000", "20.00"]
    assert "±" not in table
    assert "Masking seeds: 1. In total, 100 tokens were masked in 40 sequences." in table


def test_many_checkpoints_in_deep_folders_fit_a_terminal():
    folders = ["/data/" + "deep/" * 40 + name for name in ("plain/checkpoints", "corrected/checkpoints")]
    large = Counts(10**6, 10**6, 10**8, 0, 10**8)
    evaluated = [
        one(
            large,
            FIRST,
            checkpoint=f"{folder}/{'long' * 20}_checkpoint_{n}_{10**5 * n}.pt",
            updates=10**5 * n,
            table=table,
        )
        for folder in folders
        for n in range(1, 16)
        for table in ("a", "b", "c")
    ]
    lines = rates_table(rows(evaluated), show_paper=True).splitlines()
    assert max(map(len, lines)) == 120
    assert not any(line.endswith(" ") for line in lines)
    for folder in ("deep/plain/checkpoints/", "deep/corrected/checkpoints/"):
        assert sum(line.startswith("…") and line.endswith(folder) for line in lines) == 3  # once a table
    numbers = [line for line in lines if line.startswith("…") and " ± " in line]
    assert len(numbers) == 90
    assert {len(line) for line in numbers} == {120}
    assert sum("_checkpoint_15_1500000.pt  1,500,000 " in line for line in numbers) == 6


def test_the_papers_table_is_shown_below():
    ours, paper = rates_table(rows([one(FIRST)]), show_paper=True).split(HEADING)
    assert ours.split() == rates_table(rows([one(FIRST)])).split()
    assert line_of(paper, "BERT-base, 6.25%") == ["-", "-", "6.90", "1.31", "-", "-"]
    assert line_of(paper, "BERT-large, 100%") == ["-", "-", "7.44", "1.60", "-", "-"]
    assert "wikitext-2-raw-v1" in paper and "200k steps" in paper


def test_the_papers_numbers_match_the_summary_in_its_text():
    assert [figures.checkpoint for figures in TABLE_2] == [6.25, 12.5, 25, 50, 80, 100] * 2
    assert {figures.model for figures in TABLE_2[:6]} == {"BERT-base"}
    assert {figures.model for figures in TABLE_2[6:]} == {"BERT-large"}
    # "around 6.0%-7.0% in iteration-level and 1.0%-2.0% in token-level", and, of base, "the ratio increases"
    assert all(6 < figures.sequence_rate < 8 and 1 < figures.prediction_rate < 2 for figures in TABLE_2)
    for rate in ("sequence_rate", "prediction_rate"):
        base = [getattr(figures, rate) for figures in TABLE_2[:6]]
        assert base == sorted(base)
    assert sum(figures.sequence_rate for figures in TABLE_2) == pytest.approx(42.01 + 44.63)
    assert sum(figures.prediction_rate for figures in TABLE_2) == pytest.approx(8.18 + 9.27)


def test_files(tmp_path):
    third = Counts(sequences=30, corrected_sequences=10, masked=7, correct=1, corrected=1)
    made = rows([one(FIRST, SECOND), one(third, updates=None, checkpoint='a "b", c.pt')])
    write_rates(made, tmp_path / "rates.csv", tmp_path / "rates.json")
    assert json.loads((tmp_path / "rates.json").read_text(encoding="utf-8")) == made
    with open(tmp_path / "rates.csv", encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == KEYS and len(read) == 2
    assert (read[1]["checkpoint"], read[1]["updates"], read[1]["accuracy_low"]) == ('a "b", c.pt', "", "")
    assert read[1]["sequence_rate"] == "33.333333"
    for row, cells in zip(made, read):
        for key in KEYS[3:]:
            assert float(cells[key] or "nan") == pytest.approx(
                math.nan if row[key] is None else row[key], abs=5e-7, nan_ok=True
            )
