"""The formats of lists of synonyms: each is a function that turns lines into entries, and reports what it misreads."""

import json
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from ..core.errors import first_line
from .columns import parse_score, split_line
from .list_lines import ARROW, HEADING, OTHER, SHOWN_WIDTH, Entry, Lines, is_word_of_mythes
from .terms import column_role, is_other_relation, is_part_of_speech, is_synonymy, split_cell

_MOST_FIELDS = 20  # of a JSON record


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


def _json(lines: Lines) -> Iterator[Entry]:
    """One JSON value, or one for each line: words with their synonyms, records with such names, or groups."""
    first = next(lines)
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        lines.is_one_value = True
        try:
            value = json.loads("\n".join(chain([first], lines)))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"not valid JSON ({first_line(error)})") from None
    yield from _values(value, lines)
    for line in lines:
        try:
            yield from _values(json.loads(line), lines)
        except (ValueError, RecursionError) as error:
            lines.misread(f"not valid JSON ({first_line(error)})", line)


def _values(value: Any, lines: Lines) -> Iterator[Entry]:
    """The entries of a JSON value."""
    if isinstance(value, list) and not all(isinstance(part, str) for part in value):
        for part in value:
            yield from _values(part, lines)
        return
    if isinstance(value, list) and len(value) > 1:
        yield value, value, None
        return
    if not isinstance(value, dict) or not value:
        lines.misread("neither a word with synonyms nor a group", json.dumps(value, ensure_ascii=False))
        return
    roles = {name: column_role(name) for name in value}
    names = {role: [name for name in value if roles[name] == role] for role in set(roles.values())}
    is_record = _is_record(value, names)
    if is_record and "word" not in names:  # the only other text
        others = [name for name in names.get("other", ()) if isinstance(value[name], str)]
        if len(others) == 1:
            names["word"] = others
    if len(value) == 1 and isinstance(next(iter(value.values())), list) and not is_record:
        (content,) = value.values()
        if content and not isinstance(content[0], str):
            yield from _values(content, lines)
            return
    if is_record and "word" in names:
        relations = [value[name] for name in names.get("relation", ()) if isinstance(value[name], str)]
        scores = [value[name] for name in names.get("score", ())]
        if relations and not is_synonymy(relations[0]):
            lines.counts[OTHER] += 1
        elif synonyms := [term for name in names["synonym"] for term in lines.strings(value[name])]:
            try:
                score = parse_score(str(scores[0])) if scores else None
            except ValueError as error:
                lines.misread(str(error), json.dumps(value, ensure_ascii=False))
                return
            yield lines.strings(value[names["word"][0]]), synonyms, score
        else:
            lines.misread("no synonyms", json.dumps(value, ensure_ascii=False))
    elif is_record and len(value) < 4:
        for group in [value[name] for name in names["synonym"]]:
            if isinstance(group, list) and not all(isinstance(part, str) for part in group):
                yield from _values(group, lines)
            else:
                members = lines.strings(group)
                yield members, members, None
    elif len(value) > 1 and value.keys() == lines.names:  # so these are not words
        lines.misread("a record without a name for synonyms, such as synonyms", json.dumps(value, ensure_ascii=False))
    else:
        lines.names = value.keys()
        for word, content in value.items():
            parts = content.values() if isinstance(content, dict) else [content]
            if all(part in ("", [], {}, None) for part in parts):
                lines.misread("no synonyms", json.dumps({word: content}, ensure_ascii=False))
            elif isinstance(content, dict) and all(isinstance(part, (int, float)) for part in parts):
                for synonym, score in content.items():
                    yield (word,), (synonym,), float(score)
            elif isinstance(content, dict) and is_part_of_speech(word):
                yield from _values(content, lines)
            elif _is_by_part_of_speech(content):
                yield (word,), [term for terms in content.values() for term in lines.strings(terms)], None
            elif _is_sense(content):
                yield from _values({"word": word, **content}, lines)
            elif isinstance(content, dict) and all(_is_sense(part) for part in parts):
                for part in parts:
                    yield from _values({"word": word, **part}, lines)
            elif terms := lines.strings(content):
                yield (word,), terms, None
            else:
                lines.misread("no synonyms", json.dumps({word: content}, ensure_ascii=False))


def _is_record(value: dict[str, Any], names: dict[str, list[str]]) -> bool:
    """Whether an object has fields, by their roles, and is not a thesaurus in which "word" and "similar" are words."""
    if "synonym" not in names or len(value) > _MOST_FIELDS:
        return False
    if "word" in names and isinstance(value[names["word"][0]], str):
        return True
    others = [value[name] for name in names.get("other", ())]
    return isinstance(value[names["synonym"][0]], (str, list)) and not any(isinstance(other, list) for other in others)


def _is_sense(content: Any) -> bool:
    """Whether this is ``{"definition": "a way", "synonyms": ["road", "street"]}``."""
    return isinstance(content, dict) and any(column_role(name) == "synonym" for name in content)


def _is_by_part_of_speech(content: Any) -> bool:
    """Whether this is ``{"noun": ["road", "street"], ...}``."""
    return isinstance(content, dict) and all(
        is_part_of_speech(name) and isinstance(terms, (str, list)) for name, terms in content.items()
    )


FORMATS: dict[str, Callable[[Lines], Iterator[Entry]]] = {
    "pairs": _pairs,
    "groups": _groups,
    "mythes": _mythes,
    "ppdb": _ppdb,
    "json": _json,
}
