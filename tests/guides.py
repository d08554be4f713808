"""The pages of docs/, and their sections."""

import re

from helpers import PLUGIN

DOCS = PLUGIN.parent / "docs"


def guide(name: str, title: str | None = None) -> str:
    """The text of a page of docs/, or of the section with this title and its subsections."""
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    return text if title is None else section(text, title)


def section(text: str, title: str) -> str:
    """The section of a page with this title, to the next heading that is not below it."""
    headings = list(headings_of(text))
    ((place, level),) = [(place, level) for place, level, name in headings if name == title]
    ends = [other for other, its_level, _ in headings if other > place and its_level <= level]
    return text[place : min(ends, default=len(text))]


def headings_of(text: str) -> list[tuple[int, int, str]]:
    """Where each heading is, its level, and its title; a comment in a block of code is no heading."""
    prose = re.sub(r"^```.*?^```", lambda block: "`" * len(block[0]), text, flags=re.DOTALL | re.MULTILINE)
    return [(match.start(), len(match[1]), match[2]) for match in re.finditer(r"^(#+) (.*)$", prose, re.MULTILINE)]
