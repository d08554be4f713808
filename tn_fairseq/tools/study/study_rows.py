"""The rows of a study: what its runs logged, and what follows from the rows of all arms."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..results.compare import compare, corrected
from ..results.measures import WORDS, names_of
from ..results.table import join, table_of
from ..training_log import read_records
from .plan import Logs, Run, Start

MOST_POINTS = 125  # of a curve, so that the table and the plots stay small
TRAINING_TEXT = "training text"


def log_rows(log: Path, run: Run, window: int) -> pd.DataFrame:
    """The curves of a training log, measured before the model saw the text, and the hours over all sittings."""
    records, columns = read_records(log, "train_inner"), ("num_updates", "mlm_accuracy", "nll_loss")
    # fairseq's masked_lm logs no accuracy
    points = [[float(record[column]) for column in columns] for record in records if "mlm_accuracy" in record]
    curve = np.array(points).reshape(-1, 3)
    hours = max((float(record["wall"]) for record in records), default=0) / 3600
    rows: list[dict[str, Any]] = [{"data": TRAINING_TEXT, "measure": "hours", "value": hours}]
    for updates, accuracy, loss in thinned(curve, window):
        about = {"data": TRAINING_TEXT, "checkpoint": f"{updates:.0f}"}
        rows += [
            about | {"measure": "curve_accuracy", "value": accuracy},
            about | {"measure": "curve_loss", "value": loss},
        ]
    return table_of(rows, start=run.start, arm=run.arm, seed=run.seed)


def thinned(curve: np.ndarray, window: int) -> np.ndarray:
    """A curve, (points, 3) with updates first, of points that are means of as many neighbors each, up to the last one.

    It has about ``MOST_POINTS`` points, or more if the last ``window`` updates were no multiple of a point's.
    """
    sizes = range(math.ceil(len(curve) / MOST_POINTS), 1, -1)
    spacing = curve[1, 0] - curve[0, 0] if sizes else 1
    size = next((size for size in sizes if window % (size * spacing) == 0), 1)
    if size == 1:
        return curve
    groups = [curve[max(end - size, 0) : end] for end in reversed(range(len(curve), 0, -size))]
    return np.array([[group[-1, 0], *group[:, 1:].mean(axis=0).round(3)] for group in groups])


def smoothed(updates: np.ndarray, values: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean of the values over the last ``window`` updates, at each point that has so many before it."""
    ends = updates[updates >= window]
    totals = np.concatenate([[0], np.cumsum(values)])
    first, last = (np.searchsorted(updates, ends - shift, side="right") for shift in (window, 0))
    return ends, (totals[last] - totals[first]) / (last - first)


def updates_to_reach(level: float, updates: np.ndarray, values: np.ndarray) -> float | None:
    """When a curve first reaches a level, interpolated between its points; None if it never does."""
    reached = np.flatnonzero(values >= level)
    if not len(reached):
        return None
    at = reached[0]
    return float(np.interp(level, values[at - 1 : at + 1], updates[at - 1 : at + 1]) if at else updates[0])


def curves_of(table: pd.DataFrame, measure: str) -> dict[tuple[str, int], tuple[np.ndarray, np.ndarray]]:
    """The updates and values of a measure at each checkpoint, by arm and seed."""
    rows = table[table["measure"] == measure]
    return {
        key: (points["checkpoint"].astype(int).to_numpy(), points["value"].to_numpy())
        for key, points in rows.groupby(["arm", "seed"], sort=False)
    }


def training_rows(table: pd.DataFrame, logs: Logs, arms: Sequence[str]) -> pd.DataFrame:
    """The ends of the curves of a start, their means, and the updates to reach each level."""
    last = {"part": f"last {logs.window} updates"}
    rows: list[dict[str, Any]] = []
    for measure, end in (("curve_accuracy", "training_accuracy"), ("curve_loss", "training_loss")):
        for (arm, seed), curve in curves_of(table, measure).items():
            updates, values = smoothed(*curve, logs.window)
            if arm not in arms or not len(updates):
                continue
            about = {"arm": arm, "seed": seed}
            rows.append(about | last | {"measure": end, "value": values[-1]})
            if measure == "curve_accuracy":
                rows.append(about | {"measure": "training_mean_accuracy", "value": curve[1].mean()})
                for level in logs.levels:
                    value = updates_to_reach(level, updates, values)
                    row = {
                        "measure": "updates_to_reach",
                        "part": f"{level:g}%",
                        "value": math.nan if value is None else value,
                    }
                    rows.append(about | row)
    reached = table_of(rows, data=TRAINING_TEXT)
    # an arm whose seeds do not all reach a level has no mean
    return reached[reached.groupby(["arm", "measure", "part"])["value"].transform(lambda values: values.notna().all())]


def recovered_rows(table: pd.DataFrame, baseline: str, oracle: str) -> pd.DataFrame:
    """The share of the distance from the baseline to the oracle that each run goes, in percent, at each checkpoint."""
    rows: list[dict[str, Any]] = []
    for measure, name in (("merged_accuracy", "recovered_accuracy"), ("merged_loss", "recovered_loss")):
        for (checkpoint, seed), runs in table[table["measure"] == measure].groupby(["checkpoint", "seed"], sort=False):
            values = dict(zip(runs["arm"], runs["value"]))
            gain = values.get(oracle, math.nan) - values.get(baseline, math.nan)
            if not gain or math.isnan(gain):
                continue
            part = f"after {int(checkpoint):,} updates"
            rows += [
                {
                    "arm": arm,
                    "seed": seed,
                    "measure": name,
                    "part": part,
                    "value": 100 * ((value - values[baseline]) / gain),
                }
                for arm, value in values.items()
            ]
    return table_of(rows)


def compare_start(table: pd.DataFrame, name: str, start: Start, earlier: pd.DataFrame) -> pd.DataFrame:
    """The comparisons of all figures of a start with its baseline, in the order of its arms.

    Those of words are over items and seeds. Comparisons of an ``earlier`` report whose items are not in the table are
    taken as they are.
    """
    derived = [cost_rows(table, start.baseline)]
    if start.oracle:
        derived.append(recovered_rows(table, start.baseline, start.oracle))
    if logs := start.measures.logs:
        derived.append(training_rows(table, logs, logs.arms or list(start.arms)))
    last = table["arm"].map({arm: str(start.updates_of(arm)) for arm in start.arms})
    rows = join(table[(table["checkpoint"] == "") | (table["checkpoint"] == last)], *derived).assign(start=name)
    of_words = rows["measure"].isin(names_of(WORDS))
    compared = [
        compare(rows[~of_words], start.baseline, margins=start.margins),
        compare(rows[of_words], start.baseline, "items"),
    ]
    known = {tuple(row) for one in compared for row in one[["measure", "data", "part", "arm"]].to_numpy()}
    kept = [
        tuple(row) not in known and row[3] in start.arms and row[0] in names_of(WORDS)
        for row in earlier[["measure", "data", "part", "arm"]].to_numpy()
    ]
    before = earlier[np.array(kept, dtype=bool) & (earlier["start"] == name)]
    parts = [part for part in (*compared, before) if len(part)]
    comparisons = corrected(pd.concat(parts, ignore_index=True)) if parts else compared[0]
    order = comparisons["arm"].map(list(start.arms).index)
    return comparisons.loc[order.sort_values(kind="stable").index].reset_index(drop=True)


def cost_rows(table: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """The time of an update in each round of short runs, that of the baseline = 100."""
    speeds = table[(table["measure"] == "tokens_per_second") & (table["seed"] > 0)]
    plain = speeds[speeds["arm"] == baseline].set_index("seed")["value"]
    times = 100 * speeds["seed"].map(plain) / speeds["value"]
    return speeds.assign(measure="update_time", value=times)[times.notna()]


def finished_runs(table: pd.DataFrame) -> set[Run]:
    """The runs that were trained to their end."""
    rows = table[(table["measure"] == "hours") & (table["data"] == TRAINING_TEXT)]
    return {Run(*key) for key in rows[["start", "arm", "seed"]].itertuples(index=False)}
