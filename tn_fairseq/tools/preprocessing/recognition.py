"""Recognize what is in a file by its first bytes; among formats of text, also by its name.

Names are no proof: exports have unusual ones, servers decompress files on the way, and a repository without its large
files holds pointers with the same names.
"""

import csv
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import IO

from ...core.errors import InputError
from ...core.packages import require
from .compression import BZIP2, GZIP, XZ, ZSTD, ZSTD_MODULE, Decompressed

JSON, WIKI, PARQUET, ARROW_STREAM, ARROW_FILE, COLUMNS, PLAIN = (
    "JSON Lines",
    "WikiExtractor's documents",
    "Parquet",
    "an Arrow stream",
    "an Arrow file",
    "CSV or TSV",
    "plain text",
)
NEED_SEEKING = (PARQUET, ARROW_FILE)
HEAD = 1 << 16  # bytes, of the content
PACKED_HEAD = 1 << 20  # bytes; bzip2 decompresses whole blocks of up to 900 kB

_COMPRESSIONS = (
    (rb"\x1f\x8b", GZIP),
    (rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", ZSTD),  # a frame, or one to skip, with which pzstd begins
    (rb"\xfd7zXZ\0|\x5d\0\0..(?:\xff{8}|.{5}\0{3})", XZ),  # also its predecessor, .lzma
    (rb"BZh[1-9](?:\x31\x41\x59\x26\x53\x59|\x17\x72\x45\x38\x50\x90)", BZIP2),
)
_TABLES = ((rb"PAR1", PARQUET), (rb"ARROW1\0\0", ARROW_FILE), (rb"\xff{4}.{2}[\0-\x0f]\0.\0\0\0", ARROW_STREAM))
_ARCHIVE = "an archive of several files; unpack it and give its files"
_REFUSED = (
    (rb"PK(?:\x03\x04|\x05\x06)|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07|.{257}ustar", _ARCHIVE),
    (rb"version https://git-lfs\.", "a pointer of Git LFS instead of the file; get that with git lfs pull"),
    (rb"PARE.*[\0-\x08]", "encrypted Parquet; decrypt it"),  # not a text that begins with these letters
    (rb"FEA1", "Feather of version 1; write it again with a newer pyarrow or pandas"),
    (rb"ORC.*[\0-\x08]", "ORC; convert it, for example to Parquet"),
    (rb"\x1f\x9d|\x04\x22\x4d\x18|\xff\x06\0\0sNaPpY", "compressed with compress, LZ4 or Snappy; decompress it"),
    (rb"\xff\xfe\0\0|\0\0\xfe\xff", "not UTF-8, but UTF-32; convert it, for example with iconv -f UTF-32 -t UTF-8"),
    (rb"\xff\xfe|\xfe\xff", "not UTF-8, but UTF-16; convert it, for example with iconv -f UTF-16 -t UTF-8"),
    (rb"%PDF-", "a PDF; convert it to text"),
    (rb"<mediawiki\b", "a dump of a wiki; extract its text, for example with WikiExtractor"),
    (
        rb"(?:#[^\n]*\n)*1(-\d+)?\t[^\t\n]+\t[^\t\n]+\t([A-Z]+|_)\t",
        "CoNLL-U; take its text: sed -n 's/^# text = //p'",
    ),
    (rb"1\t[^\t\n]+\n2\t[^\t\n]+\n3\t", "numbered sentences; remove the numbers, for example with cut -f2"),
)
# suffixes of names
_JSON_NAMES = (".json", ".jsonl", ".ndjson", ".jl", ".jsonlines")
_COLUMN_NAMES = (".csv", ".tsv", ".tab")
_COMPRESSION_NAMES = (".gz", ".xz", ".lzma", ".bz2", ".zst", ".zstd")
_BINARY_NAMES = (*_COMPRESSION_NAMES, ".parquet", ".arrow", ".feather", ".arrows")
NAMES = (*_JSON_NAMES, *_COLUMN_NAMES, *_BINARY_NAMES)
_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b")) + b"\x7f"


@dataclass(frozen=True)
class Content:
    """What is in a file: its compression, its format, and the dialect if that is CSV or TSV."""

    compression: str | None = None
    kind: str = PLAIN
    delimiter: str = ","
    quotes: bool = True  # whether quotes around a field are no part of it


def recognize(name: str, address: str, packed: IO[bytes], text_field: str | None) -> Content:
    """Recognize the content of a file with this address; reads its first bytes, and no more than ``PACKED_HEAD``.

    ``text_field`` is the column or field that was asked for. Raises InputError, with the file's name, for what is not
    text, for formats that are not read, and if a library that reads this one is missing.
    """
    head = packed.read(HEAD)
    compression = _match(_COMPRESSIONS, head)
    if compression == ZSTD:
        require(ZSTD_MODULE, name, "zstd")
    if compression is not None:
        head += packed.read(PACKED_HEAD - len(head))
        head = io.BufferedReader(Decompressed(io.BytesIO(head), compression)).read(HEAD)
    kind = _match(_TABLES, head)
    if compression is not None and (kind is not None or _match(_COMPRESSIONS, head)):
        raise InputError(f"{name}: {kind or 'a compressed file'} in a compressed file; decompress it once")
    if kind is not None:
        require("pyarrow", name, "parquet")
        return Content(None, kind)
    reason = _match(_REFUSED, head) or _not_text(head)
    if reason is not None:
        raise InputError(f"{name}: {reason}")
    inner = address
    for suffix in _COMPRESSION_NAMES:
        inner = inner.removesuffix(suffix)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    is_json = inner.endswith(_JSON_NAMES)
    if re.match(rb'\[\s*\{\s*"', text) or (is_json and text.startswith(b"[")):
        jq = ".[] | {text: .}" if re.match(rb'\[\s*"', text) else ".[]"
        raise InputError(f"{name}: a JSON array, not JSON Lines; convert it, for example with jq -c '{jq}'")
    if re.match(rb'\{\s*\n\s*"', text):
        raise InputError(f"{name}: JSON with objects of several lines, not JSON Lines; convert it with jq -c .")
    if is_json and text and not re.search(rb"^[ \t]*\{", text, re.MULTILINE):
        raise InputError(f"{name}: not JSON Lines, but {PLAIN}; rename it, for example to .txt")
    if is_json or re.match(rb"\{\s*[\"'}]", text):
        return Content(compression, JSON)
    if re.match(rb'<doc id="[^\n]*>\r?\n', text):
        return Content(compression, WIKI)
    if compression is None and address.endswith(_BINARY_NAMES) and (head or not address.endswith(_COMPRESSION_NAMES)):
        raise InputError(f"{name}: not what its name says, but {PLAIN if head else 'empty'}; repair or rename it")
    if re.match(rb"<\?xml\b|<!doctype\b|<html\b", text, re.IGNORECASE):
        raise InputError(f"{name}: XML or HTML; extract its text")
    columns = _columns(name, head, compression, inner.endswith(_COLUMN_NAMES), text_field)
    if columns is None and b"\n" not in head and head.count(b"\r") > 1 + len(head) / 2000:
        start = f"carriage returns, but no line feeds in its first {len(head):,} bytes"
        raise InputError(f"{name}: {start}; if they end its lines, convert them with tr '\\r' '\\n'")
    if columns is None and (tabs := _same_tabs(head)):
        remedy = f"take the one with the text, for example with cut -f{tabs + 1}, or name it with --text-field"
        raise InputError(f"{name}: a table of {tabs + 1} columns, separated by tabs; {remedy}")
    return columns or Content(compression)


def _match(patterns: tuple[tuple[bytes, str], ...], head: bytes) -> str | None:
    """What the first pattern that fits says."""
    return next((what for pattern, what in patterns if re.match(pattern, head, re.DOTALL)), None)


def _not_text(head: bytes) -> str | None:
    """Why the bytes are not text. Some control characters do occur in text, and invalid UTF-8 is reported later."""
    controls = len(head) - len(head.translate(None, _CONTROL))
    try:
        head.decode()
    except UnicodeDecodeError as error:
        limit = 0.02 if error.start < len(head) - 3 else 0.3  # the last character may be incomplete
    else:
        limit = 0.3
    return "not text, but binary data; give text" if controls > limit * max(len(head), 32) else None


def _same_tabs(head: bytes) -> int:
    """How many tabs each of the first lines has; 0 if their numbers differ, or if there are too few lines to tell."""
    lines = head.splitlines()
    if len(head) == HEAD:
        lines.pop()  # incomplete
    counts = [line.lstrip().count(b"\t") for line in lines if line.strip()]
    return counts[0] if len(counts) >= 3 and len(set(counts)) == 1 else 0


def _columns(name: str, head: bytes, compression: str | None, is_named: bool, text_field: str | None) -> Content | None:
    """The dialect of CSV or TSV; None for plain text, of which the first line does not have the column.

    Raises InputError if the name says that it is CSV or TSV, but the column is missing.
    """
    if not head or not (is_named or text_field):
        return None
    field = text_field or "text"
    text = head.decode("utf-8-sig", "replace")
    headers = {}
    for delimiter in "\t,;|":
        header = next(rows_of(io.StringIO(text, newline=""), Content(delimiter=delimiter)), [])
        headers[delimiter] = header if isinstance(header, list) else []
    delimiter = max(headers, key=lambda delimiter: (headers[delimiter].count(field) == 1, len(headers[delimiter])))
    columns = headers[delimiter]
    if columns.count(field) != 1:
        if not is_named:
            return None
        names = ", ".join(repr(column[:30]) for column in columns[:10])
        raise InputError(f"{name}: not one column {field!r} in its first line, but {names}; give one with --text-field")
    content = Content(compression, COLUMNS, delimiter)
    if delimiter == "\t":  # in many such files, quotes mean nothing
        lines = text if len(head) < HEAD else text[: text.rfind("\n") + 1]
        for candidate in (content, replace(content, quotes=False)):
            rows = rows_of(io.StringIO(lines, newline=""), candidate)
            if all(isinstance(row, list) and len(row) in (0, len(columns)) for row in rows):
                return candidate
    return content


def rows_of(text: IO[str], content: Content) -> Iterator[list[str] | csv.Error]:
    """The rows of CSV or TSV, with an error in the place of each row that is malformed."""
    csv.field_size_limit(sys.maxsize)  # documents can be long
    rows = csv.reader(
        text,
        delimiter=content.delimiter,
        quoting=csv.QUOTE_MINIMAL if content.quotes else csv.QUOTE_NONE,
        strict=True,
    )
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield error
