"""Tables: numbers computed by hand, and the layout."""

import math

import pytest

from tn_fairseq.tools.evaluation.score_tables import COMPARISON, LEGEND, score_table
from tn_fairseq.tools.reporting.paper import (
    AVERAGE,
    GLUE_NOTE,
    GLUE_ROWS,
    GLUE_TASKS,
    HEADING,
    SQUAD_METRICS,
    SQUAD_ROWS,
)
from tn_fairseq.tools.reporting.statistics import compare

GLUE = (*GLUE_TASKS, AVERAGE)
PAPER = GLUE_ROWS, GLUE_NOTE
RESULTS = {
    "plain": {"RTE": [60.0, 62.0, 67.0], "CoLA": [50.0, 54.0, 52.0]},
    "corrected": {"CoLA": [54.0, 55.0, 59.0], "RTE": [64.0, 63.0, 65.0]},
}


def cells(table: str, label: str, number: int = 0) -> list[str]:
    """The numbers of the line with this label; number 1 is the second such line."""
    lines = [line.strip() for line in table.splitlines() if line.strip().startswith(label)]
    return lines[number].removeprefix(label).split()


def comparison(table: str) -> list[list[str]]:
    """What the table says about the difference of each column."""
    return list(map(list, zip(*(cells(table, label.strip()) for label, _, _ in COMPARISON))))


def expected(ours: list[float], theirs: list[float]) -> list[str]:
    found = compare(ours, theirs)
    return [f"{found.difference:+.2f}", f"{found.low:+.2f}", f"{found.high:+.2f}", f"{found.seeds_needed:,d}"]


def test_tasks_are_in_the_papers_order_before_the_average():
    results = {"plain": {"MRPC": [50.0], "SST-2": [50.0]}, "corrected": {"MRPC": [50.0], "CoLA": [50.0]}}
    assert score_table(results, GLUE).splitlines()[1].split() == ["CoLA", "SST-2", "MRPC", AVERAGE]


def test_tasks_and_averages_by_hand():
    table = score_table(RESULTS, GLUE)
    assert table.startswith("plain\n") and "difference" not in table and "Welch" not in table and HEADING not in table
    # averages of the seeds: 55, 58, 59.5
    sds = [math.sqrt(square / 2) for square in (4 + 4, 9 + 1 + 16, 2.5**2 + 0.5**2 + 2**2)]
    assert [cells(table, label) for label in ("n", "mean", "sd", "median", "best of n")] == [
        ["3"] * 3,
        ["52.00", "63.00", "57.50"],
        [f"{sd:.2f}" for sd in sds],
        ["52.00", "62.00", "58.00"],
        ["54.00", "67.00", "60.50"],  # the average of the best of each task
    ]
    assert cells(table, "mean", 1) == ["56.00", "64.00", "60.00"]


def test_each_task_and_the_averages_of_seeds_are_compared():
    table = score_table(RESULTS, GLUE, "plain")
    assert table.count("compared with plain\n") == 1 and LEGEND in table
    assert comparison(table) == [
        expected([54.0, 55.0, 59.0], [50.0, 54.0, 52.0]),
        expected([64.0, 63.0, 65.0], [60.0, 62.0, 67.0]),
        expected([59.0, 59.0, 62.0], [55.0, 58.0, 59.5]),
    ]


def test_an_average_over_different_numbers_of_seeds_has_no_spread():
    table = score_table({**RESULTS, "plain": {"CoLA": [50.0, 54.0], "RTE": [60.0, 62.0, 67.0]}}, GLUE, "plain")
    labels = ("n", "mean", "sd", "median", "best of n")
    assert [cells(table, label)[2] for label in labels] == ["-", "57.50", "-", "-", "60.50"]
    cola, _, average = comparison(table)
    assert average == ["+2.50", "-", "-", "-"] and "-" not in cola


def test_the_comparison_of_averages_uses_only_common_tasks():
    results = {**RESULTS, "corrected": {**RESULTS["corrected"], "MNLI": [99.0, 99.0, 99.0]}}
    table = score_table(results, GLUE, "plain")
    assert table.startswith("plain (average over CoLA, RTE)\n") and "\ncorrected\n" in table
    assert cells(table, "mean") == ["52.00", "-", "63.00", "57.50"]
    assert "\n  compared with plain (average over CoLA, RTE)\n" in table
    _, mnli, _, average = comparison(table)
    assert mnli == ["-"] * 4 and average == expected([59.0, 59.0, 62.0], [55.0, 58.0, 59.5])


def test_no_task_in_common():
    table = score_table({"plain": {"CoLA": [50.0]}, "other": {"RTE": [60.0]}}, GLUE, "plain")
    assert "compared with plain (average over no task)" in table
    assert comparison(table) == [["-"] * 4] * 3


def test_one_seed_has_no_spread():
    results = {"plain": {"CoLA": [50.0], "RTE": [60.0]}, "other": {"CoLA": [51.0], "RTE": [63.0]}}
    table = score_table(results, GLUE, "plain")
    assert cells(table, "n") == ["1"] * 3 and cells(table, "sd") == ["-"] * 3
    assert cells(table, "mean") == ["50.00", "60.00", "55.00"]
    assert comparison(table) == [[difference, "-", "-", "-"] for difference in ("+1.00", "+3.00", "+2.00")]


def test_seeds_that_agree_have_no_interval():
    results = {"plain": {"CoLA": [0.0] * 2, "RTE": [1.0, 2.0]}, "other": {"CoLA": [0.0] * 2, "RTE": [2.0, 4.0]}}
    table = score_table(results, GLUE, "plain")
    assert cells(table, "sd")[0] == cells(table, "sd", 1)[0] == "0.00"
    cola, *others = comparison(table)
    assert cola == ["+0.00", "-", "-", "-"] and not any("-" in cells for cells in others)


def test_columns_are_aligned_and_all_tasks_fit_a_terminal():
    results = {name: {task: [100.0, 0.0] for task in GLUE_TASKS} for name in ("plain", "corrected")}
    lines = [line for line in score_table(results, GLUE, "plain", *PAPER).splitlines() if line]
    assert max(map(len, lines)) <= 120
    assert len({len(line) for line in lines if line not in LEGEND and line[-1].isdigit()}) == 1
    assert not any(line.endswith(" ") for line in lines)


@pytest.mark.parametrize("tasks, average", [(("CoLA", "RTE"), "-"), (GLUE_TASKS, "80.4")])
def test_the_papers_rows_are_shown_below_their_heading(tasks, average):
    """With the paper's average, which is over all tasks, only if ours is."""
    results = {"plain": {task: [50.0] for task in tasks}}
    ours, paper = score_table(results, GLUE, None, *PAPER).split(HEADING)
    assert ours.split() == score_table(results, GLUE).split()
    small = cells(paper, "ELECTRA-small  ")
    assert (small[0], small[-2], small[-1]) == ("56.8", "68.5", average) and "ELECTRA-Small-OWT" in paper
    assert all(f"\n  {name}  " in paper for name in GLUE_ROWS)


def test_squad():
    results = {"plain": {"F1": [80.0, 82.0], "EM": [70.0, 71.0]}, "other": {"EM": [72.0, 73.0], "F1": [83.0, 84.0]}}
    table = score_table(results, SQUAD_METRICS, "plain", SQUAD_ROWS)
    assert table.splitlines()[1].split() == ["EM", "F1"] and "average" not in table
    assert cells(table, "mean") == ["70.50", "81.00"]
    assert cells(table, "difference") == ["+2.00", "+2.50"]
    assert cells(table, "ELECTRA-small HC") == ["77.7", "85.6"]
