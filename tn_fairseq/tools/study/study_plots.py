"""The plots of a study, as SVG."""

import shlex
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from ...core.errors import InputError
from ..reporting.plot import COLORS, DASHES, INK, OVER_AXIS, drawing
from .figures import (
    HELD_OUT,
    RATES,
    smoothed,
)
from .plan import Plan, Start
from .statements import GROUPS, Row, by_measure, titled

PLOTS = "plots"  # the folder
WIDTH = 3.9  # inches of a plot; narrow, so that its letters are readable on a phone
CLOSE = 1.4  # doses up to this factor apart have one label


def doses(plan: Plan, results: dict[str, Any], column: str) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """For each arm, its points (dose, difference, low, high) in all starts with an oracle, by dose.

    The dose is the share of the baseline's wrong predictions that are synonyms, in percent. The second dictionary has
    the starts that are apart: they train another model than the first one, or begin with other weights, because an
    earlier start has the same text.
    """
    measure = RATES[column][1]
    joined: dict[str, list[Any]] = {}
    apart: dict[str, list[Any]] = {}
    texts = set()
    models = [_model(start) for start in plan.starts.values() if start.oracle]
    for name, start in plan.starts.items():
        rows = results["starts"][name]["comparisons"]
        dose = dose_of(start, rows)
        for row in rows if start.oracle and dose is not None else ():
            if row["measure"] == measure and row["group"] == HELD_OUT and row["difference"] is not None:
                is_apart = start.data in texts or _model(start) != models[0]
                points = (apart if is_apart else joined).setdefault(row["arm"], [])
                points.append((dose, row["difference"], row["low"], row["high"]))
        texts.add(start.data)
    joined = {arm: sorted(points) for arm, points in joined.items() if len(points) + len(apart.get(arm, [])) > 1}
    return joined, {arm: sorted(points) for arm, points in apart.items() if arm in joined}


def _model(start: Start) -> tuple[list[str], int]:
    """How a start trains, without the files of its weights and synonyms."""
    return [word for word in shlex.split(start.train) if not word.endswith((".pt", ".safetensors"))], start.updates


def dose_of(start: Start, rows: Sequence[Row]) -> float | None:
    measure = RATES["prediction_rate"][1]
    return next((row["value"] for row in rows if (row["measure"], row["arm"]) == (measure, start.baseline)), None)


def draw_doses(plan: Plan, results: dict[str, Any], folder: Path) -> dict[str, str]:
    """Draw the gain of each arm against the dose of synonyms, with the starts without an oracle as dotted lines.

    Returns the caption by file name without a suffix.
    """
    (folder / PLOTS).mkdir(exist_ok=True)
    panels = {column: doses(plan, results, column) for column in ("merged_accuracy", "merged_loss")}
    if not all(joined for joined, _ in panels.values()):
        return {}
    others = {
        name: dose
        for name, start in plan.starts.items()
        if not start.oracle and (dose := dose_of(start, results["starts"][name]["comparisons"]))
    }
    try:
        with drawing((WIDTH, 6), folder / PLOTS / "doses.svg") as figure:
            for axis, (column, (joined, apart)) in zip(figure.subplots(2, 1, sharex=True), panels.items()):
                axis.axhline(0, color=INK, linewidth=0.8)
                for place, (arm, points) in enumerate(joined.items()):
                    color = COLORS[place % len(COLORS)]
                    label = arm if column == "merged_accuracy" else None
                    axis.errorbar(*_spread(points), color=color, marker="o", markersize=4, label=label)
                    if arm in apart:
                        axis.errorbar(*_spread(apart[arm]), color=color, fmt="s", markersize=4, fillstyle="none")
                for dose in others.values():
                    axis.axvline(dose, color=INK, linestyle=":", linewidth=1)
                for names, dose in labels(others):
                    upright = {"xycoords": ("data", "axes fraction"), "rotation": 90, "va": "top"}
                    beside = {"xytext": (1.5, 0), "textcoords": "offset points"}  # not on the dotted line
                    # a line must fit beside an axis
                    axis.annotate(textwrap.fill(names, 32), (dose, 1), **upright, **beside, fontsize=7)
                _, title, unit, _ = RATES[column]
                axis.set_title(titled(title, {"%": "points"}.get(unit, unit)), fontsize=8.5, loc="left")
            axis.set_xscale("log")
            low, high = axis.get_xlim()
            axis.set_xticks([dose for dose in (0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if low <= dose <= high])
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_formatter("")
            axis.set_xlabel("wrong predictions of the baseline that are synonyms (%)", fontsize=8.5)
            figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    except InputError:  # no matplotlib, as the plots of the starts say
        return {}
    return {
        "doses": (
            "What each arm gains over the baseline if more words have synonyms. Dotted: starts on English as it is. "
            "Hollow squares: another model, or other weights at the start."
        )
    }


def labels(doses: dict[str, float]) -> list[tuple[str, float]]:
    """The names at each dose, and its place; those too close for labels of their own share one, at the last of them."""
    named_doses: list[tuple[str, float]] = []
    for name, dose in sorted(doses.items(), key=lambda item: item[1]):
        if named_doses and dose < CLOSE * named_doses[-1][1]:
            named_doses[-1] = f"{named_doses[-1][0]}, {name}", dose
        else:
            named_doses.append((name, dose))
    return named_doses


def _spread(points: Sequence[Any]) -> tuple[Sequence[float], Sequence[float], list[list[float]]]:
    """The doses, the differences, and how far their intervals reach down and up."""
    x, y, lows, highs = zip(*points)
    return x, y, [[0 if end is None else abs(end - at) for at, end in zip(y, ends)] for ends in (lows, highs)]


def draw_start(name: str, start: Start, start_results: dict[str, Any], folder: Path) -> dict[str, str]:
    """Draw the plots of a start as SVG; returns their captions by file name without a suffix."""
    (folder / PLOTS).mkdir(exist_ok=True)
    drawn: dict[str, str] = {}

    def file(plot: str, caption: str) -> Path:
        drawn[f"{name}.{plot}"] = caption
        return folder / PLOTS / f"{name}.{plot}.svg"

    try:
        curves = mean_curves(start, start_results)
        if curves:
            caption = "Masked-LM accuracy during training, a mean over the seeds."
            with drawing((WIDTH, 3.6), file("accuracy", caption)) as figure:
                draw_lines(figure, start, curves, "accuracy (%)")
            differences = paired_curves(start, start_results)
            if differences:
                caption = f"The same accuracy minus that of {start.baseline} with the same seed: same text, same masks."
                with drawing((WIDTH, 3.6), file("difference", caption)) as figure:
                    draw_lines(figure, start, differences, f"accuracy minus {start.baseline} (points)", zero=True)
        if start_results["rates"]:
            caption = "Wrong predictions that are synonyms of the masked word, with the same table for all arms."
            with drawing((WIDTH, 3.6), file("rates", caption)) as figure:
                draw_lines(figure, start, mean_rates(start, start_results), "of the wrong predictions (%)", points=True)
        for group in GROUPS:
            rows = [row for row in start_results["comparisons"] if row["group"] == group and row["low"] is not None]
            if not rows:
                continue
            measures, arms = by_measure(rows), len({row["arm"] for row in rows})
            caption = f"Differences from {start.baseline} with 95% intervals: {group}."
            size = (WIDTH, len(measures) * (0.75 + 0.19 * arms))
            with drawing(size, file(f"forest{GROUPS.index(group)}", caption)) as figure:
                draw_forest(figure, start, measures)
    except InputError as error:  # no matplotlib
        print(f"no plots are written: {error}", file=sys.stderr)
        return {}
    return drawn


def look(start: Start, arm: str) -> dict[str, Any]:
    if arm == start.baseline:
        return {"color": INK, "linestyle": "-"}  # like the line of zero in plots of differences
    place = [other for other in start.arms if other != start.baseline].index(arm)
    return {"color": COLORS[place % len(COLORS)], "linestyle": DASHES[place // len(COLORS) % len(DASHES)]}


def mean_curves(start: Start, start_results: dict[str, Any]) -> dict[str, Any]:
    """Smoothed accuracies by arm, averaged over seeds."""
    by_arm: dict[str, list[Any]] = {}
    for curve in start_results["curves"]:
        by_arm.setdefault(curve["arm"], []).append(smoothed(curve, window_of(start)))
    return {arm: average(curves) for arm, curves in by_arm.items() if curves[0][0]}


def paired_curves(start: Start, start_results: dict[str, Any]) -> dict[str, Any]:
    """Smoothed differences from the baseline's accuracy with the same seed, averaged over seeds."""
    curves = {(curve["arm"], curve["seed"]): smoothed(curve, window_of(start)) for curve in start_results["curves"]}
    by_arm: dict[str, list[Any]] = {}
    for (arm, seed), curve in curves.items():
        plain = dict(zip(*curves.get((start.baseline, seed), ((), ()))))
        both = [(updates, value - plain[updates]) for updates, value in zip(*curve) if updates in plain]
        if arm != start.baseline and both:
            by_arm.setdefault(arm, []).append(tuple(zip(*both)))
    return {arm: average(arm_curves) for arm, arm_curves in by_arm.items()}


def window_of(start: Start) -> int:
    return start.measures["logs"].window if "logs" in start.measures else 10 * start.log_every


def mean_rates(start: Start, start_results: dict[str, Any]) -> dict[str, Any]:
    by_arm: dict[str, dict[int, list[float]]] = {}
    for row in start_results["rates"]:
        by_arm.setdefault(row["arm"], {}).setdefault(row["updates"], []).append(row["prediction_rate"])
    return {
        arm: (sorted(by_updates), [fmean(by_updates[updates]) for updates in sorted(by_updates)])
        for arm, by_updates in by_arm.items()
    }


def average(curves: Sequence[Any]) -> Any:
    """The mean of curves over the updates that all of them have."""
    by_updates = [dict(zip(*curve)) for curve in curves]
    shared = [updates for updates in by_updates[0] if all(updates in one for one in by_updates)]
    return shared, [fmean(one[updates] for one in by_updates) for updates in shared]


def draw_lines(
    figure: Any, start: Start, curves: dict[str, Any], label: str, zero: bool = False, points: bool = False
) -> None:
    axis = figure.subplots()
    if zero:
        axis.axhline(0, color=INK, linewidth=0.8)
    for arm, (updates, values) in curves.items():
        axis.plot(updates, values, label=arm, linewidth=1.4, marker="o" if points else "", **look(start, arm))
    axis.set_xlabel("updates")
    axis.set_ylabel(label)
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.xaxis.get_major_locator().set_params(integer=True, nbins=6)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)


def draw_forest(figure: Any, start: Start, measures: dict[str, dict[str, Row]]) -> None:
    """A panel for each measure with a line for each arm."""
    panels = figure.subplots(len(measures), 1, squeeze=False)[:, 0]
    for axis, (measure, by_arm) in zip(panels, measures.items()):
        axis.axvline(0, color=INK, linewidth=0.8)
        for place, (arm, row) in enumerate(by_arm.items()):
            color = look(start, arm)["color"]
            axis.hlines(place, row["low"], row["high"], color=color, linewidth=1.4, **OVER_AXIS)
            axis.plot([row["difference"]], [place], "o", color=color, markersize=4.5, **OVER_AXIS)
        axis.set_yticks(range(len(by_arm)), by_arm)
        axis.set_ylim(len(by_arm) - 0.5, -0.5)
        unit: str = next(iter(by_arm.values()))["unit"]
        title = textwrap.fill(titled(measure, {"%": "points"}.get(unit, unit)), 44)
        axis.set_title(title, fontsize=8.5, loc="left")
        axis.tick_params(labelsize=8)
        axis.locator_params(axis="x", nbins=5)
