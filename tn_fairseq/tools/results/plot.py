"""Plots of curves as SVG."""

import io
import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# safe for color blindness (Okabe and Ito; the last two are Tol's)
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (6, 1.5, 1, 1.5)), (0, (9, 2, 3, 2)), (0, (3, 1, 1, 1, 1, 1)))
INK = "#333333"
WIDTH = 3.9  # inches; narrow, so that the letters are readable on a phone
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
def drawing(size: tuple[float, float]) -> Iterator[Any]:
    """Yield a figure of a size in inches, in our style."""
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # fairseq enables debug messages of all packages
    from matplotlib import style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # without pyplot, which looks for a display, and without the user's settings for other plots
    with style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the font lacks some scripts
        figure = Figure(figsize=size, dpi=200, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def save(figure: Any, path: Path) -> None:
    """Write a figure as .png or .svg by its suffix; the same figure gives the same bytes."""
    if path.suffix == ".svg":
        path.write_text(svg(figure), encoding="utf-8")
    else:
        figure.savefig(path, format=path.suffix.removeprefix("."))


def svg(figure: Any) -> str:
    """A figure as SVG, a quarter shorter than matplotlib's: with hundredths of a point, and no indentation."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    rounded = re.sub(r' [dxy]="[^"]*"', lambda place: re.sub(r"(\.\d\d)\d+", r"\1", place[0]), file.getvalue())
    return re.sub(r"\s*\n *", "\n", rounded)


def look(arms: Sequence[str], arm: str) -> dict[str, Any]:
    """The color and the line of an arm; the first one, the baseline, looks like the line of zero."""
    place = list(arms).index(arm) - 1
    if place < 0:
        return {"color": INK, "linestyle": "-"}
    return {"color": COLORS[place % len(COLORS)], "linestyle": DASHES[place // len(COLORS) % len(DASHES)]}


def lines(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    arms: Sequence[str],
    label: str,
    zero: bool = False,
    points: bool = False,
) -> str:
    """A line for each arm through its points (x, y)."""
    with drawing((WIDTH, 3.6)) as figure:
        draw_lines(figure.subplots(), curves, arms, label, zero, points)
        if any(curves):  # a single line needs no name
            figure.legend(loc="outside lower center", ncols=2, fontsize=8)
        return svg(figure)


def draw_lines(
    axis: Any,
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    arms: Sequence[str],
    label: str,
    zero: bool = False,
    points: bool = False,
) -> None:
    """Draw the lines of ``lines`` into a panel, without a legend."""
    if zero:
        axis.axhline(0, color=INK, linewidth=0.8)
    for arm, (x, y) in curves.items():
        axis.plot(x, y, label=arm, linewidth=1.4, marker="o" if points else "", **look(arms, arm))
    axis.set_xlabel("updates")
    axis.set_ylabel(label)
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.xaxis.get_major_locator().set_params(integer=True, nbins=6)
