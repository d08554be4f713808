"""The author's conclusions, which the report of a study shows with its figures."""

import re
from pathlib import Path
from typing import NamedTuple

from ...core.files import read_text

TITLE = "# "  # begins a line that is the title of a section


class Discussion(NamedTuple):
    """Paragraphs for the top of the report, and titles and paragraphs for below its table."""

    opening: list[str]
    rest: list[str]


def read_discussion(path: Path) -> Discussion:
    """Read paragraphs, which blank lines separate, and lines that begin with ``# ``, which are titles.

    The paragraphs above the first title are for the top. Without titles, only the first paragraph is. Raises InputError
    for a file that is not UTF-8.
    """
    text = read_text(path, "delete it") if path.exists() else ""
    text = re.sub(f"^{TITLE}.*$", r"\n\g<0>\n", text, flags=re.MULTILINE)
    parts = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    first = next((number for number, part in enumerate(parts) if part.startswith(TITLE)), 1)
    return Discussion(parts[:first], parts[first:])
