"""Rates computed by hand, the printed table, and the paper's Table 2."""

import pytest
from scipy import stats

from tn_fairseq.tools.analysis.rates import DETECTION, LEGEND, TEACHER, Counts, by_mask_seed, rate_row, rates_table
from tn_fairseq.tools.reporting.paper import HEADING, TABLE_2

# rates of FIRST: 10 of 40 sequences, 16 of 80 mismatches, 16 of 100 masked, 20 of 100 correct
FIRST = Counts(40, 10, 100, 20, 16, loss=400.0, synonym_probability=3.0, with_synonyms=32, synonym_gain=40.0)
SECOND = Counts(40, 14, 200, 100, 18, loss=600.0, synonym_probability=10.0, with_synonyms=72, synonym_gain=100.0)
HALF = stats.t.ppf(0.975, 1) * 10 / 2  # of the interval of two values 10 apart
KEYS = ["checkpoint", "updates", "table", "mask_seeds"]
KEYS += ["sequences", "corrected_sequences", "masked", "mismatches", "corrected", "with_synonyms"]
for rate in (
    *("sequence_rate", "prediction_rate", "masked_rate", "accuracy", "loss", "synonym_probability"),
    *("merged_accuracy", "merged_loss", "mistaken_rate"),
):
    KEYS += [rate, f"{rate}_low", f"{rate}_high"]


def row(*counts: Counts, checkpoint: str = "runs/a/checkpoint_1_50.pt", updates: int | None = 50, table: str = "wn"):
    return rate_row(checkpoint, updates, table, counts)


def line_of(table: str, label: str) -> list[str]:
    """The cells of the only line that starts with ``label``."""
    (line,) = [line.strip() for line in table.splitlines() if line.strip().startswith(label)]
    return line.removeprefix(label).split()


def test_one_seed_by_hand():
    found = row(FIRST)
    assert list(found) == KEYS
    assert [found[key] for key in KEYS[:10]] == ["runs/a/checkpoint_1_50.pt", 50, "wn", 1, 40, 10, 100, 80, 16, 32]
    assert [found[key] for key in KEYS[10::3]] == [25, 20, 16, 20, 4, 3, 36, 3.6, 50]
    assert [found[key] for key in (*KEYS[11::3], *KEYS[12::3])] == [None] * 18


def test_counts_are_summed_and_rates_are_means_over_seeds():
    found = row(FIRST, SECOND)
    assert [found[key] for key in KEYS[3:10]] == [2, 80, 24, 300, 180, 34, 104]
    # means of 25 and 35, 20 and 18, 16 and 9, 20 and 50, 4 and 3, 3 and 5, 36 and 59, 3.6 and 2.5, 50 and 25, not the
    # rates of the sums
    assert [found[key] for key in KEYS[10::3]] == pytest.approx([30, 19, 12.5, 35, 3.5, 4, 47.5, 3.05, 37.5])
    # two values d apart: standard deviation d / sqrt(2), standard error d / 2
    assert (found["sequence_rate_low"], found["sequence_rate_high"]) == pytest.approx((30 - HALF, 30 + HALF))


def test_the_rates_of_the_discriminator():
    detected = {"replaced": 40, "replaced_detected": 10, "drawn_synonyms": 8, "drawn_synonyms_detected": 2}
    counts = FIRST._replace(**detected, originals=900, originals_detected=30, detections_ranked_right=9000)
    found = rate_row("a.pt", 1, "wn", [counts], detects=True)
    assert list(found) == [*KEYS, *(f"{rate}{end}" for rate in DETECTION for end in ("", "_low", "_high"))]
    assert [found[rate] for rate in DETECTION] == [25, 25, 25, 25]
    assert "discriminator: recall 25.00%, precision 25.00%, area under the ROC curve 25.00%" in rates_table([found])


def test_the_rates_of_a_teacher():
    said = {"teacher_as_likely": 60, "teacher_likely": 20, "teacher_probability": 4.0, "teacher_gold_probability": 8.0}
    first = FIRST._replace(**said)
    found = rate_row("a.pt", 1, "wn", [first], has_teacher=True)
    assert list(found) == [*KEYS, *(f"{rate}{end}" for rate in TEACHER for end in ("", "_low", "_high"))]
    assert [found[rate] for rate in TEACHER] == [75, 25, 5, 10]  # of 80 wrong predictions
    table = rates_table([found])
    assert "teacher: finds 75.00% of mismatches as likely as the gold token, and 25.00% at least 10% likely" in table
    other = first._replace(teacher_as_likely=68)
    found = rate_row("a.pt", 1, "wn", [first, other], has_teacher=True)
    values = by_mask_seed([first, other], has_teacher=True)
    assert {rate: sum(of_rate) / 2 for rate, of_rate in values.items()} == {rate: found[rate] for rate in values}
    assert values["accuracy"] == [100 * one.correct / one.masked for one in (first, other)]
    assert values["loss"] == [one.loss / one.masked for one in (first, other)]
    assert (found["teacher_as_likely_rate_low"], found["teacher_as_likely_rate_high"]) == pytest.approx(
        (80 - HALF, 80 + HALF)
    )
    table = rates_table([found])
    assert f"teacher: finds 80.00 ± {HALF:.2f}% of mismatches" in table
    assert max(map(len, table.splitlines())) <= 120
    assert "teacher" not in rates_table([row(first)])


def test_a_rate_with_denominator_zero_is_zero():
    found = row(Counts(sequences=4, corrected_sequences=0, masked=10, correct=10, corrected=0))
    assert (found["prediction_rate"], found["mismatches"], found["accuracy"]) == (0, 0, 100)
    found = row(Counts(0, 0, 0, 0, 0), Counts(0, 0, 0, 0, 0))
    assert [found[key] for key in KEYS[9:]] == [0] * 28
    assert rates_table([found])


def test_the_table_shows_the_rows():
    two = row(SECOND, SECOND, checkpoint="b.pt", updates=None)
    table = rates_table([row(FIRST, SECOND), row(FIRST, FIRST, table="vectors"), two])
    wordnet, vectors = table.split(LEGEND)[0].split("\n\n")[:2]
    assert wordnet.splitlines()[0] == "wn" and vectors.splitlines()[0] == "vectors"
    assert line_of(wordnet, "checkpoint_1_50.pt")[:5] == ["50", "34", "30.000", "±", f"{HALF:.3f}"]
    assert line_of(wordnet, "b.pt")[:2] == ["-", "36"]
    assert line_of(vectors, "checkpoint_1_50.pt")[:5] == ["50", "32", "25.000", "±", "0.000"]
    assert line_of(vectors, "checkpoint_1_50.pt")[-3:] == ["20.00", "±", "0.00"]
    assert "other text or another training run" in table
    assert "Masking seeds: 2. In total, 200 to 400 tokens were masked in 80 sequences." in table


def test_one_seed_is_shown_without_an_interval_and_with_the_papers_table_below():
    table = rates_table([row(FIRST)])
    assert line_of(table, "checkpoint_1_50.pt") == ["50", "16", "25.000", "20.000", "16.000", "20.00"]
    assert "±" not in table and HEADING not in table
    assert "Masking seeds: 1. In total, 100 tokens were masked in 40 sequences." in table
    ours, paper = rates_table([row(FIRST)], show_paper=True).split(HEADING)
    assert ours.split() == table.split()
    assert line_of(paper, "BERT-base, 6.25%") == ["-", "-", "6.90", "1.31", "-", "-"]
    assert line_of(paper, "BERT-large, 100%") == ["-", "-", "7.44", "1.60", "-", "-"]
    assert "wikitext-2-raw-v1" in paper and "200k steps" in paper


def test_many_checkpoints_in_deep_folders_fit_a_terminal():
    folders = ["/data/" + "deep/" * 40 + name for name in ("plain/checkpoints", "corrected/checkpoints")]
    large = Counts(10**6, 10**6, 10**8, 0, 10**8)
    name = "long" * 20
    rows = [
        row(large, FIRST, checkpoint=f"{folder}/{name}_checkpoint_{n}_{n}00000.pt", updates=n * 10**5, table=table)
        for folder in folders
        for n in range(1, 16)
        for table in "abc"
    ]
    lines = rates_table(rows, show_paper=True).splitlines()
    assert max(map(len, lines)) == 120
    assert not any(line.endswith(" ") for line in lines)
    for folder in ("deep/plain/checkpoints/", "deep/corrected/checkpoints/"):
        assert sum(line.startswith("…") and line.endswith(folder) for line in lines) == 3  # once a table
    numbers = [line for line in lines if line.startswith("…") and " ± " in line]
    assert len(numbers) == 90
    assert {len(line) for line in numbers} == {120}
    assert sum("_checkpoint_15_1500000.pt  1,500,000 " in line for line in numbers) == 6


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
