"""The formats of lists of synonyms: each is a function that turns lines into entries, and refuses what does not fit."""

import csv
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO

from tqdm import tqdm

SHOWN_WIDTH = 60
# signs that separate or enclose words in other formats
_OF_OTHER_FORMATS = re.compile(r'(?<!\\)([\t"<{}\[\]|:;]|=(?!>)|(?<!=)>)')
_LARGEST_GROUP = 100  # each word of a group is a synonym of every other one

Entry = tuple[Sequence[str], Sequence[str], float | None]  # words, the synonyms of each of them, and a score


@dataclass
class Lines(Iterator[str]):
    """The lines of a file, which are counted and hashed; ``read`` is its progress bar.

    ``columns`` are the names of the columns ``word``, ``synonym`` and ``score`` of a table, if they have others, and
    ``where`` the values of columns whose rows are kept. ``number`` is the line that an error names, ``left_out`` counts
    the rows with other values than ``where``, and ``notes`` say what else was left out.
    """

    file: BinaryIO
    read: tqdm
    columns: Mapping[str, str]
    where: Mapping[str, Collection[str]]
    encoding: str = "utf-8"
    count: int = 0
    number: int = 0
    left_out: int = 0
    notes: list[str] = field(default_factory=list)
    digest: Any = field(default_factory=hashlib.sha256)

    def __next__(self) -> str:
        line = next(self.file)
        self.number = self.count = self.count + 1
        self.digest.update(line)
        self.read.update(len(line))
        text = line.decode(self.encoding)
        return text.removeprefix("\ufeff") if self.count == 1 else text


def shown(value: object) -> str:
    """A value of a file in an error message."""
    text = repr(value)
    return text if len(text) <= SHOWN_WIDTH else f"{text[:SHOWN_WIDTH]}..."


def _table(lines: Lines, delimiter: str) -> Iterator[Entry]:
    """The columns ``word``, ``synonym`` and optionally ``score`` of a table whose first line names its columns."""
    rows = csv.reader(lines, delimiter=delimiter, strict=True)

    def cells() -> list[str] | None:
        start = lines.number + 1  # of a row of several lines
        try:
            return next(rows, None)
        except csv.Error as error:
            lines.number = start
            raise ValueError(f"not a valid row, such as of quotes that are not closed ({error})") from None

    names = [name.strip() for name in cells() or ()]
    wanted = {"word": "word", "synonym": "synonym", "score": "score"} | dict(lines.columns)
    if "score" not in lines.columns and "score" not in names:
        del wanted["score"]
    for name in (*wanted.values(), *lines.where):
        if names.count(name) != 1:
            count = f"{names.count(name)} columns" if name in names else "no column"
            columns = ", ".join(f"column {place} is {shown(name)}" for place, name in enumerate(names[:5], start=1))
            columns = columns or "the line is empty"
            raise ValueError(f"{count} {name!r} ({columns}); --columns gives columns other names")
    if others := [name for name in names if name not in (*wanted.values(), *lines.where)]:
        lines.notes.append(f"{len(others)} columns left out: {shown(', '.join(others))}")
    word, synonym = names.index(wanted["word"]), names.index(wanted["synonym"])
    score = names.index(wanted["score"]) if "score" in wanted else None
    where = {names.index(name): values for name, values in lines.where.items()}
    while (row := cells()) is not None:
        if len(row) == len(names):
            if all(row[place] in values for place, values in where.items()):
                rank = None if score is None or not row[score] else _score(row[score], f"column {score + 1}")
                yield [row[word]], [row[synonym]], rank
            else:
                lines.left_out += 1
        elif row:
            raise ValueError(f"{len(row)} columns, not {len(names)} as in the first line: {shown(delimiter.join(row))}")


def _score(text: str, place: str) -> float:
    with suppress(ValueError):
        if math.isfinite(score := float(text)):
            return score
    raise ValueError(f"{place}: {shown(text)} is not a number, such as 0.9")


def _groups(lines: Lines) -> Iterator[Entry]:
    """Synonyms of each other, separated by commas; in ``a, b => c``, only c is a synonym, of a and of b."""
    for line in filter(str.strip, lines):
        if line.startswith("#"):
            continue
        if sign := _OF_OTHER_FORMATS.search(line.rstrip()):
            remedy = "if it belongs there, put \\ before it"
            raise ValueError(f"character {sign.start() + 1}: {sign[0]!r} in a word; {remedy}")
        sides = [re.split(r"(?<!\\),", side) for side in re.split(r"(?<!\\)=>", line)]
        sides = [[re.sub(r"\\(.)", r"\1", term.strip()) for term in side if term.strip()] for side in sides]
        if not all(sides) or len(sides) > 2 or len(sides) == 1 and len(sides[0]) < 2:
            place = line.rfind("=>") + 1 or len(line.rstrip()) + 1
            raise ValueError(f"character {place}: neither a, b nor a, b => c: {shown(line.strip())}")
        if {"word", "synonym"} <= set(sides[0]):
            raise ValueError(f"character 1: names of columns, as in --format csv: {shown(line.strip())}")
        if len(sides) == 1 and len(sides[0]) > _LARGEST_GROUP:
            raise ValueError(
                f"{len(sides[0])} words that are all synonyms of each other, of at most {_LARGEST_GROUP}; if they are "
                "synonyms of the first word only, put => after it"
            )
        yield sides[0], sides[-1], None


def _mythes(lines: Lines) -> Iterator[Entry]:
    """The encoding, and for each word ``word|2`` and its meanings: two lines ``(noun)|synonym|synonym``."""
    encoding = next(lines, "").strip()
    try:
        "".encode(encoding.removeprefix("microsoft-"))
    except (LookupError, ValueError):
        raise ValueError(f"character 1: {shown(encoding)} is no encoding, as in MyThes' first line") from None
    lines.encoding = encoding.removeprefix("microsoft-")
    for line in filter(str.strip, lines):
        word, _, count = line.strip().rpartition("|")
        if not count.isdecimal():
            place = line.rfind("|") + 2
            raise ValueError(f"character {place}: not a word, | and the number of its meanings: {shown(line.strip())}")
        for _ in range(int(count)):
            meaning = next(lines, None)
            if meaning is None:
                raise ValueError(f"a meaning of {shown(word)} is missing after the last line")
            # the only remark of LibreOffice's thesauri after which a word is surely a synonym
            terms = [term.strip().removesuffix(" (similar term)") for term in meaning.split("|")[1:]]
            yield [word], [term for term in terms if term], None


def _ppdb(lines: Lines) -> Iterator[Entry]:
    """``[X] ||| word ||| synonym ||| name=value name=value ||| alignment ||| entailment``, of PPDB 2.0."""
    for line in filter(str.strip, lines):
        cells = [cell.strip() for cell in line.split("|||")]
        if len(cells) != 6 or not re.fullmatch(r"\[.+\]", cells[0]):
            column = min(len(cells), 6) if re.fullmatch(r"\[.+\]", cells[0]) else 1
            raise ValueError(f"column {column}: not the 6 columns of PPDB 2.0: {shown(line.strip())}")
        features = dict(feature.partition("=")[::2] for feature in cells[3].split())
        yield [cells[1]], [cells[2]], _score(features.get("PPDB2.0Score", ""), "column 4: PPDB2.0Score")


def _json(lines: Lines) -> Iterator[Entry]:
    """One object with words and the lists of their synonyms, or one in each line."""
    parse = partial(json.loads, object_pairs_hook=_object)
    names: Collection[str] | None = None
    try:
        for text in filter(str.strip, lines):
            number = lines.number
            try:
                value = parse(text)
            except json.JSONDecodeError as error:
                if names is not None or error.pos < len(text.rstrip()):
                    raise
                text += "".join(lines)  # an object of several lines
                lines.number = number
                value = parse(text)
            if not isinstance(value, dict):
                raise ValueError(f"column 1: not an object with words and lists of their synonyms: {shown(value)}")
            if len(value) > 1 and value.keys() == names:
                raise ValueError(f"column 1: the names of the object before, not words: {shown(', '.join(value))}")
            for word, synonyms in value.items():
                if not isinstance(synonyms, list) or not all(isinstance(synonym, str) for synonym in synonyms):
                    name = re.search(rf"{re.escape(json.dumps(word, ensure_ascii=False))}\s*:", text)
                    start = name.start() if name else 0
                    lines.number += text.count("\n", 0, start)
                    column = start - text.rfind("\n", 0, start)
                    raise ValueError(f"column {column}: {shown(word)} has no list of words, but {shown(synonyms)}")
                yield [word], synonyms, None
            names = value.keys()
        if names is None:
            parse("")  # is not valid JSON
    except json.JSONDecodeError as error:
        lines.number += error.lineno - 1
        raise ValueError(f"column {error.colno}: not valid JSON ({error.msg})") from None
    except RecursionError:
        raise ValueError("not valid JSON (too many brackets)") from None


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the name {shown(name)} occurs twice")
    return content


FORMATS: dict[str, Callable[[Lines], Iterator[Entry]]] = {
    "tsv": partial(_table, delimiter="\t"),
    "csv": partial(_table, delimiter=","),
    "groups": _groups,
    "mythes": _mythes,
    "ppdb": _ppdb,
    "json": _json,
}
