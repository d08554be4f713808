"""Plots of the rates over training; requires matplotlib (the optional extra ``plot``)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..reporting.layout import shorten
from ..reporting.plot import COLORS, DASHES, INK, MARKERS, OVER_AXIS, drawing
from .rates import LIKELY, Row

PANELS = {
    "sequence_rate": "sequences with a correction (%)",
    "prediction_rate": "corrected among mismatches (%)",
    "masked_rate": "corrected among masked tokens (%)",
    "accuracy": "accuracy (%)",
}
# a third row of panels if there is a teacher
TEACHER_PANELS = {
    "teacher_as_likely_rate": "teacher: as likely as gold (%)",
    "teacher_likely_rate": f"teacher: at least {LIKELY:.0%} likely (%)",
}
OF_ALL_TABLES = ("accuracy", *TEACHER_PANELS)  # the same for all tables


def draw_training(rows: Sequence[Row], *paths: Path) -> None:
    """Draw the rows of ``rate_row`` over the updates of training to each path, as .png or .svg by its suffix.

    Draws a line for each synonym table, a dash style for each folder of checkpoints, and 95% intervals as bands.
    Checkpoints with unknown updates are left out. If all checkpoints have the same number of updates, they are drawn
    as points next to each other. The same rows give the same bytes. Raises InputError if matplotlib is missing.
    """
    panels = PANELS | {rate: label for rate, label in TEACHER_PANELS.items() if rate in rows[0]}
    with drawing((9, 3.2 * len(panels) / 2), *paths) as figure:
        # the panels share the x axis; the legend of the tables is above them, and that of the runs below
        known = [row for row in rows if row["updates"] is not None]
        over_updates = len({row["updates"] for row in known}) > 1
        rows = known if over_updates else rows
        tables, checkpoints = (list(dict.fromkeys(row[key] for row in rows)) for key in ("table", "checkpoint"))
        joined: dict[str, Any] = {} if over_updates else {"linestyle": "none"}
        looks = {
            table: {"color": COLORS[i % len(COLORS)], "marker": MARKERS[i % len(MARKERS)], **joined}
            for i, table in enumerate(tables)
        }
        runs = list(dict.fromkeys(_run(row) for row in rows))
        dashes = {run: DASHES[i % len(DASHES)] for i, run in enumerate(runs)}
        peaks = _peaks(rows, "prediction_rate") or [1]
        far_apart = max(peaks) > 30 * min(peaks)  # on a linear scale some table would be invisible

        axes = figure.subplots(len(panels) // 2, 2, sharex=True)
        for axis, (rate, label) in zip(axes.flat, panels.items()):
            for_all_tables = rate in OF_ALL_TABLES
            for i, table in enumerate(tables[:1] if for_all_tables else tables):
                table_rows = [row for row in rows if row["table"] == table]
                look = {"color": INK, "marker": MARKERS[0], **joined} if for_all_tables else looks[table]
                if over_updates:
                    for run, dash in dashes.items():
                        run_rows = sorted(
                            (row for row in table_rows if _run(row) == run), key=lambda row: row["updates"]
                        )
                        _draw(axis, rate, [row["updates"] for row in run_rows], run_rows, {**look, "linestyle": dash})
                else:
                    beside = 0 if for_all_tables else 0.5 * ((i + 0.5) / len(tables) - 0.5)
                    x = [1 + checkpoints.index(row["checkpoint"]) + beside for row in table_rows]
                    _draw(axis, rate, x, table_rows, look)
            axis.set_ylabel(label)
            most = max(max(row[rate], row[f"{rate}_high"] or 0) for row in rows)
            if far_apart and not for_all_tables:
                # logarithmic from the decade of the rarest table, linear below
                axis.set_yscale("symlog", linthresh=10 ** math.floor(math.log10(min(_peaks(rows, rate)))))
            axis.set_ylim(0, 1.08 * most or 1)
            axis.yaxis.set_major_formatter("{x:g}")

        for axis in axes[-1]:
            _label_x(axis, [row["updates"] for row in rows] if over_updates else None, len(checkpoints))
        figure.align_ylabels(axes)
        if not over_updates:
            names = [f"{number}  {shorten(checkpoint, 110)}" for number, checkpoint in enumerate(checkpoints, start=1)]
            figure.set_figheight(figure.get_figheight() + 0.17 * len(names))
            figure.supxlabel("\n".join(names), fontsize=9, multialignment="left")
        _legend(figure, "upper", [shorten(table, 100) for table in tables], looks.values())
        if over_updates and len(runs) > 1:
            styles = [{"color": INK, "linestyle": dash} for dash in dashes.values()]
            _legend(figure, "lower", [shorten(run, 100) for run in runs], styles)


def _label_x(axis: Any, updates: Sequence[int] | None, checkpoints: int) -> None:
    """Number the updates, or the checkpoints if there are none."""
    if updates is None:
        axis.set_xlim(0.5, checkpoints + 0.5)
        axis.set_xticks(range(1, checkpoints + 1))
        axis.set_xlabel("checkpoint")
        return
    most = max(updates)
    axis.set_xlim(0, 1.03 * most)
    axis.xaxis.get_major_locator().set_params(integer=True, nbins=7)
    axis.xaxis.set_major_formatter(_thousands if most >= 10000 else "{x:,.0f}")
    axis.set_xlabel("updates")


def _run(row: Row) -> str:
    return str(Path(row["checkpoint"]).parent)


def _draw(axis: Any, rate: str, x: Sequence[float], rows: Sequence[Row], look: Mapping[str, Any]) -> None:
    """Draw a line with its band, or points with bars if they are not joined."""
    y = [row[rate] for row in rows]
    # with one seed, both ends are the rate
    low, high = (
        [row[rate] if row[f"{rate}_{end}"] is None else row[f"{rate}_{end}"] for row in rows] for end in ("low", "high")
    )
    if look["linestyle"] == "none" or len(rows) == 1:
        axis.vlines(x, low, high, color=look["color"], linewidth=1.2)
        axis.plot(x, y, markersize=5, **{**look, "linestyle": "none"}, **OVER_AXIS)
    else:
        axis.plot(x, y, linewidth=1.4, markersize=4, markevery=max(1, len(x) // 10), **look, **OVER_AXIS)
        axis.fill_between(x, low, high, color=look["color"], alpha=0.18, linewidth=0)


def _peaks(rows: Sequence[Row], rate: str) -> list[float]:
    """The highest rate of each table that fires at all."""
    tables = dict.fromkeys(row["table"] for row in rows)
    peaks = [max(row[rate] for row in rows if row["table"] == table) for table in tables]
    return [peak for peak in peaks if peak]


def _legend(figure: Any, place: str, names: Sequence[str], looks: Iterable[Mapping[str, Any]]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], markersize=4, linewidth=1.4, **look) for look in looks]
    columns = max(1, min(len(names), 120 // (max(map(len, names)) + 8)))
    figure.legend(handles, list(names), loc=f"outside {place} center", ncols=columns)


def _thousands(value: float, position: int) -> str:
    return f"{value / 1000:,g}k" if value else "0"
