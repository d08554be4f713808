"""A plot of the scores before and after each attack; requires matplotlib (the optional extra ``plot``)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...reporting.layout import shorten
from ...reporting.plot import COLORS, OVER_AXIS, drawing

Row = dict[str, Any]
COLUMNS = 2  # of panels: EM and F1


def draw_robustness(rows: Sequence[Row], *paths: Path) -> None:
    """Draw a panel for each attack, its data and score, as .png or .svg by suffix.

    Each checkpoint has a hollow point for the original data and below it a filled one for the attacked data, with 95%
    intervals. ``rows`` are those of ``attack_rows``. The same rows give the same bytes. Raises InputError if matplotlib
    is missing.
    """
    panels = list(dict.fromkeys((row["attack"], row["data"], row["score"]) for row in rows))
    names = list(dict.fromkeys(row["checkpoint"] for row in rows))
    height = -(-len(panels) // COLUMNS)
    with drawing((9, 0.6 + height * (0.9 + 0.3 * len(names))), *paths) as figure:
        axes = figure.subplots(height, COLUMNS, sharey=True, squeeze=False).flat
        for panel, axis in zip(panels, axes):
            for row in rows:
                if (row["attack"], row["data"], row["score"]) == panel:
                    _draw_checkpoint(axis, row, names.index(row["checkpoint"]))
            attack, data, score = panel
            axis.set_title(shorten(f"{attack}: {data}, {score} (%)", 60), fontsize=8)
            axis.set_yticks(range(len(names)), [shorten(name, 30) for name in names])
            axis.set_ylim(len(names) - 0.5, -0.5)
            axis.tick_params(labelsize=7.5)
        for axis in list(axes):  # the panel that is left in the last line
            axis.set_visible(False)
        figure.supxlabel("hollow: original; filled: attacked; lines: 95% intervals", fontsize=7.5)


def _draw_checkpoint(axis: Any, row: Row, number: int) -> None:
    color = COLORS[number % len(COLORS)]
    for key, fill, height in (("original", "white", number - 0.15), ("attacked", color, number + 0.15)):
        if row[key] is None:
            continue
        if row[f"{key}_low"] is not None:
            axis.hlines(height, row[f"{key}_low"], row[f"{key}_high"], color=color, linewidth=1.4, **OVER_AXIS)
        axis.plot([row[key]], [height], "o", color=color, markerfacecolor=fill, markersize=5, **OVER_AXIS)
