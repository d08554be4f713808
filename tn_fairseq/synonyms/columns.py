"""The columns of a list of synonyms: what separates them, and what each of them holds, by its name or its values."""

import csv
import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from .terms import column_role, is_other_relation, is_part_of_speech, is_synonymy, split_cell

_GAP = "  "  # two or more spaces or tabs, as in aligned columns
_DASHES = (" - ", " – ", " — ", " -> ", " → ")
_DELIMITERS = ("|", ";", ":", "=", ",", *_DASHES, _GAP)
_NAMES = {"\t": "tabs", "|": "vertical bars", ";": "semicolons", ":": "colons", "=": "equals signs", ",": "commas"}
_NAMES |= {_GAP: "gaps"} | {dash: f"'{dash}'" for dash in _DASHES}
_GAPS = re.compile(r"(?<=\w)(?:\s{2,}|\t)(?=\w)")
_MOST = 0.9  # the share of a column's cells that decides what it holds
_LONG = 3.5  # words for each term of a column of definitions
_CATEGORIES = 30  # distinct values of a column of parts of speech or of relations, at most
_AMBIGUOUS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
_COMMAS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")  # between thousands
_POINTS = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?")
_FEW = 0.1  # distinct values for each row of a column of categories


class Columns(NamedTuple):
    """How the lines of a list are read.

    ``delimiter`` is None for white space. ``roles`` are those of the columns. Without a word among them, the synonyms
    of a line are synonyms of each other. ``headings`` are the lines before the first entry.
    """

    delimiter: str | None
    roles: Sequence[str]
    headings: int
    is_named: bool

    def __str__(self) -> str:
        kept = [f"{number} {role}" for number, role in enumerate(self.roles, start=1) if role in _SHOWN]
        other = [str(number) for number, role in enumerate(self.roles, start=1) if role not in _SHOWN]
        left_out = f"; left out: {', '.join(other)}" if other else ""
        columns = ", ".join(kept) if "word" in self.roles else "all words of a line are synonyms of each other"
        return f"columns separated by {_NAMES.get(self.delimiter or '', 'spaces')}: {columns}{left_out}"


_SHOWN = ("word", "synonym", "score", "relation")


def parse_score(text: str) -> float:
    """A score, such as 0.9, 0,9 or 90%; raises ValueError for another text, and for 1,000, which can mean 1 or 1000."""
    try:
        value = float(text)
    except ValueError:
        value = _local_number(text.strip().strip('"'))
    if not math.isfinite(value):
        raise ValueError(f"the score {text!r} is not a number")
    return value


def _local_number(text: str) -> float:
    plain = text.rstrip("% ")
    if _AMBIGUOUS.fullmatch(plain):
        point, thousands = plain.replace(",", "."), plain.replace(",", "")
        raise ValueError(f"the score {text!r} can mean {point} or {thousands}; write one of them")
    if _COMMAS.fullmatch(plain):
        plain = plain.replace(",", "")
    elif _POINTS.fullmatch(plain):
        plain = plain.replace(".", "")
    try:
        return float(plain.replace(",", ".")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return math.nan


def split_line(line: str, delimiter: str | None) -> list[str]:
    """The cells of a line, which can be quoted, or contain the delimiter after a backslash."""
    if delimiter == _GAP:
        return _GAPS.split(line.strip())
    if '"' in line and delimiter is not None and len(delimiter) == 1:
        try:
            return next(csv.reader([line], delimiter=delimiter, strict=True, skipinitialspace=True))
        except csv.Error:
            pass  # quotes that quote nothing, as in 12" disc
    if "\\" in line and delimiter is not None:
        return re.split(rf"(?<!\\){re.escape(delimiter)}", line)
    return line.split(delimiter)


def recognize(lines: Sequence[str], named: str | None = None) -> Columns:
    """The columns of a list by its first lines; ``named`` can be pairs or groups.

    Raises ValueError if nothing separates most lines, or if it is not clear which column is a score.
    """
    headings = 0
    if match := re.fullmatch(r"sep=(.)", lines[0].strip().strip('"'), re.IGNORECASE):  # Excel
        delimiter: str | None = match[1]
        headings, lines = 1, lines[1:]
        if not lines:
            raise ValueError("no synonyms, only the line that names the separator")
    else:
        delimiter = _delimiter(lines, named)
    rows = [[cell.strip() for cell in split_line(line, delimiter)] for line in lines]
    if named != "groups" and (roles := _named_roles(rows[0])):
        return Columns(delimiter, roles, headings + 1, True)
    kinds = [_kind(column, place) for place, column in enumerate(_columns(rows[1:] or rows))]
    special = [place for place, kind in enumerate(kinds) if kind in _TESTS]
    if len(rows) > 1 and any(
        len(rows[0]) > place and rows[0][place] and not _TESTS[kinds[place]](rows[0][place]) for place in special
    ):
        headings += 1  # a heading in words that we do not know
    else:
        kinds = [_kind(column, place) for place, column in enumerate(_columns(rows))]
    if kinds.count("score") > 1:
        places = " and ".join(str(place + 1) for place, kind in enumerate(kinds) if kind == "score")
        raise ValueError(f"columns {places} are all numbers; add a first line such as word,synonym,score")
    texts = [place for place, kind in enumerate(kinds) if kind == "text"]
    if len(texts) < 2:
        fault = "no second column of words, separated by a tab or a comma"
        if "long" in kinds:
            fault += f"; column {kinds.index('long') + 1} has many words without a comma between them"
        raise ValueError(fault)
    if len(texts) > 2 and len(rows) >= 20:
        categories = [place for place in texts[1:] if _is_category(_columns(rows)[place])]
        texts = [place for place in texts if place not in categories]
    longer = sum(any(row[len(kinds) :]) for row in rows)
    is_regular = sum(len(row) == len(kinds) for row in rows) >= len(rows) / 2 and longer <= (1 - _MOST) * len(rows)
    is_pairs = (
        any(kind in _TESTS for kind in kinds)
        or delimiter in (":", "=")
        or len(texts) == 2
        and is_regular
        and (delimiter != "," or len(kinds) > 2 or _several(rows, texts[1]))
    )
    first = "word" if named == "pairs" or named is None and is_pairs else "synonym"
    filled = [place for place, cells in enumerate(_columns(rows)) if sum(map(bool, cells)) > len(rows) / 2]
    if first == "synonym" and named is None and is_regular and len(set(filled) - set(texts)) >= len(texts):
        places = ", ".join(str(place + 1) for place in texts)
        raise ValueError(
            f"a table of {len(kinds)} columns, of which {places} have words; add a first line such as "
            "word,synonym,date, or if all words of a line are synonyms of each other, give --format groups"
        )
    return Columns(delimiter, _roles(kinds, texts, first), headings, False)


def _roles(kinds: Sequence[str], texts: Sequence[int], first: str) -> list[str]:
    roles = ["other" if kind in ("text", "long") else kind for kind in kinds]
    for place in texts:
        roles[place] = "synonym"
    roles[texts[0]] = first
    return roles


def _several(rows: Sequence[Sequence[str]], place: int) -> bool:
    """Whether some cells of a column contain several terms."""
    return any(len(split_cell(row[place])) > 1 for row in rows if len(row) > place)


def _delimiter(lines: Sequence[str], named: str | None) -> str | None:
    """What separates the first column of most lines: a tab, or else the sign that comes first; None for white space."""
    if sum("\t" in line for line in lines) > len(lines) / 2:
        return "\t"
    firsts = {sign: [len(split_line(line, sign)[0]) for line in lines] for sign in _DELIMITERS}
    widths = list(map(len, lines))
    usual = {
        sign: first
        for sign, first in firsts.items()
        if sum(0 < cell < width for cell, width in zip(first, widths, strict=True)) > len(lines) / 2
    }
    if usual:
        # votes of the lines, because a heading or a remark may contain another sign
        votes = dict.fromkeys(usual, 0)
        for place in range(len(lines)):
            votes[min(usual, key=lambda sign: usual[sign][place])] += 1
        return max(votes, key=votes.__getitem__)
    counts = [len(line.split()) for line in lines]
    usual_count = max(set(counts), key=counts.count)
    if 2 <= usual_count <= 4 and counts.count(usual_count) >= _MOST * len(lines):
        return None
    if named == "groups" and usual_count >= 2:  # of any size
        return None
    raise ValueError("no second column, separated by a tab, a comma or another sign")


def _named_roles(heading: Sequence[str]) -> list[str] | None:
    """The roles of the columns by their names, or None if the line is not a heading."""
    roles = [column_role(name) if name else "left out" for name in heading]  # an index has no name
    words = [place for place, role in enumerate(roles) if role == "word"]
    if "synonym" not in roles:
        others = [place for place, role in enumerate(roles) if role == "other"]
        if len(words) > 1:  # word1, word2
            roles[words[1]] = "synonym"
        elif words and len(others) == 1 and len(roles) > 2:
            roles[others[0]] = "synonym"
        else:
            return None
    elif not words:
        synonyms = [place for place, role in enumerate(roles) if role == "synonym"]
        others = [place for place, role in enumerate(roles) if role == "other"]
        if len(synonyms) > 1:
            others = [place for place in others if place < synonyms[0]] or synonyms
        if not others:
            return None
        roles[others[0]] = "word"
    return ["other" if role == "word" and place != roles.index("word") else role for place, role in enumerate(roles)]


def _columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The columns that half of the lines have."""
    counts = sorted((len(row) for row in rows), reverse=True)
    return [[row[place] for row in rows if len(row) > place] for place in range(counts[(len(counts) - 1) // 2])]


def _kind(cells: Sequence[str], place: int) -> str:
    """What the cells of a column hold: text, long text, a score, a part of speech, a relation, or something else."""
    cells = [cell for cell in cells if cell]
    if not cells:
        return "other"
    for kind, test in _TESTS.items():
        is_varied = kind != "score" and len(set(cells)) > _CATEGORIES
        if not is_varied and sum(map(test, cells)) >= _MOST * len(cells):
            is_index = kind == "score" and (_counts_up(cells) or place == 0 and all(map(str.isdigit, cells)))
            return "other" if is_index else kind
    if sum(bool(re.search(r"\d.*[^\w\s]|[^\w\s].*\d", cell)) for cell in cells) >= _MOST * len(cells):
        return "other"  # names of senses such as dog.n.01, addresses
    terms = [term for cell in cells for term in split_cell(cell)]
    return "long" if sum(len(term.split()) for term in terms) > _LONG * max(len(terms), 1) else "text"


def _counts_up(cells: Sequence[str]) -> bool:
    try:
        values = list(map(parse_score, cells))
    except ValueError:
        return False
    return len(values) > 2 and values[0] >= 0 and all(two == one + 1 for one, two in pairwise(values))


def _is_category(cells: Sequence[str]) -> bool:
    return len(set(cells)) <= _FEW * len(cells)


def _is_number(text: str) -> bool:
    try:
        parse_score(text)
    except ValueError:
        return _AMBIGUOUS.fullmatch(text.rstrip("% ")) is not None
    return True


def _is_relation(text: str) -> bool:
    return is_other_relation(text) or is_synonymy(text)


_TESTS: dict[str, Callable[[str], bool]] = {
    "score": _is_number,
    "part of speech": is_part_of_speech,
    "relation": _is_relation,
}
