"""Numbers and tables: their layout in a terminal."""

import math
from collections.abc import Collection, Sequence

WIDTH = 120


def align(lines: Sequence[str | Sequence[str]], left: Collection[int] = (0,), width: int | None = None) -> list[str]:
    """Align the columns of tables: a string is a line by itself, a list of strings has one cell for each column.

    The columns in ``left`` are aligned to the left, all others to the right. If lines would be longer than ``width``,
    the start of the cells in the first column is cut.
    """
    widths = [max(map(len, column)) for column in zip(*(line for line in lines if not isinstance(line, str)))]
    if width is not None:
        widths[0] = min(widths[0], width - sum(2 + other for other in widths[1:]))

    def join(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip([shorten(cells[0], widths[0]), *cells[1:]], widths))
        ]
        return "  ".join(padded).rstrip()

    return [line if isinstance(line, str) else join(line) for line in lines]


def shorten(path: str, width: int) -> str:
    """Cut the start of ``path`` if it is longer than ``width`` characters."""
    return path if len(path) <= width else "…" + path[len(path) - width + 1 :]


def cell(value: float | None, form: str, low: float | None = None, high: float | None = None) -> str:
    """A number in a format, or "-" for None and NaN; followed by half the width of its interval if there is one."""
    if value is None or math.isnan(value):
        return "-"
    half = "" if low is None or high is None else f" ± {(high - low) / 2:{form.removeprefix('+')}}"
    return f"{value:{form}}{half}"


def percent(part: float, whole: float) -> float | None:
    """100 * part / whole, or None if ``whole`` is 0."""
    return 100 * part / whole if whole else None
