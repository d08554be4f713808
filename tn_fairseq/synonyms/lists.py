"""Lists of synonyms in files: pairs of words, groups of words, a thesaurus in MyThes format, or PPDB.

A format is a function that turns the lines of a file into entries. It raises ValueError for the current line.
"""

import codecs
import csv
import hashlib
import math
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ..errors import InputError
from .vectors import progress

_REMEDY = "correct it, or name the format of --synonyms with --format"
_SAMPLE_LINES = 100  # that decide the format
_BLOCK = 1 << 20  # bytes to read at a time
_PAIRS = 12_000_000  # drop duplicates after so many
_LARGEST_GROUP = 1000  # each word of a group is a synonym of every other one

_SIMILAR = " (similar term)"  # MyThes; people accept them as often as synonyms, but not generic or related terms

_USED = "lines used"
_HEADING = "lines skipped: headings"
_BLANK = "lines skipped: blank or comments"
_BELOW = "lines skipped: below --min-score"
_PHRASE = "lines skipped: several words"
_OTHER = "lines skipped: other relations"
_UNKNOWN = "lines skipped: not in the dictionary"
_PHRASES = "entries left out: several words"
_OTHERS = "entries left out: other relations"
_COUNTS = (_USED, _HEADING, _BLANK, _BELOW, _PHRASE, _OTHER, _UNKNOWN, _PHRASES, _OTHERS)

Entry = tuple[Sequence[str], Sequence[str], float | None]  # words, the synonyms of each of them, and a score


class SynonymList:
    """The synonyms in a file of those ``words`` that it has, ignoring case.

    ``synonyms`` are those of each lowercase word that the file has, by falling score and then in the order of the file.
    ``counts`` are the lines used and skipped, and the entries left out, by reason. With ``symmetric``, a pair counts in
    both directions. Raises InputError with the line number for a file that is not UTF-8 (MyThes: the encoding of its
    first line) or not in ``format``, which is one of FORMATS or recognized, and for a file without synonyms.
    """

    def __init__(
        self,
        path: str | Path,
        words: Collection[str],
        format: str | None = None,
        symmetric: bool = False,
        min_score: float | None = None,
    ) -> None:
        path = Path(path)
        spellings = {word.lower(): word for word in words}
        self._numbers = {word: number for number, word in enumerate(spellings)}
        self.counts = dict.fromkeys(_COUNTS, 0)
        pairs = _Pairs()
        try:
            with open(path, "rb") as file:
                lines = _Lines(path, file, self.counts)
                try:
                    self.format = lines.choose(format)
                    self._add_all(FORMATS[self.format](lines), pairs, symmetric, min_score)
                except UnicodeDecodeError:
                    fault = f"{path}, line {lines.number}: not {lines.encoding.upper()}"
                    raise InputError(f"{fault}; give --synonyms an uncompressed file in this encoding") from None
                except (ValueError, csv.Error) as error:
                    raise InputError(f"{path}, line {lines.number or 1}: {error}; {_REMEDY}") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; give a list of synonyms with --synonyms") from None
        if not self.counts[_USED]:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.counts.items() if count)
            fault = f"{path}: no synonyms for the dictionary ({reasons}; read as {self.format})"
            raise InputError(f"{fault}; give another list with --synonyms, or name its format with --format")
        self.version = f"{path.name}, {lines.number} lines, sha256 {lines.digest.hexdigest()}"
        names, forms = list(spellings), list(spellings.values())
        self.synonyms: dict[str, list[str]] = {names[number]: [] for number in pairs.seen}
        for number, best in pairs.rows():
            self.synonyms[names[number]] = [forms[other] for other in sorted(best, key=best.__getitem__, reverse=True)]

    def _add_all(self, entries: Iterable[Entry], pairs: "_Pairs", symmetric: bool, min_score: float | None) -> None:
        counts = self.counts
        for left, right, score in entries:
            if min_score is not None:
                if score is None:
                    raise ValueError("no score, which --min-score needs")
                if score < min_score:
                    counts[_BELOW] += 1
                    continue
            phrases, others = counts[_PHRASES], counts[_OTHERS]
            words = self._known(left)
            synonyms = words if right is left else self._known(right)
            pairs.seen.update(words)
            if not words or not synonyms or words == synonyms and len(words) < 2:
                reason = _OTHER if counts[_OTHERS] > others else _UNKNOWN
                counts[_PHRASE if counts[_PHRASES] > phrases else reason] += 1
                continue
            if len(words) > _LARGEST_GROUP:
                raise ValueError(f"a group of {len(words):,} words, which cannot all be synonyms")
            counts[_USED] += 1
            rank = -math.inf if score is None else score
            pairs.add(words, synonyms, rank)
            if symmetric and right is not left:
                pairs.add(synonyms, words, rank)

    def _known(self, terms: Iterable[str]) -> list[int]:
        """The numbers of the terms that are in the dictionary; counts those of several words and other relations."""
        known = []
        for term in terms:
            number = self._numbers.get(term)
            if number is None:
                word = term.strip().lower().removesuffix(_SIMILAR)
                number = self._numbers.get(word)
            if number is not None:
                known.append(number)
            elif word.endswith(")") and " (" in word:  # a remark, such as (antonym)
                self.counts[_OTHERS] += 1
            elif " " in word or "_" in word:
                self.counts[_PHRASES] += 1
        return known


class _Pairs:
    """Pairs of words and synonyms, which are numbers, with scores: 16 bytes each, because files have millions."""

    def __init__(self) -> None:
        self.seen: set[int] = set()  # words with a pair or not
        self.words, self.synonyms, self.scores = array("i"), array("i"), array("d")
        self.limit = _PAIRS

    def add(self, words: Sequence[int], synonyms: Sequence[int], score: float) -> None:
        for word in words:
            for synonym in synonyms:
                self.words.append(word)
                self.synonyms.append(synonym)
                self.scores.append(score)
        if len(self.words) > self.limit:
            fewer = _Pairs()
            for word, best in self.rows():
                fewer.words.extend([word] * len(best))
                fewer.synonyms.extend(best)
                fewer.scores.extend(best.values())
            self.words, self.synonyms, self.scores = fewer.words, fewer.synonyms, fewer.scores
            self.limit = max(self.limit, 2 * len(self.words))

    def rows(self) -> Iterator[tuple[int, dict[int, float]]]:
        """Each word with the best score of each synonym, in the order of the file."""
        words, synonyms, scores = map(np.asarray, (self.words, self.synonyms, self.scores))
        order = np.argsort(words, kind="stable")
        starts = np.flatnonzero(np.diff(words[order], prepend=-1)).tolist()
        for start, end in pairwise([*starts, len(words)]):
            row = order[start:end]
            best: dict[int, float] = {}
            for synonym, score in zip(synonyms[row].tolist(), scores[row].tolist(), strict=True):
                if synonym not in best or score > best[synonym]:
                    best[synonym] = score
            yield int(words[row[0]]), best


class _Lines:
    """An iterator over the lines of a file, without blank lines and comments, that counts and hashes all of them."""

    def __init__(self, path: Path, file: BinaryIO, counts: dict[str, int]) -> None:
        self.path, self.file, self.counts = path, file, counts
        self.sample = list(islice(file, _SAMPLE_LINES))
        self.encoding, self.number, self.digest = "utf-8", 0, hashlib.sha256()
        self._iterator = self._read()

    def __iter__(self) -> Iterator[str]:
        return self._iterator

    def __next__(self) -> str:
        return next(self._iterator)

    def choose(self, named: str | None) -> str:
        """The format, and for MyThes also the encoding; raises ValueError if it is certainly not ``named``."""
        text = [line.decode(errors="replace").strip("\ufeff\r\n") for line in self.sample]
        text = [line for line in text if line.strip() and not line.startswith("#")]
        if not text:
            raise ValueError("no synonyms, because the file is empty")
        found, is_certain = _recognize(text)
        if named not in (None, found) and is_certain:
            raise ValueError(f"looks like {found}, not {named}")
        if (named or found) == "mythes":
            try:
                self.encoding = codecs.lookup(text[0].strip()).name
                "a".encode(self.encoding)  # not all codecs are encodings
            except LookupError:
                raise ValueError(f"{text[0][:40]!r} is not an encoding, which is the first line of MyThes") from None
        return named or found

    def _read(self) -> Iterator[str]:
        blocks = chain([self.sample], iter(lambda: self.file.readlines(_BLOCK), []))
        with progress(self.path) as shown:
            for block in blocks:
                content = b"".join(block)
                self.digest.update(content)
                for line in block:
                    self.number += 1
                    text = line.decode(self.encoding).rstrip("\r\n")
                    if self.number == 1:
                        text = text.removeprefix("\ufeff")
                    if not text or text[0] == "#" or text.isspace():
                        self.counts[_BLANK] += 1
                    else:
                        yield text
                shown.update(len(content))


def _recognize(lines: Sequence[str]) -> tuple[str, bool]:
    """The most likely format of the first lines, and whether it is certain."""
    if " ||| " in lines[0]:
        return "ppdb", True
    if len(lines) > 1 and "|" not in lines[0] and re.fullmatch(r".+\|\d+", lines[1]):
        return "mythes", True
    if _columns(lines[0].lower()) is not None:
        return "pairs", True
    fields = [re.split(r"[\t,]", line) for line in lines]
    scored = sum(len(found) == 3 and _is_number(found[2]) for found in fields)
    if 2 * scored >= len(lines):
        return "pairs", True
    if any("=>" in line for line in lines):
        return "groups", True
    two_by_tab = sum(line.count("\t") == 1 for line in lines)
    return ("pairs" if 2 * (scored + two_by_tab) >= len(lines) else "groups"), False


def _pairs(lines: _Lines) -> Iterator[Entry]:
    """``word synonym`` or ``word synonym score``, separated by tabs or commas, or the columns that a header names."""
    first = next(lines)
    separator = "\t" if "\t" in first else ","
    columns = _columns(first.lower())
    if columns is None:
        word, synonym, score, most = 0, 1, 2, 3
        rest: Iterable[str] = chain([first], lines)
    else:
        word, synonym, score = columns
        most = len(first.split(separator))
        lines.counts[_HEADING] += 1
        rest = lines
    last = max(word, synonym)
    for line in rest:
        if separator == "\t" or '"' not in line:
            fields = line.split(separator)
        else:
            fields = next(csv.reader([line], strict=True))
        if len(fields) > most:
            raise ValueError(f"{len(fields)} columns, not at most {most}")
        if len(fields) <= last or not fields[word].strip() or not fields[synonym].strip():
            raise ValueError(f"no second column, separated by {'a comma' if separator == ',' else 'a tab'}")
        text = fields[score] if score < len(fields) else ""
        yield (fields[word],), (fields[synonym],), _number(text) if text else None


def _columns(header: str) -> tuple[int, int, int] | None:
    """The columns of the word, the synonym and the score (if there is none, a column too many); None if no header."""
    names = [name.strip().strip('"') for name in re.split(r"[\t,]", header)]
    if not {"word", "synonym"} <= set(names):
        return None
    return names.index("word"), names.index("synonym"), [*names, "score"].index("score")


def _groups(lines: _Lines) -> Iterator[Entry]:
    """Synonyms of each other, separated by commas or tabs; in ``a, b => c``, only c is a synonym, of a and of b."""
    for line in lines:
        left, arrow, right = line.partition("=>")
        members = _members(left)
        others = _members(right) if arrow else members
        if not members or not others or not arrow and len(members) < 2:
            raise ValueError("no second column, separated by a comma or a tab")
        yield members, others, None


def _members(text: str) -> list[str]:
    return [member for member in re.split(r"(?<!\\)[,\t]", text) if member.strip()]


def _mythes(lines: _Lines) -> Iterator[Entry]:
    """The encoding, then for each word ``word|2`` and its meanings: two lines ``(noun)|synonym|synonym``."""
    next(lines)
    lines.counts[_HEADING] += 1
    for line in lines:
        word, _, count = line.rpartition("|")
        if not word or not count.isdecimal():
            raise ValueError("not a word and its number of meanings, separated by |")
        lines.counts[_HEADING] += 1
        for number in range(int(count)):
            _, *synonyms = next(lines, "").split("|")
            if not synonyms:
                raise ValueError(f"no second column, separated by |, in meaning {number + 1} of {word!r}")
            yield (word,), synonyms, None


def _ppdb(lines: _Lines) -> Iterator[Entry]:
    """``LHS ||| phrase ||| paraphrase ||| name=value name=value ...``, with the score PPDB2.0Score."""
    for line in lines:
        fields = line.split(" ||| ")
        if len(fields) < 4:
            raise ValueError(f"{len(fields)} columns separated by |||, not at least 4 as in PPDB")
        _, name, rest = fields[3].partition("PPDB2.0Score=")
        yield (fields[1],), (fields[2],), _number(rest.split(" ", 1)[0]) if name else None


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"the score {text!r} is not a number")
    return number


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        _number(text)
        return True
    return False


FORMATS: dict[str, Callable[[_Lines], Iterator[Entry]]] = {
    "pairs": _pairs,
    "groups": _groups,
    "mythes": _mythes,
    "ppdb": _ppdb,
}
