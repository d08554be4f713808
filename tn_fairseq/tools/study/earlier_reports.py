"""Reports of the evaluation as version 0.2.0 wrote them, which a study that goes on may have measured."""

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from ...core.errors import InputError
from ...core.files import read_json
from ..reporting.comparison import ATTACKED, DROP, ORIGINAL, UNDER, Comparison, read_report
from ..reporting.paper import AVERAGE, SQUAD_METRICS

_SAME = ("updates", "data", "measure", "part", "seeds", "items", "value", "low", "high", "seed_sd", "baseline")
_DIFFERENCE = ("difference", "difference_low", "difference_high")


def read_any_report(path: Path, remedy: str) -> list[Comparison]:
    """The rows of a report of this version or of 0.2.0; raises InputError, with what to do, for any other file."""
    content = read_json(path, remedy)
    try:
        if isinstance(content, list):  # GLUE and SQuAD
            return _fine_tuning_rows(content)
        if "checkpoints" in content:
            return [_words_row(row) for row in content["checkpoints"]]
        if "scores" in content:
            return [row for scores in content["scores"] for row in _attack_rows(scores)]
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: not a report; {remedy}") from None
    return read_report(path, remedy)


def _fine_tuning_rows(runs: list[dict[str, Any]]) -> list[Comparison]:
    """The means over the seeds of one checkpoint, and on GLUE their average over the tasks."""
    scores: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        metrics = [metric for metric in run["valid"] if metric in SQUAD_METRICS] or list(run["valid"])[:1]
        for metric in metrics:
            scores.setdefault((run["task"], metric), []).append(run["valid"][metric])
    means = {score: fmean(values) for score, values in scores.items()}
    rows = [(data, metric, len(scores[data, metric]), mean) for (data, metric), mean in means.items()]
    if means and not any(metric in SQUAD_METRICS for _, metric in means):
        tasks = ", ".join(data for data, _ in means)
        rows.append((tasks, AVERAGE, min(map(len, scores.values())), fmean(means.values())))
    return [
        Comparison(name=runs[0]["checkpoint"], data=data, measure=measure, unit="%", seeds=seeds, value=value)
        for data, measure, seeds, value in rows
    ]


def _words_row(row: dict[str, Any]) -> Comparison:
    same = {key: row[key] for key in (*_SAME, *_DIFFERENCE)}
    return Comparison(name=row["checkpoint"], p=row.get("difference_p"), **same)


def _attack_rows(row: dict[str, Any]) -> Iterator[Comparison]:
    for kind in (ORIGINAL, ATTACKED, DROP):
        if row[kind] is not None:
            yield Comparison(
                name=row["checkpoint"],
                data=f"{row['data']}{UNDER}{row['attack']}",
                measure=f"{row['score']} {kind}",
                unit="%",
                seeds=row["seeds"],
                value=row[kind],
            )
