"""Lists of synonyms in files: pairs or groups of words, a thesaurus in MyThes format, PPDB, or JSON."""

import math
import statistics
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from ..core.errors import InputError
from .list_formats import FORMATS
from .list_lines import (
    BELOW,
    BLANK,
    COUNTS,
    HEADING,
    ITSELF,
    MISREAD,
    OTHER,
    OTHERS,
    PHRASE,
    PHRASES,
    SAMPLE_LINES,
    SHOWN_WIDTH,
    UNKNOWN,
    UNKNOWNS,
    USED,
    Entry,
    Lines,
)
from .terms import split_cell, without_remarks

_REMEDY = "correct it, or name the format of --synonyms with --format"
_MANY = 20  # words of a group
_PAIRS = 12_000_000  # drop duplicates after so many
_LARGEST_GROUP = 1000  # each word of a group is a synonym of every other one
_UNUSUAL = 0.1  # the share of lines not understood that is worth a warning
_EXAMPLES = 3


class SynonymList:
    """The synonyms in a file of those ``words`` that it has, ignoring case.

    ``synonyms`` are those of each lowercase word that the file has, by falling score and then in the order of the file.
    ``counts`` are the lines used and skipped, and the entries left out, by reason; ``examples`` are the first of each.
    ``interpretation`` says in lines how the file was read. With ``symmetric``, a pair counts in both directions. Raises
    InputError with the line number for a file that is not UTF-8 (MyThes: the encoding of its first line) or not in
    ``format``, which is one of FORMATS or recognized, for a file of which most lines are not understood, and for a file
    without synonyms.
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
        self.counts = dict.fromkeys(COUNTS, 0)
        self.examples: dict[str, str] = {}
        pairs = _Pairs()
        try:
            with open(path, "rb") as file:
                lines = Lines(path, file, self.counts, self.examples)
                try:
                    self.format = lines.choose(format)
                    self._splits = self.format != "mythes" and self.format != "ppdb"
                    first: list[Entry] = []
                    entries = _keeping(first, FORMATS[self.format](lines))
                    self._add_all(entries, lines, pairs, symmetric, min_score)
                    self.interpretation = [f"read as {self.format}{lines.layout()}", *self._show(first)]
                    sizes = [len(left) for left, right, _ in first if right is left]
                    if sizes and statistics.median(sizes) > _MANY:  # as in Moby, whose first words are headwords
                        self.interpretation.append(
                            f"warning: most groups have more than {_MANY} words, and all words of a group are synonyms "
                            "of each other; if they are synonyms of the first one only, give --format pairs"
                        )
                except InputError as error:
                    raise InputError(f"{path}: {error}") from None
                except UnicodeDecodeError:
                    fault = f"{path}, line {lines.number}: not {lines.encoding.upper()}"
                    remedy = "give --synonyms an uncompressed file in this encoding, such as iconv -t utf-8 writes"
                    raise InputError(f"{fault}; {remedy}") from None
                except (ValueError, RecursionError) as error:
                    raise InputError(f"{path}, line {lines.number or 1}: {error}; {_REMEDY}") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; give a list of synonyms with --synonyms") from None
        # a line of JSON can have many entries, and an entry many lines; entries are counted as lines
        counted = sum(count for reason, count in self.counts.items() if reason.startswith("lines"))
        read = counted if self.format == "json" else max(lines.number, counted)
        read -= self.counts[HEADING] + self.counts[BLANK]
        misread = self.counts[MISREAD]
        self.share_misread = misread / max(read, 1)
        if self.share_misread > 0.5:
            fault = f"{path}, {self.examples[MISREAD]}"
            raise InputError(f"{fault}; {misread:,} lines were not understood (read as {self.format}); {_REMEDY}")
        if not self.counts[USED]:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.counts.items() if count)
            fault = f"{path}: no synonyms for the dictionary ({reasons}; {self.interpretation[0]})"
            raise InputError(f"{fault}; give another list with --synonyms, or name its format with --format")
        self.version = f"{path.name}, {lines.number} lines, sha256 {lines.digest.hexdigest()}"
        names, forms = list(spellings), list(spellings.values())
        self.synonyms: dict[str, list[str]] = {names[number]: [] for number in pairs.seen}
        for number, best in pairs.rows():
            self.synonyms[names[number]] = [forms[other] for other in sorted(best, key=best.__getitem__, reverse=True)]

    @property
    def notes(self) -> list[str]:
        """Lines that say how the file was read, what was counted, and a warning if much was not understood."""
        notes = list(self.interpretation)
        for reason, count in self.counts.items():
            if count:
                example = f" ({self.examples[reason]})" if reason in self.examples else ""
                notes.append(f"{reason:40}{count:11,}{example}")
        if self.share_misread > _UNUSUAL:
            share = f"{self.share_misread:.0%} of the lines were not understood, such as {self.examples[MISREAD]}"
            notes.append(f"warning: {share}; {_REMEDY}")
        return notes

    def _show(self, entries: Sequence[Entry]) -> list[str]:
        """The first words with their synonyms, as ``happy: glad, joyful``."""
        rows: dict[str, dict[str, None]] = {}
        for left, right, _ in entries:
            words = self._terms(left)
            for word in words[:1]:
                if word in rows or len(rows) < _EXAMPLES:
                    others = self._terms(right)
                    rows.setdefault(word, {}).update(dict.fromkeys(other for other in others if other != word))
        return [f"  {word}: {', '.join(islice(others, 10)) or '(no synonym)'}" for word, others in rows.items()]

    def _terms(self, cells: Iterable[str]) -> list[str]:
        parts = (part for cell in cells for part in (split_cell(cell) if self._splits else [cell]))
        return [term for part in parts if (term := without_remarks(part))]

    def _add_all(
        self,
        entries: Iterable[Entry],
        lines: Lines,
        pairs: "_Pairs",
        symmetric: bool,
        min_score: float | None,
    ) -> None:
        counts = self.counts
        for left, right, score in entries:
            if min_score is not None:
                if score is None:
                    raise ValueError("no score, which --min-score needs")
                if score < min_score:
                    counts[BELOW] += 1
                    continue
            phrases, others, unknown = counts[PHRASES], counts[OTHERS], counts[UNKNOWNS]
            words = self._known(left)
            synonyms = words if right is left else self._known(right)
            pairs.seen.update(words)
            if not words or not synonyms or words == synonyms and len(words) < 2:
                reason = UNKNOWN if counts[UNKNOWNS] > unknown else ITSELF
                reason = OTHER if counts[OTHERS] > others else reason
                reason = PHRASE if counts[PHRASES] > phrases else reason
                counts[reason] += 1
                if reason not in self.examples:
                    members = "" if right is left else f": {', '.join(right)}"
                    self.examples[reason] = f"{', '.join(left)}{members}"[:SHOWN_WIDTH]
                continue
            if len(words) > _LARGEST_GROUP:
                lines.misread(f"a group of {len(words):,} words, which cannot all be synonyms", ", ".join(left))
                continue
            counts[USED] += 1
            rank = -math.inf if score is None else score
            pairs.add(words, synonyms, rank)
            if symmetric and right is not left:
                pairs.add(synonyms, words, rank)

    def _known(self, cells: Iterable[str]) -> list[int]:
        """The numbers of the terms that are in the dictionary; counts the others by reason."""
        known = []
        for cell in cells:
            number = self._numbers.get(cell)
            if number is None:
                number = self._numbers.get(cell.strip().lower())
            if number is not None:
                known.append(number)
            elif cell.isalpha():
                self.counts[UNKNOWNS] += 1
            else:
                known += self._parts(cell)
        return known

    def _parts(self, cell: str) -> list[int]:
        """The numbers of the terms of a cell with more than letters: several terms, a phrase, or a remark."""
        known = []
        for part in split_cell(cell) if self._splits else [cell]:
            term = without_remarks(part)
            number = None if term is None else self._numbers.get(term.lower())
            if number is not None:
                known.append(number)
            elif term is None:
                self.counts[OTHERS] += 1
            elif " " in term or "_" in term:
                self.counts[PHRASES] += 1
            else:
                self.counts[UNKNOWNS] += 1
        return known


def _keeping(first: list[Entry], entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, of which the first ones are added to a list: not read ahead, so that errors name the line."""
    for entry in entries:
        if len(first) < SAMPLE_LINES:
            first.append(entry)
        yield entry


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
