"""The reports of other folders, whose runs a study does not repeat."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ...core.errors import InputError
from ..results.measures import COST, PEOPLE, measure_of
from ..results.report import COMPARISONS, TABLE
from ..results.table import read_table
from .plan import Plan, Run, Start, Step, runs_of
from .study_rows import finished_runs


@dataclass(frozen=True)
class Earlier:
    """The report of another folder: its table, what that was made from, and its comparisons."""

    table: pd.DataFrame
    about: Mapping[str, Any]
    comparisons: pd.DataFrame

    def rows(self, plan: Plan, here: Iterable[Run]) -> pd.DataFrame:
        """The rows about the arms and seeds of a plan, without those of runs that are finished ``here``."""
        arms = {(name, arm) for name, start in plan.starts.items() for arm in start.arms}
        runs = {run for name, start in plan.starts.items() for run in runs_of(name, start)} - {*here}
        kept = [
            # rounds of cost are no seeds
            (start, arm) in arms
            if measure_of(measure).group == COST or measure == "tokens_per_second"
            else arm in ("", PEOPLE) or (start, arm, seed) in runs
            for start, arm, seed, measure in self.table[["start", "arm", "seed", "measure"]].itertuples(index=False)
        ]
        return self.table[kept]


def read_earlier(folders: Sequence[Path], plan: Plan, output: Path) -> list[Earlier]:
    """Read the reports of other folders.

    Raises InputError for one that is not a report of this plan, has trained or measured a run of it in another way, or
    is given twice.
    """
    places = [folder.resolve() for folder in folders]
    found = []
    for place, folder in zip(places, folders):
        if place == output.resolve() or places.count(place) > 1:
            raise InputError(f"--earlier {folder}: would count twice; give another folder, once")
        table, about = read_table(folder / TABLE)
        theirs = about.get("plan", {}).get("starts", {})
        if not theirs.keys() & plan.starts.keys():
            raise InputError(f"--earlier {folder}: has none of the plan's starts {', '.join(plan.starts)}")
        for name in {run.start for run in finished_runs(table)} & plan.starts.keys():
            measured = {*table[table["start"] == name]["data"]}
            if differing := _differences(plan.starts[name], theirs[name], measured):
                raise InputError(f"--earlier {folder}: starts.{name}.{differing[0]}: differs from that of the plan")
        try:
            comparisons = pd.read_csv(folder / COMPARISONS).fillna({"part": "", "start": "", "data": ""})
        except (OSError, ValueError) as error:
            raise InputError(f"{folder / COMPARISONS}: {error}; give the folder of a study") from None
        found.append(Earlier(table, about, comparisons))
    return found


def _differences(start: Start, there: Mapping[str, Any], measured: set[str]) -> list[str]:
    """The keys that make the runs of a start, or what was measured of them, different from those of another study.

    A measure may differ if the other study has no rows of its data.
    """
    differences = [key for key in ("data", "train", "updates", "baseline") if getattr(start, key) != there[key]]
    if _prepared_differently(start.prepare, there["prepare"]):
        differences.append("prepare")
    for name, ours in start.measures.evaluations().items():
        theirs = there["measures"].get(name)
        if theirs and (name not in ("glue", "squad", "robustness") or name in measured):
            differences += [f"measures.{name}.flags"] if ours.flags != theirs["flags"] else []
            prepared = _prepared_differently(ours.prepare, theirs["prepare"])
            differences += [f"measures.{name}.prepare"] if prepared else []
    return differences + [
        f"arms.{arm}"
        for arm, settings in start.arms.items()
        if (theirs := there["arms"].get(arm))
        and any(getattr(settings, key) != theirs.get(key) for key in ("flags", "updates", "user_dir"))
    ]


def _prepared_differently(steps: Sequence[Step], there: Sequence[Mapping[str, str]]) -> bool:
    """Whether any output of both is from different commands."""
    commands = {step["output"]: step["command"] for step in there}
    return any(step.command != commands.get(step.output, step.command) for step in steps)
