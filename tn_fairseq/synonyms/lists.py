"""Lists of synonyms in files, in one of the formats of ``list_formats``."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from ..core.errors import InputError
from .list_formats import FORMATS, Entry, Lines, shown
from .vectors import progress

CONVERT = "give the file's --format, or convert it as in docs/synonyms.md#convert-other-formats"
_EXAMPLES = 3

USED = "entries used"
BELOW = "entries skipped: below --min-score"
OTHERS = "entries skipped: other values of --where"
WITHOUT = "entries skipped: no pair of words"
EMPTY = "words left out: empty"
REMARK = "words left out: with a remark"
PHRASE = "words left out: several words"
UNKNOWN = "words left out: not in the dictionary"
COUNTS = (USED, BELOW, OTHERS, WITHOUT, EMPTY, REMARK, PHRASE, UNKNOWN)


class SynonymList:
    """The synonyms in a file of those ``words`` that it has, ignoring case.

    ``synonyms`` are those of each lowercase word that the file has, by falling score and then in the order of the file.
    ``counts`` are the entries used and skipped, and the words left out, by reason; ``examples`` are the first of each.
    ``notes`` say in lines how the file was read. With ``symmetric``, a pair counts in both directions. ``columns`` and
    ``where`` are those of ``Lines``. Raises InputError with the line number for a file that is not in ``format``, which
    is one of FORMATS, or not UTF-8 (MyThes: the encoding of its first line), and for a file without synonyms.
    """

    def __init__(
        self,
        path: str | Path,
        words: Collection[str],
        format: str,
        symmetric: bool = False,
        min_score: float | None = None,
        columns: Mapping[str, str] | None = None,
        where: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        path = Path(path)
        self._spellings = {word.lower(): word for word in words}
        self._rows: dict[str, dict[str, float]] = {}  # the best score of each synonym
        self.counts = dict.fromkeys(COUNTS, 0)
        self.examples: dict[str, str] = {}
        first: dict[str, dict[str, None]] = {}
        try:
            with open(path, "rb") as file, progress(path) as read:
                lines = Lines(file, read, columns or {}, where or {})
                try:
                    self._add_all(_shown_first(FORMATS[format](lines), first), symmetric, min_score)
                except UnicodeDecodeError as error:
                    place = f"line {lines.count}, byte {error.start + 1}: not {lines.encoding.upper()}"
                    remedy = "give an uncompressed file in this encoding, such as iconv -t utf-8 writes"
                    raise InputError(f"{path}, {place}; {remedy}") from None
                except ValueError as error:
                    raise InputError(f"{path}, line {lines.number or 1}: {error}; {CONVERT}") from None
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; give a list of synonyms with --synonyms") from None
        self.counts[OTHERS] = lines.left_out
        self.version = f"{path.name}, {lines.count} lines, sha256 {lines.digest.hexdigest()}"
        self.notes = [f"read as {format}"]
        self.notes += [f"  {word}: {', '.join(islice(row, 10)) or '(no synonym)'}" for word, row in first.items()]
        self.notes += lines.notes
        for reason, count in self.counts.items():
            if count:
                example = f" ({self.examples[reason]})" if reason in self.examples else ""
                self.notes.append(f"{reason:40}{count:11,}{example}")
        self.notes = [note.encode(errors="replace").decode() for note in self.notes]  # JSON can have half a surrogate
        if not self.counts[USED]:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.counts.items() if count)
            raise InputError(f"{path}: read as {format}, no synonyms for the dictionary ({reasons}); {CONVERT}")
        self.synonyms = {
            word: [self._spellings[other] for other in sorted(row, key=row.__getitem__, reverse=True)]
            for word, row in self._rows.items()
        }

    def _add_all(self, entries: Iterable[Entry], symmetric: bool, min_score: float | None) -> None:
        for left, right, score in entries:
            if min_score is not None:
                if score is None:
                    raise ValueError("no score, which --min-score needs")
                if score < min_score:
                    self._count(BELOW, left, right)
                    continue
            words = self._known(left)
            synonyms = words if right is left else self._known(right)
            pairs = [(word, other) for word in words for other in synonyms if word != other]
            if symmetric and right is not left:
                pairs += [(other, word) for other in synonyms for word in words if word != other]
            self._count(USED if pairs else WITHOUT, left, right)
            for word in words:
                self._rows.setdefault(word, {})
            rank = -math.inf if score is None else score
            for word, other in pairs:
                row = self._rows.setdefault(word, {})
                row[other] = max(rank, row.get(other, rank))

    def _count(self, reason: str, left: Iterable[str], right: Iterable[str]) -> None:
        self.counts[reason] += 1
        if reason not in self.examples and reason != USED:
            self.examples[reason] = shown(f"{', '.join(left)}: {', '.join(right)}")

    def _known(self, terms: Iterable[str]) -> list[str]:
        """The lowercase terms that are in the dictionary; counts the others by reason."""
        known = []
        for term in terms:
            word = term.strip().lower()
            if word in self._spellings:
                known.append(word)
                continue
            reason = REMARK if "(" in word else PHRASE if " " in word or "_" in word else UNKNOWN if word else EMPTY
            self.counts[reason] += 1
            if word:
                self.examples.setdefault(reason, shown(term))
        return known


def _shown_first(entries: Iterable[Entry], first: dict[str, dict[str, None]]) -> Iterator[Entry]:
    """The entries; adds the synonyms of the first words to ``first``."""
    for words, synonyms, score in entries:
        if len(first) < _EXAMPLES or words[0] in first:
            first.setdefault(words[0], {}).update(
                dict.fromkeys(term for term in synonyms if term != words[0] and "(" not in term)
            )
        yield words, synonyms, score
