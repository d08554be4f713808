"""Tables: rows computed by hand, and the printed text."""

import json
import math

import pytest

from tn_fairseq.evaluation.tables import LEGEND, glue_rows, glue_table, squad_rows, squad_table
from tn_fairseq.reporting.paper import AVERAGE, GLUE_ROWS, GLUE_TASKS, HEADING
from tn_fairseq.reporting.statistics import compare

RESULTS = {
    "plain": {"RTE": [60.0, 62.0, 67.0], "CoLA": [50.0, 54.0, 52.0]},
    "corrected": {"CoLA": [54.0, 55.0, 59.0], "RTE": [64.0, 63.0, 65.0]},
}
COUNTS = ("n", "sd", "median")
COMPARED = ("difference", "low", "high", "seeds_needed")


def row_of(rows: list[dict], checkpoint: str, task: str) -> dict:
    (row,) = [row for row in rows if (row["checkpoint"], row["task"]) == (checkpoint, task)]
    return row


def cells(table: str, label: str, number: int = 0) -> list[str]:
    """The numbers of the line with this label; number 1 is the second such line."""
    lines = [line.strip() for line in table.splitlines() if line.strip().startswith(label)]
    return lines[number].removeprefix(label).split()


def test_tasks_are_in_the_papers_order_before_the_average():
    results = {name: {task: [50.0] for task in ("MRPC", "CoLA", "SST-2")} for name in ("plain", "corrected")}
    assert [(row["checkpoint"], row["task"]) for row in glue_rows(results)] == [
        (name, task) for name in ("plain", "corrected") for task in ("CoLA", "SST-2", "MRPC", AVERAGE)
    ]


def test_a_task_by_hand():
    row = row_of(glue_rows(RESULTS), "plain", "RTE")
    assert {key: row[key] for key in ("n", "mean", "median", "best")} == {"n": 3, "mean": 63, "median": 62, "best": 67}
    assert row["sd"] == pytest.approx(math.sqrt((9 + 1 + 16) / 2))


def test_an_average_by_hand():
    # averages of the seeds: 55, 58, 59.5
    row = row_of(glue_rows(RESULTS), "plain", AVERAGE)
    assert (row["n"], row["mean"], row["median"]) == (3, 57.5, 58)
    assert row["sd"] == pytest.approx(math.sqrt((2.5**2 + 0.5**2 + 2**2) / 2))
    assert row["best"] == (54 + 67) / 2  # the average of the best of each task
    assert row["tasks"] == "CoLA, RTE"


def test_an_average_over_different_numbers_of_seeds_has_no_spread():
    results = {**RESULTS, "plain": {"CoLA": [50.0, 54.0], "RTE": [60.0, 62.0, 67.0]}}
    rows = glue_rows(results, "plain")
    row = row_of(rows, "plain", AVERAGE)
    assert (row["mean"], row["best"]) == (57.5, 60.5)
    assert [row[key] for key in COUNTS] == [None] * 3
    compared = row_of(rows, "corrected", AVERAGE)
    assert compared["difference"] == pytest.approx(60 - 57.5)
    assert [compared[key] for key in COMPARED[1:]] == [None] * 3
    assert row_of(rows, "corrected", "CoLA")["low"] is not None


def test_each_task_and_the_averages_of_seeds_are_compared():
    rows = glue_rows(RESULTS, "plain")
    for task, ours, theirs in [
        ("CoLA", [54.0, 55.0, 59.0], [50.0, 54.0, 52.0]),
        (AVERAGE, [59.0, 59.0, 62.0], [55.0, 58.0, 59.5]),
    ]:
        row = row_of(rows, "corrected", task)
        assert {key: row[key] for key in COMPARED} == vars(compare(ours, theirs))
    assert [row_of(rows, "plain", AVERAGE)[key] for key in COMPARED] == [None] * 4


def test_without_a_baseline_there_is_no_comparison():
    assert {row[key] for row in glue_rows(RESULTS) for key in COMPARED} == {None}
    table = glue_table(RESULTS)
    assert "difference" not in table and "Welch" not in table


def test_the_comparison_of_averages_uses_only_common_tasks():
    results = {**RESULTS, "corrected": {**RESULTS["corrected"], "MNLI": [99.0, 99.0, 99.0]}}
    row = row_of(glue_rows(results, "plain"), "corrected", AVERAGE)
    assert row["compared_tasks"] == "CoLA, RTE"
    assert row["difference"] == pytest.approx(60 - 57.5)
    assert row["tasks"] == "CoLA, MNLI, RTE"
    assert row_of(glue_rows(results, "plain"), "corrected", "MNLI")["difference"] is None
    table = glue_table(results, "plain")
    assert "\n  compared with plain (average over CoLA, RTE)\n" in table
    assert table.startswith("plain (average over CoLA, RTE)\n")  # not all tasks of the table
    assert "\ncorrected\n" in table


def test_no_task_in_common():
    results = {"plain": {"CoLA": [50.0]}, "other": {"RTE": [60.0]}}
    table = glue_table(results, "plain")
    assert "compared with plain (average over no task)" in table
    assert cells(table, "difference") == ["-"] * 3


def test_one_seed_has_no_spread():
    table = glue_table({"plain": {"CoLA": [50.0], "RTE": [60.0]}, "other": {"CoLA": [51.0], "RTE": [63.0]}}, "plain")
    assert cells(table, "n") == ["1"] * 3
    assert cells(table, "mean") == ["50.00", "60.00", "55.00"]
    assert cells(table, "sd") == cells(table, "95% from") == cells(table, "seeds for 1.0") == ["-"] * 3
    assert cells(table, "difference") == ["+1.00", "+3.00", "+2.00"]


def test_seeds_that_agree_have_no_interval():
    table = glue_table(
        {"plain": {"CoLA": [0.0] * 2, "RTE": [1.0, 2.0]}, "other": {"CoLA": [0.0] * 2, "RTE": [2.0, 4.0]}}, "plain"
    )
    assert cells(table, "sd")[0] == cells(table, "sd", 1)[0] == "0.00"
    assert cells(table, "difference")[0] == "+0.00"
    for label in ("95% from", "95% to", "seeds for 1.0"):
        agreeing, *spread = cells(table, label)
        assert agreeing == "-" and "-" not in spread
    assert "the seeds agree on both sides (sd 0)" in table


def test_rows_are_json():
    rows = glue_rows({"plain": {"CoLA": [50.0]}}, "plain") + squad_rows({"plain": {"EM": [1.0], "F1": [2.0]}})
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert len({tuple(row) for row in rows}) == 1  # CSV requires the same keys


def test_the_table_shows_the_rows():
    table = glue_table(RESULTS, "plain")
    lines = table.splitlines()
    assert lines[0] == "plain"
    assert lines[1].split() == ["CoLA", "RTE", "average"]
    assert cells(table, "mean", 1) == ["56.00", "64.00", "60.00"]
    assert cells(table, "median") == ["52.00", "62.00", "58.00"]
    assert cells(table, "best of n") == ["54.00", "67.00", "60.50"]
    assert cells(table, "difference") == ["+4.00", "+1.00", "+2.50"]
    found = compare([59.0, 59.0, 62.0], [55.0, 58.0, 59.5])
    assert cells(table, "95% from")[-1] == f"{found.low:+.2f}"
    assert cells(table, "95% to")[-1] == f"{found.high:+.2f}"
    assert cells(table, "seeds for 1.0")[-1] == str(found.seeds_needed)
    assert HEADING not in table


def test_a_missing_task_is_shown_as_a_dash():
    table = glue_table({"plain": {"CoLA": [50.0], "RTE": [60.0]}, "other": {"CoLA": [51.0]}})
    assert cells(table, "mean", 1) == ["51.00", "-", "51.00"]
    assert "\nother (average over CoLA)\n" in table


def test_columns_are_aligned_and_all_tasks_fit_a_terminal():
    results = {name: {task: [100.0, 0.0] for task in GLUE_TASKS} for name in ("plain", "corrected")}
    lines = [line for line in glue_table(results, "plain", show_paper=True).splitlines() if line]
    assert max(map(len, lines)) <= 120
    ends = {len(line) for line in lines if line not in LEGEND and line[-1].isdigit()}
    assert len(ends) == 1
    assert not any(line.endswith(" ") for line in lines)


def test_the_papers_rows_are_shown_below_their_heading():
    ours, paper = glue_table(RESULTS, show_paper=True).split(HEADING)
    assert ours.split() == glue_table(RESULTS).split()
    # the paper's average is over eight tasks, not two
    assert cells(paper, "ELECTRA-small  ") == ["56.8", "68.5", "-"]
    assert "ELECTRA-Small-OWT" in paper
    assert all(f"\n  {name}  " in paper for name in GLUE_ROWS)


def test_the_papers_averages_are_shown_with_averages_over_all_tasks():
    table = glue_table({"plain": {task: [50.0] for task in GLUE_TASKS}}, show_paper=True)
    assert cells(table, "ELECTRA-small HC  ") == "62.0 89.8 87.0 86.7 89.0 80.4 88.0 67.9 81.4".split()


def test_squad():
    results = {"plain": {"F1": [80.0, 82.0], "EM": [70.0, 71.0]}, "other": {"EM": [72.0, 73.0], "F1": [83.0, 84.0]}}
    table = squad_table(results, "plain", show_paper=True)
    assert table.splitlines()[1].split() == ["EM", "F1"]
    assert cells(table, "mean") == ["70.50", "81.00"]
    assert cells(table, "difference") == ["+2.00", "+2.50"]
    assert "average" not in table
    assert cells(table, "ELECTRA-small HC") == ["77.7", "85.6"]
    assert "OWT" not in table
    assert [row["task"] for row in squad_rows(results)] == ["EM", "F1"] * 2
