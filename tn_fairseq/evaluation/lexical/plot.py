"""A plot of the measures with their intervals; requires matplotlib (the optional extra ``plot``)."""

from collections.abc import Sequence
from pathlib import Path

from ...reporting.layout import shorten
from ...reporting.plot import COLORS, OVER_AXIS, drawing
from .results import ACCURACY, MEAN_COSINE, Row
from .substitution import GAP, ROW_MEASURES, RTD_AUC

COLUMNS = 4  # of panels


def draw_measures(rows: Sequence[Row], *paths: Path) -> None:
    """Draw a panel for each measure, with a point and a 95% interval for each checkpoint, as .png or .svg by suffix.

    Leaves out the parts of BLiMP. ``rows`` are those of ``checkpoint_rows``. The same rows give the same bytes. Raises
    InputError if matplotlib is missing.
    """
    shown = [row for row in rows if not row["measure"].startswith(f"{ACCURACY} by ")]
    panels = list(dict.fromkeys(_title(row) for row in shown))
    names = list(dict.fromkeys(row["checkpoint"] for row in shown))
    height = -(-len(panels) // COLUMNS)
    with drawing((11, height * (1 + 0.28 * len(names))), *paths) as figure:
        axes = figure.subplots(height, COLUMNS, sharey=True, squeeze=False).flat
        for title, axis in zip(panels, axes):
            for row in (row for row in shown if _title(row) == title):
                number = names.index(row["checkpoint"])
                color = COLORS[number % len(COLORS)]
                ends = (row["value"], row["value"]) if row["low"] is None else (row["low"], row["high"])
                axis.hlines(number, *ends, color=color, linewidth=1.4, **OVER_AXIS)
                axis.plot([row["value"]], [number], "o", color=color, markersize=4.5, **OVER_AXIS)
            axis.set_title(title, fontsize=8)
            axis.set_yticks(range(len(names)), [shorten(name, 30) for name in names])
            axis.set_ylim(len(names) - 0.5, -0.5)
            axis.tick_params(labelsize=7.5)
        for axis in axes:  # the panels that are left in the last line
            axis.set_visible(False)


def _title(row: Row) -> str:
    if row["measure"] in ROW_MEASURES:
        return shorten(f"{row['measure']} of {row['part']} (%)", 38)
    unit = " (%)" if row["measure"] in (GAP, RTD_AUC, ACCURACY) else ""
    return row["measure"] if row["measure"] == MEAN_COSINE else shorten(f"{row['data']}: {row['measure']}{unit}", 38)
