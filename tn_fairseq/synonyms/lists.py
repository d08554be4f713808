"""Lists of synonyms in files: pairs or groups of words, a thesaurus in MyThes format, PPDB, or JSON.

A format is a function that turns the lines of a file into entries. It reports the lines that it does not understand.
"""

import codecs
import hashlib
import json
import math
import re
import statistics
import sys
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from string import whitespace
from typing import Any, BinaryIO

import numpy as np

from ..core.errors import InputError, first_line
from .columns import GAP, Columns, parse_score, recognize, split_line
from .terms import column_role, is_other_relation, is_part_of_speech, is_synonymy, split_cell, without_remarks
from .vectors import progress

_REMEDY = "correct it, or name the format of --synonyms with --format"
_SAMPLE_LINES = 1000  # that decide the format
_MOST_FIELDS = 20  # of a JSON record
_MANY = 20  # words of a group
_BLOCK = 1 << 20  # bytes to read at a time
_PAIRS = 12_000_000  # drop duplicates after so many
_LARGEST_GROUP = 1000  # each word of a group is a synonym of every other one
_UNUSUAL = 0.1  # the share of lines not understood that is worth a warning
_EXAMPLES = 3
_ARROW = "=>"
_SEPARATORS = f",;{whitespace}"  # all that a row of empty cells has

_USED = "lines used"
_HEADING = "lines skipped: headings"
_BLANK = "lines skipped: blank or comments"
_MISREAD = "lines skipped: not understood"
_BELOW = "lines skipped: below --min-score"
_PHRASE = "lines skipped: several words"
_OTHER = "lines skipped: other relations"
_UNKNOWN = "lines skipped: not in the dictionary"
_PHRASES = "entries left out: several words"
_OTHERS = "entries left out: other relations"
_UNKNOWNS = "entries left out: not in the dictionary"
_VALUES = "entries left out: not text"
_COUNTS = (
    *(_USED, _HEADING, _BLANK, _MISREAD, _BELOW, _PHRASE, _OTHER, _UNKNOWN),
    *(_PHRASES, _OTHERS, _UNKNOWNS, _VALUES),
)

Entry = tuple[Sequence[str], Sequence[str], float | None]  # words, the synonyms of each of them, and a score


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
        self.counts = dict.fromkeys(_COUNTS, 0)
        self.examples: dict[str, str] = {}
        pairs = _Pairs()
        try:
            with open(path, "rb") as file:
                lines = _Lines(path, file, self.counts, self.examples)
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
        read -= self.counts[_HEADING] + self.counts[_BLANK]
        misread = self.counts[_MISREAD]
        self.share_misread = misread / max(read, 1)
        if self.share_misread > 0.5:
            fault = f"{path}, {self.examples[_MISREAD]}"
            raise InputError(f"{fault}; {misread:,} lines were not understood (read as {self.format}); {_REMEDY}")
        if not self.counts[_USED]:
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
            share = f"{self.share_misread:.0%} of the lines were not understood, such as {self.examples[_MISREAD]}"
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
        lines: "_Lines",
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
                    counts[_BELOW] += 1
                    continue
            phrases, others = counts[_PHRASES], counts[_OTHERS]
            words = self._known(left)
            synonyms = words if right is left else self._known(right)
            pairs.seen.update(words)
            if not words or not synonyms or words == synonyms and len(words) < 2:
                reason = _OTHER if counts[_OTHERS] > others else _UNKNOWN
                reason = _PHRASE if counts[_PHRASES] > phrases else reason
                counts[reason] += 1
                if reason not in self.examples:
                    members = "" if right is left else f": {', '.join(right)}"
                    self.examples[reason] = f"{', '.join(left)}{members}"[:_SHOWN_WIDTH]
                continue
            if len(words) > _LARGEST_GROUP:
                lines.misread(f"a group of {len(words):,} words, which cannot all be synonyms", ", ".join(left))
                continue
            counts[_USED] += 1
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
                self.counts[_UNKNOWNS] += 1
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
                self.counts[_OTHERS] += 1
            elif " " in term or "_" in term:
                self.counts[_PHRASES] += 1
            else:
                self.counts[_UNKNOWNS] += 1
        return known


def _keeping(first: list[Entry], entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries, of which the first ones are added to a list: not read ahead, so that errors name the line."""
    for entry in entries:
        if len(first) < _SAMPLE_LINES:
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


class _Lines:
    """An iterator over the lines of a file, without blank lines and comments, that counts and hashes all of them."""

    def __init__(self, path: Path, file: BinaryIO, counts: dict[str, int], examples: dict[str, str]) -> None:
        self.path, self.file, self.counts, self.examples = path, file, counts, examples
        self.sample = list(islice(file, _SAMPLE_LINES))
        self.encoding, self.number, self.digest = "utf-8", 0, hashlib.sha256()
        self.columns: Columns | None = None
        self.headings = 0  # of MyThes, whose first line is the encoding
        self.is_one_value = False  # JSON in many lines
        self.names: Collection[str] = ()  # of the last JSON object
        self._iterator = self._read()

    def __iter__(self) -> Iterator[str]:
        return self._iterator

    def __next__(self) -> str:
        return next(self._iterator)

    def misread(self, reason: str, text: str) -> None:
        """Count the current line as not understood."""
        self.counts[_MISREAD] += 1
        place = "" if self.is_one_value else f"line {self.number}: "
        self.examples.setdefault(_MISREAD, f"{place}{reason}: {text[:_SHOWN_WIDTH]!r}")

    def strings(self, value: Any) -> list[str]:
        """The text of a JSON value, or those of a list or of lists in it; counts what else is in the list."""
        parts = value if isinstance(value, list) else [value]
        parts = list(chain.from_iterable(part if isinstance(part, list) else [part] for part in parts))
        strings = [part for part in parts if isinstance(part, str)]
        if strings and len(strings) < len(parts):
            self.counts[_VALUES] += len(parts) - len(strings)
            other = next(part for part in parts if not isinstance(part, str))
            self.examples.setdefault(_VALUES, json.dumps(other, ensure_ascii=False)[:_SHOWN_WIDTH])
        return strings

    def skip(self, headings: int) -> None:
        """Skip and count lines before the first entry."""
        for _ in range(headings):
            next(self)
        self.counts[_HEADING] += headings

    def layout(self) -> str:
        """How the columns are read, if the format has columns."""
        return "" if self.columns is None else f", {self.columns}"

    def choose(self, named: str | None) -> str:
        """The format, with the columns of pairs and groups, and the encoding of MyThes.

        Raises ValueError if it is certainly not ``named``, or nothing that we can read.
        """
        start = self.sample[0] if self.sample else b""
        for mark, kind in _OTHER_FILES.items():
            if start.startswith(mark):
                raise ValueError(f"this is {kind}; save it as text in UTF-8, such as CSV")
        text = [line.decode(errors="replace").strip("\ufeff\r\n") for line in self.sample]
        text = [line for line in text if line.strip(_SEPARATORS) and not line.startswith("#")]
        if not text:
            raise ValueError("no synonyms, because the file is empty")
        certain = _recognize(text)
        if named is not None and certain not in (None, named):
            raise ValueError(f"looks like {certain}, not {named}")
        chosen = named or certain
        if chosen == "mythes" and (named or "|" not in text[0]):
            self.encoding = _encoding(text[0].strip())
            self.headings = 1
        if chosen in (None, "pairs", "groups"):
            if named != "pairs" and any(_ARROW in line for line in text):
                self.columns = Columns(",", ("synonym", "synonym"), 0, False)
            else:
                self.columns = recognize(text, named)
            chosen = "pairs" if "word" in self.columns.roles else "groups"
            if named not in (None, chosen):
                raise ValueError(f"looks like {chosen}, not {named}")
        assert chosen is not None
        return chosen

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
                    if text[:1] == "#" or not text.strip(_SEPARATORS):
                        self.counts[_BLANK] += 1
                    else:
                        yield text
                shown.update(len(content))


_SHOWN_WIDTH = 60
_OTHER_FILES = {
    b"PK\x03\x04": "a ZIP archive or an Excel file",
    b"PK\x05\x06": "a ZIP archive or an Excel file",
    b"\x1f\x8b": "compressed with gzip",
    b"\xfd7zXZ": "compressed with xz",
    b"BZh": "compressed with bzip2",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"\xff\xfe\0\0": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"<": "XML or HTML",
    b"\xef\xbb\xbf<": "XML or HTML",
    b"%PDF": "a PDF",
}


def _encoding(name: str) -> str:
    """Python's name of an encoding that LibreOffice names, such as TIS620-2533 or microsoft-cp1251."""
    plain = re.sub(r"^(microsoft-|ansi-?(?=\d))", "cp", name.lower()).replace("cpcp", "cp").replace("cp-", "cp")
    plain = re.sub(r"^(tis620|gb2312|big5|big5hkscs|jisx0208|ksc5601)[.-].*", r"\1", plain)
    plain = {"ksc5601": "euc_kr", "jisx0208": "euc_jp"}.get(plain, plain)
    try:
        encoding = codecs.lookup(plain).name
        "a".encode(encoding)  # not all codecs are encodings
    except LookupError:
        fault = f"{name[:40]!r} is not an encoding that Python knows, which is the first line of MyThes"
        raise ValueError(f"{fault}; convert the file with iconv, and write UTF-8 there") from None
    return encoding


def _is_encoding(name: str) -> bool:
    try:
        return bool(_encoding(name))
    except ValueError:
        return False


def _recognize(lines: Sequence[str]) -> str | None:
    """The format of the first lines if it is certain."""
    if " ||| " in lines[0]:
        return "ppdb"
    if len(lines) > 1 and re.fullmatch(r"\S+", lines[0]) and "|" not in lines[0]:
        # the first word can be malformed, as in LibreOffice's German thesaurus
        near = lines[1:10] if _is_encoding(lines[0]) else lines[1:2]
        if any(map(_is_word_of_mythes, near)):
            return "mythes"
    if sum(_is_word_of_mythes(line) and _is_meaning(other) for line, other in pairwise(lines)) > len(lines) / 4:
        return "mythes"  # without its first line
    if lines[0].lstrip()[:1] in ("{", "[") and re.search(r'["\]}{]\s*[,:\]}]?\s*$|^[\[{]$', lines[0].strip()):
        return "json"
    return None


def _pairs(lines: _Lines) -> Iterator[Entry]:
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
        is_plain = '"' not in line and "\\" not in line and delimiter != GAP
        fields = line.split(delimiter) if is_plain else split_line(line, delimiter)
        size = len(fields)
        if size <= last or not fields[word].strip() or not fields[synonyms[0]].strip():
            lines.misread("no second column", line)
            continue
        if size > most and not has_more and any(field.strip() for field in fields[most:]):
            lines.misread(f"{size} columns, not {most}", line)
            continue
        if relation is not None and relation < size and not is_synonymy(fields[relation]):
            lines.counts[_OTHER] += 1
            lines.examples.setdefault(_OTHER, line[:_SHOWN_WIDTH])
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


def _groups(lines: _Lines) -> Iterator[Entry]:
    """Synonyms of each other; in ``a, b => c``, only c is a synonym, of a and of b."""
    columns = lines.columns
    assert columns is not None
    left_out = [place for place, role in enumerate(columns.roles) if role == "other"]
    lines.skip(columns.headings)
    for line in lines:
        left, arrow, right = line.partition(_ARROW)
        left = left.rstrip("= ")  # of ==>
        if arrow and left.endswith("<") and right.strip():  # of <=>
            members = _members(f"{left[:-1]}{columns.delimiter}{right}", columns.delimiter)
            yield members, members, None
            continue
        if arrow and left and right.strip():
            yield _members(left, columns.delimiter), _members(right, columns.delimiter), None
            continue
        cells = split_line(line, columns.delimiter)
        members = [cell for place, cell in enumerate(cells) if cell.strip() and place not in left_out]
        if len(members) < 2 and len(split_cell(line)) < 2 or arrow:
            lines.misread("no second column", line)
        else:
            yield members, members, None


def _members(text: str, delimiter: str | None) -> list[str]:
    return [member for member in split_line(text, delimiter) if member.strip()]


def _is_word_of_mythes(line: str) -> bool:
    """Whether a line is ``word|2``, and not a meaning such as ``(noun)|90210``."""
    word, _, count = line.strip().rpartition("|")
    return bool(word) and count.isdecimal() and "|" not in word and not re.fullmatch(r"-|\s*\([^()]*\)\s*", word)


def _is_meaning(line: str) -> bool:
    """Whether a line is ``(noun)|synonym|synonym``."""
    return bool(re.match(r"(-|\s*\([^()]*\)\s*)\|", line))


def _mythes(lines: _Lines) -> Iterator[Entry]:
    """The encoding if it is there, and for each word ``word|2`` and its meanings: two lines ``(noun)|synonym``."""
    lines.skip(lines.headings)
    word, expected, line = "", 0, next(lines, None)
    while line is not None:
        if expected and not _is_word_of_mythes(line):
            expected -= 1
            label, *synonyms = line.split("|")
            if not any(synonym.strip() for synonym in synonyms):
                lines.misread(f"no synonym after a | in a meaning of {word!r}", line)
            elif is_other_relation(label):
                lines.counts[_OTHER] += 1
                lines.examples.setdefault(_OTHER, line[:_SHOWN_WIDTH])
            else:
                yield (word,), [synonym for synonym in synonyms if synonym], None
        elif _is_word_of_mythes(line):
            if expected:
                lines.misread(f"{expected} meanings of {word!r} are missing", line)
            word, _, count = line.rpartition("|")
            expected = int(count)
            lines.counts[_HEADING] += 1
        else:
            lines.misread("not a word and its number of meanings, separated by |", line)
        line = next(lines, None)
    if expected:
        lines.misread(f"{expected} meanings of {word!r} are missing at the end", "")


def _ppdb(lines: _Lines) -> Iterator[Entry]:
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


def _json(lines: _Lines) -> Iterator[Entry]:
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


def _values(value: Any, lines: _Lines) -> Iterator[Entry]:
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
            lines.counts[_OTHER] += 1
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


FORMATS: dict[str, Callable[[_Lines], Iterator[Entry]]] = {
    "pairs": _pairs,
    "groups": _groups,
    "mythes": _mythes,
    "ppdb": _ppdb,
    "json": _json,
}
