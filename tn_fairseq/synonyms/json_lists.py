"""Lists of synonyms in JSON: one value, or one in each line."""

import json
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any

from ..core.errors import first_line
from .columns import parse_score
from .list_lines import OTHER, SHOWN_WIDTH, VALUES, Entry, Lines
from .terms import column_role, is_part_of_speech, is_synonymy

_MOST_FIELDS = 20  # of a record


def json_entries(lines: Lines) -> Iterator[Entry]:
    """The entries of words with their synonyms, of records with fields for both, and of groups.

    Raises ValueError if the lines are not JSON, neither each of them nor all together.
    """
    reader, first = _Reader(lines), next(lines)
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        lines.is_one_value = True
        try:
            value = json.loads("\n".join(chain([first], lines)))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"not valid JSON ({first_line(error)})") from None
    yield from reader.value(value)
    for line in lines:
        try:
            yield from reader.value(json.loads(line))
        except (ValueError, RecursionError) as error:
            lines.misread(f"not valid JSON ({first_line(error)})", line)


class _Reader:
    """Turns JSON values into entries, and reports to the lines what it misreads or leaves out."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.words: Collection[str] = ()  # the names in the last object that was read as words with their synonyms

    def value(self, value: Any) -> Iterator[Entry]:
        if isinstance(value, list) and not all(isinstance(part, str) for part in value):
            for part in value:
                yield from self.value(part)
        elif isinstance(value, list) and len(value) > 1:
            yield value, value, None
        elif isinstance(value, dict) and value:
            yield from self._object(value)
        else:
            self._misread("neither a word with synonyms nor a group", value)

    def _object(self, value: dict[str, Any]) -> Iterator[Entry]:
        fields = _fields(value)
        if _is_record(value, fields):
            others = [name for name in fields.get("other", ()) if isinstance(value[name], str)]
            if "word" not in fields and len(others) == 1:  # the only other text
                fields["word"] = others
            if "word" in fields:
                yield from self._record(value, fields)
                return
            if len(value) < 4:
                yield from self._groups(value[name] for name in fields["synonym"])
                return
        elif len(value) == 1:
            (content,) = value.values()
            if isinstance(content, list) and content and not isinstance(content[0], str):
                yield from self.value(content)  # the name of the list
                return
        if len(value) > 1 and value.keys() == self.words:  # so these are not words
            self._misread("a record without a name for synonyms, such as synonyms", value)
            return
        self.words = value.keys()
        for word, content in value.items():
            yield from self._word(word, content)

    def _record(self, value: dict[str, Any], fields: dict[str, list[str]]) -> Iterator[Entry]:
        """A word, its synonyms, and optionally a score and a relation."""
        relations = [value[name] for name in fields.get("relation", ()) if isinstance(value[name], str)]
        scores = [value[name] for name in fields.get("score", ())]
        if relations and not is_synonymy(relations[0]):
            self.lines.counts[OTHER] += 1
        elif synonyms := [term for name in fields["synonym"] for term in self._strings(value[name])]:
            score = None
            if scores and scores[0] not in (None, "") and (score := self._score(scores[0], value)) is None:
                return
            yield self._strings(value[fields["word"][0]]), synonyms, score
        else:
            self._misread("no synonyms", value)

    def _groups(self, groups: Iterator[Any]) -> Iterator[Entry]:
        for group in groups:
            if isinstance(group, list) and not all(isinstance(part, str) for part in group):
                yield from self.value(group)
            else:
                members = self._strings(group)
                yield members, members, None

    def _word(self, word: str, content: Any) -> Iterator[Entry]:
        """A word and what an object has under it: its synonyms, also with scores, by part of speech or by sense."""
        parts = list(content.values()) if isinstance(content, dict) else [content]
        if not isinstance(content, dict) or all(part in ("", [], {}, None) for part in parts):
            terms = self._strings(content)
            if any(terms):
                yield (word,), terms, None
            else:
                self._misread("no synonyms", {word: content})
        elif all(isinstance(part, (int, float)) for part in parts):
            for synonym, score in content.items():
                if (rank := self._score(score, {word: {synonym: score}})) is not None:
                    yield (word,), (synonym,), rank
        # before the next case, because "conjunction" is also a noun
        elif all(is_part_of_speech(name) and isinstance(terms, (str, list)) for name, terms in content.items()):
            yield (word,), [term for terms in parts for term in self._strings(terms)], None
        elif is_part_of_speech(word):
            yield from self.value(content)
        elif _is_sense(content):
            yield from self.value({"word": word, **content})
        elif all(_is_sense(part) for part in parts):
            for part in parts:
                yield from self.value({"word": word, **part})
        else:
            self._misread("no synonyms", {word: content})

    def _score(self, score: Any, value: Any) -> float | None:
        """A finite score; None if it is not one, which is counted as misread in the value."""
        try:
            return parse_score(str(score))
        except ValueError as error:
            self._misread(str(error), value)
            return None

    def _strings(self, value: Any) -> list[str]:
        """The text of a value, or those of a list or of lists in it; counts what else is in the list."""
        parts = value if isinstance(value, list) else [value]
        parts = list(chain.from_iterable(part if isinstance(part, list) else [part] for part in parts))
        strings = [part for part in parts if isinstance(part, str)]
        if strings and len(strings) < len(parts):
            self.lines.counts[VALUES] += len(parts) - len(strings)
            other = next(part for part in parts if not isinstance(part, str))
            self.lines.examples.setdefault(VALUES, json.dumps(other, ensure_ascii=False)[:SHOWN_WIDTH])
        return strings

    def _misread(self, reason: str, value: Any) -> None:
        self.lines.misread(reason, json.dumps(value, ensure_ascii=False))


def _fields(value: dict[str, Any]) -> dict[str, list[str]]:
    """The names in an object by the role that a column with this name has."""
    fields: dict[str, list[str]] = {}
    for name in value:
        fields.setdefault(column_role(name), []).append(name)
    return fields


def _is_record(value: dict[str, Any], fields: dict[str, list[str]]) -> bool:
    """Whether these are fields, and not a thesaurus in which "word" and "similar" are words."""
    if "synonym" not in fields or len(value) > _MOST_FIELDS:
        return False
    if "word" in fields and isinstance(value[fields["word"][0]], str):
        return True
    others = [value[name] for name in fields.get("other", ())]
    return isinstance(value[fields["synonym"][0]], (str, list)) and not any(isinstance(other, list) for other in others)


def _is_sense(content: Any) -> bool:
    """Whether this is ``{"definition": "a way", "synonyms": ["road", "street"]}``."""
    return isinstance(content, dict) and any(column_role(name) == "synonym" for name in content)
