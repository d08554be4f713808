"""The table of every report: what was measured of checkpoints or arms, and their differences from a baseline."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...core.errors import InputError
from ...core.files import read_json_object
from .layout import WIDTH, align, cell, shorten, write_csv, write_json
from .plot import COLORS, OVER_AXIS, drawing
from .report_folder import draw_if_possible
from .statistics import CONFIDENCE, holm

ROWS = "comparisons"  # the key of the rows in a JSON file
# an attack is between the data and its name, and the kind of a score is behind the score
UNDER, ORIGINAL, ATTACKED, DROP = " under ", "original", "attacked", "drop"
NAME_WIDTH = 30
PANELS = 3  # of a plot, next to each other
SUFFIXES = {
    ".csv": "each measure with its interval and its difference from the baseline",
    ".json": "the same, and what it was made from",
    ".png": "the measures with their intervals",
    ".svg": "the measures with their intervals",
    ".txt": "what the command prints",
}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A measure of one checkpoint or arm on some data, and its difference from the same measure of a baseline.

    Ends of intervals are those of 95%. What is unknown or undefined is None.
    """

    name: str  # of the checkpoint or arm
    updates: int | None = None  # that it was trained for
    data: str
    measure: str
    part: str = ""  # of the data, or the synonym table that the measure is about
    unit: str = ""
    detail: bool = False  # a part of another row, which is neither drawn nor corrected for
    seeds: int | None  # None for an average over tasks with different seeds
    items: int | None = None  # examples, pairs or targets that were measured
    value: float | None
    low: float | None = None
    high: float | None = None
    seed_sd: float | None = None
    median: float | None = None  # of the seeds
    best: float | None = None  # of the seeds
    baseline: str | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p: float | None = None  # two-sided, that the difference is zero
    holm: float | None = None  # p after Holm's correction for all rows that are no details
    seeds_needed: int | None = None  # on each side, to detect a true difference of 1.0

    @property
    def title(self) -> str:
        """What is measured, with its unit."""
        unit = f" ({self.unit})" if self.unit else ""
        return f"{self.data}: {self.measure}{f', {self.part}' if self.part else ''}{unit}"


def corrected(rows: Sequence[Comparison]) -> list[Comparison]:
    """The rows with p values after Holm's correction for all that are no details."""
    tested = [row for row in rows if row.p is not None and not row.detail]
    holm_p = dict(zip(map(id, tested), holm([row.p for row in tested if row.p is not None])))
    return [replace(row, holm=holm_p.get(id(row))) for row in rows]


def significant(rows: Sequence[Comparison]) -> list[str]:
    """In lines of 120 columns, which of the differences remain after Holm's correction; none if nothing was tested."""
    tested = [row for row in rows if row.holm is not None]
    if not tested:
        return []
    named = [f"{row.name}, {row.title}" for row in tested if row.holm is not None and row.holm < 1 - CONFIDENCE]
    summary = f"After Holm's correction, {len(named)} of {len(tested)} differences are significant"
    return textwrap.wrap(f"{summary}{': ' if named else ''}{'; '.join(named)}.", WIDTH)


def decimals(unit: str, value: float) -> int:
    """Decimal places of a measure of about this size: updates are integers, and losses and small shares need more."""
    if unit == "updates":
        return 0
    if unit == "%" and 0 < abs(value) < 0.01:
        return 5
    return 2 if abs(value) >= 1 and unit != "bits" else 3


def _decimals_of_all(rows: Sequence[Comparison]) -> int:
    """Decimal places for one measure of several checkpoints: so many that the smallest is readable, if they fit."""
    sizes = [abs(row.value) for row in rows if row.value]
    places = decimals(rows[0].unit, min(sizes, default=0.0))
    return places if max(sizes, default=0.0) < 1 else min(places, 3)


def _p(value: float | None) -> str:
    return "<0.001" if value is not None and value < 0.001 else cell(value, ".3f")


# heading -> the field that decides whether the column is shown, and its text with a number of decimals
_COLUMNS: dict[str, tuple[str, Callable[[Comparison, int], str]]] = {
    "updates": ("updates", lambda row, _: cell(row.updates, ",")),
    "seeds": ("seeds", lambda row, _: cell(row.seeds, "d")),
    "items": ("items", lambda row, _: cell(row.items, ",")),
    "value": ("value", lambda row, places: cell(row.value, f".{places}f", row.low, row.high)),
    "sd": ("seed_sd", lambda row, places: cell(row.seed_sd, f".{places}f")),
    "median": ("median", lambda row, places: cell(row.median, f".{places}f")),
    "best": ("best", lambda row, places: cell(row.best, f".{places}f")),
}
# the same, empty for a row that is not compared
_COMPARED: dict[str, tuple[str, Callable[[Comparison, int], str]]] = {
    "difference": (
        "difference",
        lambda row, places: cell(row.difference, f"+z.{places}f", row.difference_low, row.difference_high),
    ),
    "p": ("p", lambda row, _: _p(row.p)),
    "Holm": ("holm", lambda row, _: _p(row.holm)),
    "seeds for 1.0": ("seeds_needed", lambda row, _: cell(row.seeds_needed, ",")),
}
_LEGEND = {
    "items": "what was measured: examples, targets, or pairs of words or sentences",
    "sd": "standard deviation over the seeds",
    "best": "the best seed",
    "difference": "from the baseline, {baseline}",
    "p": "two-sided p value of the difference",
    "Holm": "the same after Holm's correction for all differences of the report",
    "seeds for 1.0": "seeds on each side for a two-sided 5% t test to detect a true difference of 1.0 with power 0.8",
}


def comparison_lines(rows: Sequence[Comparison]) -> list[str]:
    """The rows for a terminal of 120 columns, with a legend; columns without a value are left out."""
    shown = {
        heading: text
        for heading, (field, text) in (_COLUMNS | _COMPARED).items()
        if any(getattr(row, field) is not None for row in rows)
    }
    lines: list[str | list[str]] = [["", *shown]]
    data = ""
    for title in dict.fromkeys(row.title for row in rows):
        title_rows = [row for row in rows if row.title == title]
        lines += ["", shorten(title, WIDTH)] if data not in ("", title_rows[0].data) else [shorten(title, WIDTH)]
        data = title_rows[0].data
        places = _decimals_of_all(title_rows)
        for row in title_rows:
            cells = (
                "" if row.baseline is None and heading in _COMPARED else text(row, places)
                for heading, text in shown.items()
            )
            lines.append([f"  {shorten(row.name, NAME_WIDTH)}", *cells])
    baseline = next((row.baseline for row in rows if row.baseline is not None), None)
    legend = [[heading, _LEGEND[heading].format(baseline=baseline)] for heading in shown if heading in _LEGEND]
    return [*align(lines, width=WIDTH), *([""] if legend else []), *align(legend, left=(0, 1))]


def report_files(name: str) -> dict[str, str]:
    """What each file of a report contains; the last one marks a complete report."""
    return {f"{name}{suffix}": what for suffix, what in SUFFIXES.items()}


def write_report(folder: Path, name: str, rows: Sequence[Comparison], text: str, **more: Any) -> None:
    """Write ``report_files`` to a folder: the rows, ``text`` to print, and in the JSON also ``more``.

    Without rows, only the JSON and the text. Says on standard error if matplotlib is missing for the plots.
    """
    content = list(map(asdict, rows))
    write_json({ROWS: content, **more}, folder / f"{name}.json")
    (folder / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
    if rows:
        write_csv(content, folder / f"{name}.csv")
        draw_if_possible(draw_comparisons, rows, [folder / f"{name}{suffix}" for suffix in (".png", ".svg")])


def read_report(path: Path, remedy: str) -> list[Comparison]:
    """The rows in the JSON file of a report; raises InputError, with what to do, for any other file."""
    rows: Any = read_json_object(path, remedy).get(ROWS)
    try:
        return [Comparison(**row) for row in rows]
    except TypeError:
        raise InputError(f"{path}: not a report of this version; {remedy}") from None


def draw_comparisons(rows: Sequence[Comparison], *paths: Path) -> None:
    """Draw a panel for each measure, with a point and a 95% interval for each name, as .png or .svg by suffix.

    Details are left out. The same rows give the same bytes. Raises InputError if matplotlib is missing.
    """
    rows = [row for row in rows if not row.detail and row.value is not None]
    panels, names = (list(dict.fromkeys(values)) for values in zip(*((row.title, row.name) for row in rows)))
    columns = min(PANELS, len(panels))
    height = -(-len(panels) // columns)
    with drawing((11 / PANELS * columns, 0.6 + height * (0.9 + 0.3 * len(names))), *paths) as figure:
        axes = figure.subplots(height, columns, sharey=True, squeeze=False).flat
        for panel, axis in zip(panels, axes):
            for row in (row for row in rows if row.title == panel):
                place = names.index(row.name)
                color = COLORS[place % len(COLORS)]
                if row.low is not None:
                    axis.hlines(place, row.low, row.high, color=color, linewidth=1.4, **OVER_AXIS)
                axis.plot([row.value], [place], "o", color=color, markersize=5, **OVER_AXIS)
            axis.set_title(shorten(panel, 150 // PANELS), fontsize=8)
            axis.set_yticks(range(len(names)), [shorten(name, NAME_WIDTH) for name in names])
            axis.set_ylim(len(names) - 0.5, -0.5)
            axis.tick_params(labelsize=7.5)
        for axis in axes:  # the panels that are left in the last line
            axis.set_visible(False)
        figure.supxlabel("lines: 95% intervals", fontsize=7.5)
