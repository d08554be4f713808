"""The layout of tables in a terminal; without pandas, which takes half a second to import."""

from collections.abc import Collection, Sequence

WIDTH = 120


def align(lines: Sequence[str | Sequence[str]], left: Collection[int] = (0,), width: int | None = None) -> list[str]:
    """Align the columns of tables: a string is a line by itself, a list of strings has one cell for each column.

    The columns in ``left`` are aligned to the left, all others to the right. If lines would be longer than ``width``,
    the start of the cells in the first column is cut.
    """
    # the name of a file may have several lines
    lines = [line if isinstance(line, str) else [text.replace("\n", " ") for text in line] for line in lines]
    cells = [line for line in lines if not isinstance(line, str)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    if width is not None and widths:
        widths[0] = min(widths[0], width - sum(2 + other for other in widths[1:]))

    def joined(line: Sequence[str]) -> str:
        padded = [
            text.ljust(size) if column in left else text.rjust(size)
            for column, (text, size) in enumerate(zip([shorten(line[0], widths[0]), *line[1:]], widths))
        ]
        return "  ".join(padded).rstrip()

    return [line if isinstance(line, str) else joined(line) for line in lines]


def shorten(path: str, width: int) -> str:
    """Cut the start of ``path`` if it is longer than ``width`` characters."""
    return path if len(path) <= width else "…" + path[len(path) - width + 1 :]
