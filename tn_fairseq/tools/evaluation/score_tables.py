"""Scores over the seeds of fine-tuning: each checkpoint with its spread, and compared with a baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from ..reporting.comparison import Comparison, comparison_lines, corrected, significant
from ..reporting.layout import align, cell
from ..reporting.paper import AVERAGE, HEADING
from ..reporting.statistics import Difference, compare, mean_interval, summarize

Score = tuple[str, str]  # the data, such as MRPC, and the metric
# checkpoint -> score -> those of its seeds
Results = Mapping[str, Mapping[Score, Sequence[float]]]

NOTE = """\
±: half the width of a 95% interval: Student's of a mean, and Welch's of a difference, whose p value is that of Welch's
t test. They cover fine-tuning seeds only: other pre-training seeds would add to them. They are missing if the spread is
unknown: one side has a single seed, or the seeds agree on both sides (sd 0). An average over tasks is that of each
seed; its best is the average of the best of each task."""


def score_rows(
    results: Results, order: Sequence[Score], baseline: str | None = None, averages: bool = False
) -> list[Comparison]:
    """A row for each score and each checkpoint that has it, in percent, in the ``order`` of the scores.

    With ``averages``, also of the average over the tasks of each checkpoint, and over those that it shares with the
    baseline. Its spread is that of the averages of the seeds, and undefined if the tasks have different numbers of
    seeds; its best is the average of the best of each task.
    """
    scores = [score for score in order if any(score in checkpoint_scores for checkpoint_scores in results.values())]
    rows = []
    for score in scores:
        rows += _compared(score, [score], results, baseline)
    for group in _groups(results, scores, baseline) if averages else ():
        rows += _compared((", ".join(data for data, _ in group), AVERAGE), group, results, baseline)
    return corrected(rows)


def _groups(results: Results, scores: Sequence[Score], baseline: str | None) -> list[tuple[Score, ...]]:
    """The scores to average over: those of each checkpoint, and those that it has in common with the baseline."""
    groups = []
    for checkpoint_scores in results.values():
        group = tuple(score for score in scores if score in checkpoint_scores)
        groups += [group] if baseline is None else [group, tuple(one for one in group if one in results[baseline])]
    return [group for group in dict.fromkeys(groups) if group]


def _compared(about: Score, group: Sequence[Score], results: Results, baseline: str | None) -> list[Comparison]:
    """The rows of the average over a group of scores, for the checkpoints that have all of them."""
    having = {name: [scores[one] for one in group] for name, scores in results.items() if scores.keys() >= {*group}}
    rows = []
    for name, scores in having.items():
        row = _row(name, about, scores)
        if baseline in having and baseline != name:
            difference = _difference(scores, having[baseline])
            row = replace(
                row,
                baseline=baseline,
                difference=difference.difference,
                difference_low=difference.low,
                difference_high=difference.high,
                p=difference.p,
                seeds_needed=difference.seeds_needed,
            )
        rows.append(row)
    return rows


def _row(name: str, about: Score, scores: Sequence[Sequence[float]]) -> Comparison:
    """The average without a comparison; ``scores`` has a row of seeds for each task."""
    averages = _averages(scores)
    row = Comparison(
        name=name,
        data=about[0],
        measure=about[1],
        unit="%",
        seeds=None,
        value=fmean(map(fmean, scores)),
        best=fmean(map(max, scores)),
    )
    if not averages:
        return row
    summary, (low, high) = summarize(averages), mean_interval(averages)
    seed_sd = summary.sd if summary.n > 1 else None
    return replace(row, seeds=summary.n, low=low, high=high, seed_sd=seed_sd, median=summary.median)


def _difference(scores: Sequence[Sequence[float]], baseline: Sequence[Sequence[float]]) -> Difference:
    ours, theirs = _averages(scores), _averages(baseline)
    if ours and theirs:
        return compare(ours, theirs)
    return Difference(fmean(map(fmean, scores)) - fmean(map(fmean, baseline)))


def _averages(scores: Sequence[Sequence[float]]) -> list[float]:
    """The average over tasks for each seed; empty if the tasks have different numbers of seeds."""
    return [fmean(seed) for seed in zip(*scores)] if len({len(task) for task in scores}) == 1 else []


def scores_text(
    rows: Sequence[Comparison],
    columns: Sequence[str] = (),
    paper: Mapping[str, Mapping[str, float]] | None = None,
    paper_note: str = "",
) -> str:
    """The rows for a terminal of 120 columns, and the ``columns`` of the paper's numbers below them."""
    blocks = [[*comparison_lines(rows), "", *NOTE.splitlines(), *significant(rows)]]
    if paper:
        lines = [["", *columns]]
        for name, values in paper.items():
            lines.append([f"  {name}", *(cell(values[column], ".1f") for column in columns)])
        blocks.append([HEADING, *align(lines), *paper_note.splitlines()])
    return "\n\n".join(map("\n".join, blocks))
