"""Tables of scores: each checkpoint with its spread over seeds, and compared with a baseline."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from ..reporting.layout import align, cell
from ..reporting.paper import AVERAGE, HEADING
from ..reporting.statistics import Comparison, compare, summarize

# checkpoint -> task or metric -> the scores of its seeds
Results = Mapping[str, Mapping[str, Sequence[float]]]

# for each line: its label, the key of the value, and the format
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


def score_table(
    results: Results,
    order: Sequence[str],
    baseline: str | None = None,
    paper: Mapping[str, Mapping[str, float]] | None = None,
    paper_note: str = "",
) -> str:
    """The table of scores in percent, for a terminal of 120 columns; undefined values are dashes.

    ``order`` is the order of all columns, with AVERAGE at the end if there shall be an average over tasks. Its spread
    is that of the averages of the seeds, and undefined if the tasks have different numbers of seeds; its best is the
    average of the best of each task. It is compared over the tasks that the baseline also has.
    """
    tasks = [task for task in order if any(task in scores for scores in results.values())]
    columns = [name for name in order if name in (*tasks, AVERAGE)]
    lines: list[str | list[str]] = []  # a string is a line by itself, a list has one cell for each column
    for checkpoint, scores in results.items():
        groups = [[task for task in tasks if task in scores and column in (task, AVERAGE)] for column in columns]
        summaries = [_summary([scores[task] for task in group]) for group in groups]
        lines += [checkpoint + _over(columns, groups, tasks), ["", *columns]]
        lines += [[label, *(cell(one.get(key), form) for one in summaries)] for label, key, form in SUMMARY]
        if baseline is not None and baseline != checkpoint:
            theirs = results[baseline]
            groups = [[task for task in group if task in theirs] for group in groups]
            compared = [
                _comparison([scores[task] for task in group], [theirs[task] for task in group]) for group in groups
            ]
            lines.append(f"  compared with {baseline}" + _over(columns, groups, tasks))
            lines += [[label, *(cell(one.get(key), form) for one in compared)] for label, key, form in COMPARISON]
        lines.append("")
    if baseline is not None:
        lines += [*LEGEND.splitlines(), ""]
    if paper:
        lines += [HEADING, ["", *columns]]
        # the paper averages over all tasks
        shown = columns if len(columns) == len(order) else tasks
        for name, values in paper.items():
            lines.append([f"  {name}", *(cell(values[n] if n in shown else None, ".1f") for n in columns)])
        lines += [*paper_note.splitlines(), ""]
    return "\n".join(align(lines)).rstrip("\n")


def _summary(scores: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Summarize the average over tasks; ``scores`` has a row of seeds for each task."""
    averages = _averages(scores)
    found = vars(summarize(averages)) if averages else {}
    return found | {"mean": fmean(map(fmean, scores)), "best": fmean(map(max, scores))} if scores else {}


def _comparison(scores: Sequence[Sequence[float]], baseline: Sequence[Sequence[float]]) -> dict[str, Any]:
    ours, theirs = _averages(scores), _averages(baseline)
    if ours and theirs:
        return vars(compare(ours, theirs))
    return vars(Comparison(fmean(map(fmean, scores)) - fmean(map(fmean, baseline)))) if scores else {}


def _averages(scores: Sequence[Sequence[float]]) -> list[float]:
    """The average over tasks for each seed; empty if the tasks have different numbers of seeds."""
    return [fmean(seed) for seed in zip(*scores)] if len({len(task) for task in scores}) == 1 else []


def _over(columns: Sequence[str], groups: Sequence[list[str]], tasks: list[str]) -> str:
    """The tasks that the average is over, unless it is over all."""
    if AVERAGE not in columns or groups[-1] == tasks:
        return ""
    return f" (average over {', '.join(groups[-1]) or 'no task'})"
