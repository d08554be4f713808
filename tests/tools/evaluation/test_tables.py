"""Scores over seeds: numbers computed by hand, and the layout."""

import math

import pytest

from tn_fairseq.tools.evaluation.score_tables import score_rows, scores_text
from tn_fairseq.tools.reporting.comparison import Comparison
from tn_fairseq.tools.reporting.paper import AVERAGE, GLUE_NOTE, GLUE_ROWS, GLUE_TASKS, SQUAD_METRICS, SQUAD_ROWS
from tn_fairseq.tools.reporting.statistics import compare, holm, mean_interval

GLUE = [(task, "score") for task in GLUE_TASKS]
RESULTS = {
    "plain": {"RTE": [60.0, 62.0, 67.0], "CoLA": [50.0, 54.0, 52.0]},
    "corrected": {"CoLA": [54.0, 55.0, 59.0], "RTE": [64.0, 63.0, 65.0]},
}
BOTH = "CoLA, RTE"


def rows_of(
    results: dict[str, dict[str, list[float]]], baseline: str | None = None
) -> dict[tuple[str, str], Comparison]:
    """The rows by checkpoint and task; an average has the names of its tasks."""
    keyed = {name: {(task, "score"): seeds for task, seeds in scores.items()} for name, scores in results.items()}
    rows = score_rows(keyed, GLUE, baseline, averages=True)
    assert all((row.measure == AVERAGE) == (row.data not in GLUE_TASKS or row.measure == AVERAGE) for row in rows)
    return {(row.name, f"{AVERAGE} of {row.data}" if row.measure == AVERAGE else row.data): row for row in rows}


def check_difference(row: Comparison, ours: list[float], theirs: list[float]) -> None:
    found = compare(ours, theirs)
    assert (row.difference, row.difference_low, row.difference_high) == (found.difference, found.low, found.high)
    assert (row.p, row.seeds_needed, row.baseline) == (found.p, found.seeds_needed, "plain")


def test_tasks_are_in_the_papers_order_before_the_averages():
    results = {"plain": {"MRPC": [50.0], "SST-2": [50.0]}, "corrected": {"MRPC": [50.0], "CoLA": [50.0]}}
    tasks = dict.fromkeys(task for _, task in rows_of(results))
    assert list(tasks) == ["CoLA", "SST-2", "MRPC", "average of SST-2, MRPC", "average of CoLA, MRPC"]


def test_tasks_and_averages_by_hand():
    rows = rows_of(RESULTS)
    # averages of the seeds: 55, 58, 59.5
    sds = [math.sqrt(square / 2) for square in (4 + 4, 9 + 1 + 16, 2.5**2 + 0.5**2 + 2**2)]
    of_plain = [rows["plain", task] for task in ("CoLA", "RTE", f"average of {BOTH}")]
    assert [(row.seeds, row.value, row.median) for row in of_plain] == [(3, 52, 52), (3, 63, 62), (3, 57.5, 58)]
    assert [row.seed_sd for row in of_plain] == pytest.approx(sds)
    assert [row.best for row in of_plain] == [54, 67, 60.5]  # the average of the best of each task
    assert (of_plain[0].low, of_plain[0].high) == mean_interval([50.0, 54.0, 52.0])
    of_corrected = [rows["corrected", task].value for task in ("CoLA", "RTE", f"average of {BOTH}")]
    assert of_corrected == [56, 64, 60]
    assert all(row.baseline is row.difference is row.p is row.holm is None for row in rows.values())


def test_each_task_and_the_averages_of_seeds_are_compared():
    rows = rows_of(RESULTS, "plain")
    check_difference(rows["corrected", "CoLA"], [54.0, 55.0, 59.0], [50.0, 54.0, 52.0])
    check_difference(rows["corrected", "RTE"], [64.0, 63.0, 65.0], [60.0, 62.0, 67.0])
    check_difference(rows["corrected", f"average of {BOTH}"], [59.0, 59.0, 62.0], [55.0, 58.0, 59.5])
    compared = [row for (name, _), row in rows.items() if name == "corrected"]
    assert [row.holm for row in compared] == holm([row.p for row in compared])
    assert rows["plain", "CoLA"].difference is None


def test_an_average_over_different_numbers_of_seeds_has_no_spread():
    rows = rows_of({**RESULTS, "plain": {"CoLA": [50.0, 54.0], "RTE": [60.0, 62.0, 67.0]}}, "plain")
    average = rows["plain", f"average of {BOTH}"]
    assert (average.seeds, average.value, average.median, average.best) == (None, 57.5, None, 60.5)
    assert average.seed_sd is average.low is average.high is None
    compared = rows["corrected", f"average of {BOTH}"]
    assert (compared.difference, compared.difference_low, compared.p, compared.seeds_needed) == (2.5, None, None, None)
    assert rows["corrected", "CoLA"].difference_low is not None


def test_the_comparison_of_averages_uses_only_common_tasks():
    results = {**RESULTS, "corrected": {**RESULTS["corrected"], "MNLI": [99.0, 99.0, 99.0]}}
    rows = rows_of(results, "plain")
    check_difference(rows["corrected", f"average of {BOTH}"], [59.0, 59.0, 62.0], [55.0, 58.0, 59.5])
    alone = rows["corrected", "average of CoLA, MNLI, RTE"]
    assert alone.value == pytest.approx((56 + 99 + 64) / 3) and alone.baseline is None
    assert ("plain", "average of CoLA, MNLI, RTE") not in rows and rows["corrected", "MNLI"].baseline is None


def test_no_task_in_common():
    rows = rows_of({"plain": {"CoLA": [50.0]}, "other": {"RTE": [60.0]}}, "plain")
    assert len(rows) == 4 and all(row.difference is None for row in rows.values())


def test_one_seed_has_no_spread():
    results = {"plain": {"CoLA": [50.0], "RTE": [60.0]}, "other": {"CoLA": [51.0], "RTE": [63.0]}}
    rows = rows_of(results, "plain")
    assert {(row.seeds, row.seed_sd, row.low, row.difference_low, row.p) for row in rows.values()} == {
        (1, None, None, None, None)
    }
    assert [rows["other", task].difference for task in ("CoLA", "RTE", f"average of {BOTH}")] == [1, 3, 2]


def test_seeds_that_agree_have_no_interval():
    results = {"plain": {"CoLA": [0.0] * 2, "RTE": [1.0, 2.0]}, "other": {"CoLA": [0.0] * 2, "RTE": [2.0, 4.0]}}
    rows = rows_of(results, "plain")
    assert rows["plain", "CoLA"].seed_sd == 0 == rows["other", "CoLA"].difference
    assert rows["other", "CoLA"].difference_low is rows["other", "CoLA"].p is None
    assert None not in (rows["other", "RTE"].difference_low, rows["other", "RTE"].p)


def test_all_tasks_fit_a_terminal():
    results = {name: {score: [100.0, 0.0] for score in GLUE} for name in ("plain", "corrected")}
    rows = score_rows(results, GLUE, "plain", averages=True)
    text = scores_text(rows, (*GLUE_TASKS, AVERAGE), GLUE_ROWS, GLUE_NOTE)
    assert max(map(len, text.splitlines())) <= 120 and not any(line.endswith(" ") for line in text.splitlines())
    for heading in ("seeds", "value", "sd", "median", "best", "difference", "p", "Holm", "seeds for 1.0"):
        assert heading in text.splitlines()[0]
    assert "CoLA: score (%)\n  plain" in text and "RTE: average (%)\n  plain" in text


def test_the_papers_rows_are_shown_below_their_heading():
    rows = score_rows({"plain": {("CoLA", "score"): [50.0]}}, GLUE)
    ours, paper = scores_text(rows, ("CoLA", "RTE"), GLUE_ROWS, GLUE_NOTE).split("\n\nfrom the paper (not ours)\n")
    assert ours == scores_text(rows)
    lines = [line.split() for line in paper.splitlines()]
    assert lines[0] == ["CoLA", "RTE"] and ["ELECTRA-small", "56.8", "68.5"] in lines and "ELECTRA-Small-OWT" in paper
    assert all(f"\n  {name}  " in paper for name in GLUE_ROWS)


def test_squad():
    metrics = [("SQuAD", name) for name in SQUAD_METRICS]
    results = {
        "plain": dict(zip(metrics, ([70.0, 71.0], [80.0, 82.0]))),
        "other": dict(zip(metrics, ([72.0, 73.0], [83.0, 84.0]))),
    }
    rows = score_rows(results, metrics, "plain")
    assert [(row.measure, row.name, row.value) for row in rows] == [
        ("EM", "plain", 70.5),
        ("EM", "other", 72.5),
        ("F1", "plain", 81),
        ("F1", "other", 83.5),
    ]
    assert [row.difference for row in rows] == [None, 2, None, 2.5]
    text = scores_text(rows, SQUAD_METRICS, SQUAD_ROWS)
    assert "SQuAD: EM (%)" in text and ["ELECTRA-small", "HC", "77.7", "85.6"] in map(str.split, text.splitlines())
