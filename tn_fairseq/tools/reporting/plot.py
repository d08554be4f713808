"""The look of all plots; requires matplotlib (the optional extra ``plot``)."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ...core.packages import require
from .layout import shorten

# safe for color blindness (Okabe and Ito; the last two are Tol's); 8 colors and 7 markers distinguish 56 tables
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (6, 1.5, 1, 1.5)), (0, (9, 2, 3, 2)), (0, (3, 1, 1, 1, 1, 1)))
OVER_AXIS = {"clip_on": False, "zorder": 3}  # so that rates of 0 are visible
INK = "#333333"
STYLE = {
    "axes.edgecolor": "#999999",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "font.size": 9,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "svg.fonttype": "none",  # keep text as text
    "svg.hashsalt": "tn_fairseq",  # the same ids in every run
    "text.color": INK,
    "text.parse_math": False,  # a name may contain a dollar sign
    "xtick.color": "#999999",
    "xtick.labelcolor": INK,
    "ytick.color": "#999999",
    "ytick.labelcolor": INK,
}


class Point(NamedTuple):
    """A value with its interval, None if there is none, in the panel and the line where it is drawn."""

    panel: str
    line: str
    value: float
    low: float | None
    high: float | None
    shift: float = 0.0  # downwards, in lines
    is_hollow: bool = False


@contextmanager
def drawing(size: tuple[float, float], *paths: Path) -> Iterator[Any]:
    """Yield a figure of a size in inches, and save it to each path, as .png or .svg by its suffix.

    The same figure gives the same bytes. Raises InputError if matplotlib is missing.
    """
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # fairseq enables debug messages of all packages
    require("matplotlib", "a plot", "plot")
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # without pyplot, which looks for a display, and without the user's settings for other plots
    with style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the font lacks some scripts; the .png then shows boxes
        figure = Figure(figsize=size, dpi=200, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        for path in paths:
            metadata = {"Date": None} if path.suffix == ".svg" else None
            figure.savefig(path, format=path.suffix.removeprefix("."), metadata=metadata)


def draw_panels(points: Sequence[Point], columns: int, width: float, legend: str, *paths: Path) -> None:
    """Draw panels that share their lines, in a figure of a width in inches, to each path by its suffix.

    The same points give the same bytes. Raises InputError if matplotlib is missing.
    """
    panels = list(dict.fromkeys(point.panel for point in points))
    lines = list(dict.fromkeys(point.line for point in points))
    height = -(-len(panels) // columns)
    with drawing((width, 0.6 + height * (0.9 + 0.3 * len(lines))), *paths) as figure:
        axes = figure.subplots(height, columns, sharey=True, squeeze=False).flat
        for panel, axis in zip(panels, axes):
            for point in (point for point in points if point.panel == panel):
                number = lines.index(point.line)
                color, place = COLORS[number % len(COLORS)], number + point.shift
                if point.low is not None:
                    axis.hlines(place, point.low, point.high, color=color, linewidth=1.4, **OVER_AXIS)
                fill = "white" if point.is_hollow else color
                axis.plot([point.value], [place], "o", color=color, markerfacecolor=fill, markersize=5, **OVER_AXIS)
            axis.set_title(shorten(panel, 150 // columns), fontsize=8)
            axis.set_yticks(range(len(lines)), [shorten(line, 30) for line in lines])
            axis.set_ylim(len(lines) - 0.5, -0.5)
            axis.tick_params(labelsize=7.5)
        for axis in axes:  # the panels that are left in the last line
            axis.set_visible(False)
        figure.supxlabel(legend, fontsize=7.5)
