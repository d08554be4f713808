"""Tables of scores: each checkpoint with its spread over seeds, and compared with a baseline."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from ..reporting.layout import align
from ..reporting.paper import (
    AVERAGE,
    GLUE_NOTE,
    GLUE_ROWS,
    GLUE_TASKS,
    HEADING,
    SCORES_NOTE,
    SQUAD_METRICS,
    SQUAD_ROWS,
)
from ..reporting.statistics import Comparison, compare, summarize

# checkpoint -> task or metric -> the scores of its seeds
Results = Mapping[str, Mapping[str, Sequence[float]]]
Row = dict[str, Any]

# for each line: its label, the key in the rows, and the format
SUMMARY = (
    ("  n", "n", "d"),
    ("  mean", "mean", ".2f"),
    ("  sd", "sd", ".2f"),
    ("  median", "median", ".2f"),
    ("  best of n", "best", ".2f"),
)
COMPARISON = (
    ("    difference", "difference", "+.2f"),
    ("    95% from", "low", "+.2f"),
    ("    95% to", "high", "+.2f"),
    ("    seeds for 1.0", "seeds_needed", ",d"),
)
LEGEND = """\
95%: Welch's interval of the difference. It covers fine-tuning seeds only: other pre-training seeds would add to it.
seeds for 1.0: seeds per side for a two-sided 5% t test to detect a true difference of 1.0 with power 0.8.
Both are missing if the spread is unknown: one side has a single seed, or the seeds agree on both sides (sd 0)."""


def glue_table(results: Results, baseline: str | None = None, show_paper: bool = False) -> str:
    """The table of the main metrics of GLUE, in percent, for a terminal of 120 columns."""
    rows = glue_rows(results, baseline)
    return _table(rows, (*GLUE_TASKS, AVERAGE), baseline, GLUE_ROWS if show_paper else {}, GLUE_NOTE)


def squad_table(results: Results, baseline: str | None = None, show_paper: bool = False) -> str:
    """The table of the SQuAD metrics "EM" and "F1", in percent."""
    rows = squad_rows(results, baseline)
    return _table(rows, SQUAD_METRICS, baseline, SQUAD_ROWS if show_paper else {}, SCORES_NOTE)


def glue_rows(results: Results, baseline: str | None = None) -> list[Row]:
    """The numbers of the table for JSON or CSV: a row for each checkpoint and task, and for its average over tasks.

    Undefined values are None. The spread of an average is computed from the average of each seed, and is None if the
    tasks have different numbers of seeds; its best is the average of the best of each task. ``tasks`` names the tasks
    of the row, and ``compared_tasks`` those that the baseline also has, which are compared.
    """
    return _rows(results, baseline, GLUE_TASKS, average=True)


def squad_rows(results: Results, baseline: str | None = None) -> list[Row]:
    """The numbers of the table for JSON or CSV, as in ``glue_rows``: a row for each checkpoint and metric."""
    return _rows(results, baseline, SQUAD_METRICS, average=False)


def _rows(results: Results, baseline: str | None, order: Sequence[str], average: bool) -> list[Row]:
    rows = []
    for checkpoint, scores in results.items():
        tasks = sorted(scores, key=order.index)
        groups = [(task, [task]) for task in tasks] + ([(AVERAGE, tasks)] if average else [])
        for name, group in groups:
            row = {"checkpoint": checkpoint, "task": name, "tasks": ", ".join(group)}
            row |= _summary([scores[task] for task in group])
            compared = []
            if baseline not in (None, checkpoint):
                compared = [task for task in group if task in results[baseline]]
            found = Comparison(math.nan)
            if compared:
                found = _comparison([scores[task] for task in compared], [results[baseline][task] for task in compared])
            row |= {"compared_tasks": ", ".join(compared), **vars(found)}
            rows.append({key: None if value != value else value for key, value in row.items()})
    return rows


def _summary(scores: Sequence[Sequence[float]]) -> Row:
    """Summarize the average over tasks; ``scores`` has a row of seeds for each task."""
    averages = _averages(scores)
    found = vars(summarize(averages)) if averages else dict.fromkeys(("n", "mean", "sd", "median"))
    return {**found, "mean": fmean(map(fmean, scores)), "best": fmean(map(max, scores))}


def _comparison(scores: Sequence[Sequence[float]], baseline: Sequence[Sequence[float]]) -> Comparison:
    ours, theirs = _averages(scores), _averages(baseline)
    if ours and theirs:
        return compare(ours, theirs)
    return Comparison(fmean(map(fmean, scores)) - fmean(map(fmean, baseline)))


def _averages(scores: Sequence[Sequence[float]]) -> list[float] | None:
    """The average over tasks for each seed, or None if the tasks have different numbers of seeds."""
    return [fmean(seed) for seed in zip(*scores)] if len({len(task) for task in scores}) == 1 else None


def _table(
    rows: Sequence[Row],
    order: Sequence[str],
    baseline: str | None,
    paper: Mapping[str, Mapping[str, float]],
    paper_note: str,
) -> str:
    """Format the rows as blocks; a line is a heading (a string) or a list with one cell for each column."""
    columns = [name for name in order if any(row["task"] == name for row in rows)]
    all_tasks = ", ".join(name for name in columns if name != AVERAGE)
    lines: list[str | list[str]] = []
    for checkpoint in dict.fromkeys(row["checkpoint"] for row in rows):
        found = {row["task"]: row for row in rows if row["checkpoint"] == checkpoint}
        lines += [checkpoint + _over(found, "tasks", all_tasks), ["", *columns]]
        lines += [_line(*row, found, columns) for row in SUMMARY]
        if baseline not in (None, checkpoint):
            lines.append(f"  compared with {baseline}" + _over(found, "compared_tasks", all_tasks))
            lines += [_line(*row, found, columns) for row in COMPARISON]
        lines.append("")
    if baseline is not None:
        lines += [*LEGEND.splitlines(), ""]
    if paper:
        lines += [HEADING, ["", *columns]]
        # the paper averages over all tasks
        shown = [name for name in columns if name != AVERAGE or set(columns) == set(order)]
        for name, values in paper.items():
            lines.append([f"  {name}", *(_cell(values[n] if n in shown else None, ".1f") for n in columns)])
        lines += [*paper_note.splitlines(), ""]
    return "\n".join(align(lines)).rstrip("\n")


def _line(label: str, key: str, form: str, found: Mapping[str, Row], columns: Sequence[str]) -> list[str]:
    return [label, *(_cell(found.get(name, {}).get(key), form) for name in columns)]


def _over(found: Mapping[str, Row], key: str, all_tasks: str) -> str:
    """The tasks that an average is over, unless it is over all tasks."""
    tasks = found[AVERAGE][key] if AVERAGE in found else all_tasks
    return "" if tasks == all_tasks else f" (average over {tasks or 'no task'})"


def _cell(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
