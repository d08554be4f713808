"""How long a study still takes, from the runs that are finished, and from the plan before there are any."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..reporting.training_log import read_records
from .measures import LOG, is_finished, log_of, measures_of_runs, place_of_run
from .plan import Plan, Run, Start, updates_of_arm
from .runner import read_record


def hours_left(
    plan: Plan, runs: Iterable[Run], folder: Path, parallel: int, known: Mapping[str, Sequence[float]]
) -> float | None:
    """The hours that the unfinished ``runs`` still take, ``parallel`` at a time, with the measures of each of them.

    A run takes time in proportion to its updates. ``known`` has the hours of runs of each start on other machines; the
    plan's estimate is used if there are none. None if a start has neither.
    """
    runs = list(runs)
    seconds = {one["log"]: one["seconds"] for one in read_record(folder)}
    per_update: dict[str, float] = {}
    for name in {run.start for run in runs}:
        start = plan.starts[name]
        finished_runs = [run for run in runs if run.start == name and is_finished(folder, run)]
        if finished_runs:
            hours = [hours_of(run, start, folder, seconds) for run in finished_runs]
            updates = [updates_of_arm(start, run.arm) for run in finished_runs]
        else:
            estimate = [] if start.hours is None else [start.hours]
            hours = list(known.get(name) or estimate)
            updates = [start.updates] * len(hours)
        if not hours:
            return None
        per_update[name] = sum(hours) / sum(updates)
    left = [run for run in runs if not is_finished(folder, run)]
    return sum(per_update[run.start] * updates_left(plan, run, folder) for run in left) / parallel


def hours_of(run: Run, start: Start, folder: Path, seconds: Mapping[str, float]) -> float:
    """The hours of a finished run and of its own measures; ``seconds`` are those of each command by its log."""
    measuring = sum(seconds.get(str(log_of(place_of_run(run, measure))), 0) for measure in measures_of_runs(start))
    return (wall(folder / run.folder / LOG) + measuring) / 3600


def wall(log: Path) -> float:
    """The seconds that a run trained so far, as fairseq counts them over all sittings."""
    return max((float(record["wall"]) for record in _records(log)), default=0)


def updates_left(plan: Plan, run: Run, folder: Path) -> int:
    """The updates that a run has not made yet."""
    records = _records(folder / run.folder / LOG)
    return updates_of_arm(plan.starts[run.start], run.arm) - (int(records[-1]["num_updates"]) if records else 0)


def _records(log: Path) -> list[dict[str, Any]]:
    return read_records(log, "train_inner") if log.exists() else []


def clock(hours: float | None) -> str:
    """Hours in words."""
    if hours is None:
        return "an unknown time"
    minutes = round(60 * hours)
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"about {minutes} min"
