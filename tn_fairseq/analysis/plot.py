"""Plots of the rates over training; requires matplotlib (the optional extra ``plot``)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..reporting.layout import shorten
from ..reporting.plot import COLORS, DASHES, INK, MARKERS, OVER_AXIS, drawing
from .rates import Row

PANELS = {
    "sequence_rate": "sequences with a correction (%)",
    "prediction_rate": "corrected among mismatches (%)",
    "masked_rate": "corrected among masked tokens (%)",
    "accuracy": "accuracy (%)",
}


def draw_training(rows: Sequence[Row], *paths: Path) -> None:
    """Draw the rows of ``rates.rows`` over the updates of training to each path, as .png or .svg by its suffix.

    Draws a line for each synonym table, a dash style for each folder of checkpoints, and 95% intervals as bands.
    Checkpoints with unknown updates are left out. If all checkpoints have the same number of updates, they are drawn
    as points next to each other. The same rows give the same bytes. Raises InputError if matplotlib is missing.
    """
    with drawing((9, 6.4), *paths) as figure:
        _draw(figure, rows)


def _draw(figure, rows: Sequence[Row]) -> None:
    """Draw four panels that share the x axis, the legend of the tables above, and the legend of the runs below."""
    known = [row for row in rows if row["updates"] is not None]
    over_updates = len({row["updates"] for row in known}) > 1
    rows = known if over_updates else rows
    tables, checkpoints = (list(dict.fromkeys(row[key] for row in rows)) for key in ("table", "checkpoint"))
    looks = {
        table: {"color": COLORS[i % len(COLORS)], "marker": MARKERS[i % len(MARKERS)]} for i, table in enumerate(tables)
    }
    runs = list(dict.fromkeys(_run(row) for row in rows))
    dashes = {run: DASHES[i % len(DASHES)] for i, run in enumerate(runs)}

    peaks = _peaks(rows, "prediction_rate") or [1]
    far_apart = max(peaks) > 30 * min(peaks)  # on a linear scale some table would be invisible

    axes = figure.subplots(2, 2, sharex=True)
    for axis, (rate, label) in zip(axes.flat, PANELS.items()):
        for i, table in enumerate(tables[:1] if rate == "accuracy" else tables):  # accuracy is the same for all
            of_table = [row for row in rows if row["table"] == table]
            look = {"color": INK, "marker": MARKERS[0]} if rate == "accuracy" else looks[table]
            if over_updates:
                for run, dash in dashes.items():
                    _draw_line(axis, rate, [row for row in of_table if _run(row) == run], {**look, "linestyle": dash})
            else:
                beside = 0 if rate == "accuracy" else 0.5 * ((i + 0.5) / len(tables) - 0.5)
                x = [1 + checkpoints.index(row["checkpoint"]) + beside for row in of_table]
                _draw_points(axis, rate, x, of_table, look)
        axis.set_ylabel(label)
        most = max(max(row[rate], row[f"{rate}_high"] or 0) for row in rows)
        if rate != "accuracy" and far_apart:
            # logarithmic from the decade of the rarest table, linear below
            axis.set_yscale("symlog", linthresh=10 ** math.floor(math.log10(min(_peaks(rows, rate)))))
        axis.set_ylim(0, 1.08 * most or 1)
        axis.yaxis.set_major_formatter("{x:g}")

    for axis in axes[1]:
        if over_updates:
            most = max(row["updates"] for row in rows)
            axis.set_xlim(0, 1.03 * most)
            axis.xaxis.get_major_locator().set_params(integer=True, nbins=7)
            axis.xaxis.set_major_formatter(_thousands if most >= 10000 else "{x:,.0f}")
            axis.set_xlabel("updates")
        else:
            axis.set_xlim(0.5, len(checkpoints) + 0.5)
            axis.set_xticks(range(1, len(checkpoints) + 1))
            axis.set_xlabel("checkpoint")
    figure.align_ylabels(axes)
    if not over_updates:
        names = [f"{number}  {shorten(checkpoint, 110)}" for number, checkpoint in enumerate(checkpoints, start=1)]
        figure.set_figheight(figure.get_figheight() + 0.17 * len(names))
        figure.supxlabel("\n".join(names), fontsize=9, multialignment="left")
        looks = {table: {**look, "linestyle": "none"} for table, look in looks.items()}
    _legend(figure, "upper", [shorten(table, 100) for table in tables], looks.values())
    if over_updates and len(runs) > 1:
        _legend(
            figure,
            "lower",
            [shorten(run, 100) for run in runs],
            [{"color": INK, "linestyle": dash} for dash in dashes.values()],
        )


def _run(row: Row) -> str:
    return str(Path(row["checkpoint"]).parent)


def _draw_line(axis, rate: str, rows: Sequence[Row], look: Mapping[str, Any]) -> None:
    rows = sorted(rows, key=lambda row: row["updates"])
    x = [row["updates"] for row in rows]
    if len(rows) == 1:
        _draw_points(axis, rate, x, rows, look)
    else:
        look = {**look, "linewidth": 1.4, "markersize": 4, "markevery": max(1, len(x) // 10)}
        axis.plot(x, [row[rate] for row in rows], **look, **OVER_AXIS)
        axis.fill_between(x, *_interval(rate, rows), color=look["color"], alpha=0.18, linewidth=0)


def _draw_points(axis, rate: str, x: Sequence[float], rows: Sequence[Row], look: Mapping[str, Any]) -> None:
    low, high = _interval(rate, rows)
    axis.vlines(x, low, high, color=look["color"], linewidth=1.2)
    axis.plot(x, [row[rate] for row in rows], markersize=5, **{**look, "linestyle": "none"}, **OVER_AXIS)


def _interval(rate: str, rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Lower and upper ends; with one seed both are its rate."""
    ends = [(row[f"{rate}_low"], row[f"{rate}_high"]) for row in rows]
    ends = [(row[rate], row[rate]) if None in end else end for row, end in zip(rows, ends)]
    return [low for low, _ in ends], [high for _, high in ends]


def _peaks(rows: Sequence[Row], rate: str) -> list[float]:
    """The highest rate of each table that fires at all."""
    peaks: dict[str, float] = {}
    for row in rows:
        peaks[row["table"]] = max(row[rate], peaks.get(row["table"], 0))
    return [peak for peak in peaks.values() if peak]


def _legend(figure, place: str, names: Sequence[str], looks: Iterable[Mapping[str, Any]]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], markersize=4, linewidth=1.4, **look) for look in looks]
    columns = max(1, min(len(names), 120 // (max(map(len, names)) + 8)))
    figure.legend(handles, list(names), loc=f"outside {place} center", ncols=columns)


def _thousands(value: float, position: int) -> str:
    return f"{value / 1000:,g}k" if value else "0"
