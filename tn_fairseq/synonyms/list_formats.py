"""The formats of lists of synonyms: each is a function that turns lines into entries, and reports what it misreads."""

import sys
from collections.abc import Callable, Iterator

from .columns import parse_score, split_line
from .json_lists import json_entries
from .list_lines import ARROW, HEADING, OTHER, SHOWN_WIDTH, Entry, Lines, is_word_of_mythes
from .terms import is_other_relation, is_synonymy, split_cell


def _pairs(lines: Lines) -> Iterator[Entry]:
    """A word, its synonyms, and optionally a score and a relation, in the columns that were recognized."""
    columns = lines.columns
    assert columns is not None
    delimiter, roles = columns.delimiter, columns.roles
    word = roles.index("word")
    synonyms = [place for place, role in enumerate(roles) if role == "synonym"]
    score = roles.index("score") if "score" in roles else sys.maxsize  # not a cell of a row that is too long
    relation = roles.index("relation") if "relation" in roles else None
    has_more = synonyms[-1] == len(roles) - 1 and (columns.is_named or len(synonyms) > 1)
    one = synonyms[0] if len(synonyms) == 1 else None
    last, most = max(word, synonyms[0]), len(roles)
    lines.skip(columns.headings)
    for line in lines:
        fields = split_line(line, delimiter)
        size = len(fields)
        if size <= last or not fields[word].strip() or not fields[synonyms[0]].strip():
            lines.misread("no second column", line)
            continue
        if size > most and not has_more and any(field.strip() for field in fields[most:]):
            lines.misread(f"{size} columns, not {most}", line)
            continue
        if relation is not None and relation < size and not is_synonymy(fields[relation]):
            lines.counts[OTHER] += 1
            lines.examples.setdefault(OTHER, line[:SHOWN_WIDTH])
            continue
        rank = None
        if score < size and (text := fields[score]):
            try:
                rank = parse_score(text)
            except ValueError as error:
                lines.misread(str(error), line)
                continue
        if one is not None and size <= most:
            yield (fields[word],), (fields[one],), rank
        else:
            cells = [fields[place] for place in synonyms if place < size]
            yield (fields[word],), [cell for cell in cells + fields[most:] if cell.strip()], rank


def _groups(lines: Lines) -> Iterator[Entry]:
    """Synonyms of each other; in ``a, b => c``, only c is a synonym, of a and of b."""
    columns = lines.columns
    assert columns is not None
    left_out = [place for place, role in enumerate(columns.roles) if role == "other"]
    lines.skip(columns.headings)
    for line in lines:
        left, arrow, right = line.partition(ARROW)
        left = left.rstrip("= ")  # of ==>
        if arrow and left and right.strip():
            words, synonyms = (_members(side, columns.delimiter) for side in (left.removesuffix("<"), right))
            if left.endswith("<"):  # of <=>
                words = synonyms = words + synonyms
            yield words, synonyms, None
            continue
        cells = split_line(line, columns.delimiter)
        members = [cell for place, cell in enumerate(cells) if cell.strip() and place not in left_out]
        if len(members) < 2 and len(split_cell(line)) < 2 or arrow:
            lines.misread("no second column", line)
        else:
            yield members, members, None


def _members(text: str, delimiter: str | None) -> list[str]:
    return [member for member in split_line(text, delimiter) if member.strip()]


def _mythes(lines: Lines) -> Iterator[Entry]:
    """The encoding if it is there, and for each word ``word|2`` and its meanings: two lines ``(noun)|synonym``."""
    word, expected, line = "", 0, next(lines, None)
    if line is not None and "|" not in line:  # the encoding
        lines.counts[HEADING] += 1
        line = next(lines, None)
    while line is not None:
        if expected and not is_word_of_mythes(line):
            expected -= 1
            label, *synonyms = line.split("|")
            if not any(synonym.strip() for synonym in synonyms):
                lines.misread(f"no synonym after a | in a meaning of {word!r}", line)
            elif is_other_relation(label):
                lines.counts[OTHER] += 1
                lines.examples.setdefault(OTHER, line[:SHOWN_WIDTH])
            else:
                yield (word,), [synonym for synonym in synonyms if synonym], None
        elif is_word_of_mythes(line):
            if expected:
                lines.misread(f"{expected} meanings of {word!r} are missing", line)
            word, _, count = line.rpartition("|")
            expected = int(count)
            lines.counts[HEADING] += 1
        else:
            lines.misread("not a word and its number of meanings, separated by |", line)
        line = next(lines, None)
    if expected:
        lines.misread(f"{expected} meanings of {word!r} are missing at the end", "")


def _ppdb(lines: Lines) -> Iterator[Entry]:
    """``LHS ||| phrase ||| paraphrase ||| name=value name=value ...``, with the score PPDB2.0Score."""
    for line in lines:
        fields = line.split(" ||| ")
        if len(fields) < 4:
            lines.misread(f"{len(fields)} columns separated by |||, not at least 4 as in PPDB", line)
            continue
        _, name, rest = fields[3].partition("PPDB2.0Score=")
        try:
            yield (fields[1],), (fields[2],), parse_score(rest.split(" ", 1)[0]) if name else None
        except ValueError as error:
            lines.misread(str(error), line)


FORMATS: dict[str, Callable[[Lines], Iterator[Entry]]] = {
    "pairs": _pairs,
    "groups": _groups,
    "mythes": _mythes,
    "ppdb": _ppdb,
    "json": json_entries,
}
