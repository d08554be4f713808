"""The look of all plots; requires matplotlib (the optional extra ``plot``)."""

import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...core.packages import require

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
            if path.suffix == ".svg":
                path.write_text(_shorter(path.read_text(encoding="utf-8")), encoding="utf-8")


def _shorter(svg: str) -> str:
    """The same picture, a quarter shorter: with hundredths instead of millionths of a point, and no indentation."""
    rounded = re.sub(r' [dxy]="[^"]*"', lambda place: re.sub(r"(\.\d\d)\d+", r"\1", place[0]), svg)
    return re.sub(r"\s*\n *", "\n", rounded)
