"""The lines of a list of synonyms: how they are read, what is counted, and in which format they are."""

import codecs
import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from string import whitespace
from typing import BinaryIO

from ..core.errors import InputError
from ..core.files import OTHER_FILES
from .columns import Columns, recognize
from .vectors import progress

SAMPLE_LINES = 1000  # that decide the format
SHOWN_WIDTH = 60
ARROW = "=>"
_BLOCK = 1 << 20  # bytes to read at a time

USED = "lines used"
HEADING = "lines skipped: headings"
BLANK = "lines skipped: blank or comments"
MISREAD = "lines skipped: not understood"
BELOW = "lines skipped: below --min-score"
PHRASE = "lines skipped: several words"
OTHER = "lines skipped: other relations"
UNKNOWN = "lines skipped: not in the dictionary"
ITSELF = "lines skipped: no other word"
PHRASES = "entries left out: several words"
OTHERS = "entries left out: other relations"
UNKNOWNS = "entries left out: not in the dictionary"
VALUES = "entries left out: not text"
COUNTS = (
    *(USED, HEADING, BLANK, MISREAD, BELOW, PHRASE, OTHER, UNKNOWN, ITSELF),
    *(PHRASES, OTHERS, UNKNOWNS, VALUES),
)

Entry = tuple[Sequence[str], Sequence[str], float | None]  # words, the synonyms of each of them, and a score
_OTHER_FILES = OTHER_FILES | {b"<": "XML or HTML", b"\xef\xbb\xbf<": "XML or HTML", b"%PDF": "a PDF"}


class Lines:
    """An iterator over the lines of a file, without blank lines and comments, that counts and hashes all of them."""

    def __init__(self, path: Path, file: BinaryIO, counts: dict[str, int], examples: dict[str, str]) -> None:
        self.path, self.file, self.counts, self.examples = path, file, counts, examples
        self.sample = list(islice(file, SAMPLE_LINES))
        self.encoding, self.number, self.digest = "utf-8", 0, hashlib.sha256()
        self.columns: Columns | None = None
        self.empty = f",;{whitespace}"  # all that a row of empty cells has
        self.is_one_value = False  # JSON in many lines
        self._iterator = self._read()

    def __iter__(self) -> Iterator[str]:
        return self._iterator

    def __next__(self) -> str:
        return next(self._iterator)

    def misread(self, reason: str, text: str) -> None:
        """Count the current line as not understood."""
        self.counts[MISREAD] += 1
        place = "" if self.is_one_value else f"line {self.number}: "
        self.examples.setdefault(MISREAD, f"{place}{reason}: {text[:SHOWN_WIDTH]!r}")

    def skip(self, headings: int) -> None:
        """Skip and count lines before the first entry."""
        for _ in range(headings):
            next(self)
        self.counts[HEADING] += headings

    def layout(self) -> str:
        """How the columns are read, if the format has columns."""
        return "" if self.columns is None else f", {self.columns}"

    def choose(self, named: str | None) -> str:
        """The format, with the columns of pairs and groups, and the encoding of MyThes.

        Raises ValueError if it is certainly not ``named``, or of no known format, and InputError if it is not text.
        """
        start = self.sample[0] if self.sample else b""
        for mark, kind in _OTHER_FILES.items():
            if start.startswith(mark):
                remedy = "decompress it" if kind.startswith("compressed") else "save it as text in UTF-8, such as CSV"
                raise InputError(f"this is {kind}; {remedy}, for --synonyms")
        if b"\0" in b"".join(self.sample):
            raise InputError("this is not text, but binary data; give a list in text to --synonyms")
        text = [line.decode(errors="replace").strip("\ufeff\r\n") for line in self.sample]
        text = [line for line in text if line.strip(self.empty) and not line.startswith("#")]
        if not text:
            raise ValueError("no synonyms, because the file is empty")
        certain = _recognize(text)
        if named is not None and certain not in (None, named):
            raise ValueError(f"looks like {certain}, not {named}")
        chosen = named or certain
        if chosen == "mythes" and "|" not in text[0]:
            self.encoding = _encoding(text[0].strip())
        if chosen in (None, "pairs", "groups"):
            if named != "pairs" and any(ARROW in line for line in text):
                self.columns = Columns(",", ("synonym", "synonym"), 0, False)
            else:
                self.columns = recognize(text, named)
            chosen = "pairs" if "word" in self.columns.roles else "groups"
            if named not in (None, chosen):
                raise ValueError(f"looks like {chosen}, not {named}")
        elif chosen == "json":
            self.empty = whitespace  # a comma belongs to it
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
                    if text[:1] == "#" or not text.strip(self.empty):
                        self.counts[BLANK] += 1
                    else:
                        yield text
                shown.update(len(content))


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
        if any(map(is_word_of_mythes, near)):
            return "mythes"
    if sum(is_word_of_mythes(line) and _is_meaning(other) for line, other in pairwise(lines)) > len(lines) / 4:
        return "mythes"  # without its first line
    if lines[0].lstrip()[:1] in ("{", "[") and re.search(r'["\]}{]\s*[,:\]}]?\s*$|^[\[{]$', lines[0].strip()):
        return "json"
    return None


def is_word_of_mythes(line: str) -> bool:
    """Whether a line is ``word|2``, and not a meaning such as ``(noun)|90210``."""
    word, _, count = line.strip().rpartition("|")
    return bool(word) and count.isdecimal() and "|" not in word and not re.fullmatch(r"-|\s*\([^()]*\)\s*", word)


def _is_meaning(line: str) -> bool:
    """Whether a line is ``(noun)|synonym|synonym``."""
    return bool(re.match(r"(-|\s*\([^()]*\)\s*)\|", line))
