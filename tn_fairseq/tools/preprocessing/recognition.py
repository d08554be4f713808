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
# suffixes of names
_JSON_NAMES = (".json", ".jsonl", ".ndjson", ".jl", ".jsonlines")
_COLUMN_NAMES = (".csv", ".tsv", ".tab")
_COMPRESSION_NAMES = (".gz", ".xz", ".lzma", ".bz2", ".zst", ".zstd")
_BINARY_NAMES = (*_COMPRESSION_NAMES, ".parquet", ".arrow", ".feather", ".arrows")
NAMES = (*_JSON_NAMES, *_COLUMN_NAMES, *_BINARY_NAMES)


@dataclass(frozen=True)
class Content:
    """What is in a file: its compression, its format, and the dialect if that is CSV or TSV."""

    compression: str | None = None
    kind: str = PLAIN
    delimiter: str = ","
    quotes: bool = True  # whether quotes around a field are no part of it


def recognize(name: str, address: str, packed: IO[bytes], text_field: str | None) -> Content:
    """Recognize the content of a file with this address; reads its first bytes, and no more than ``PACKED_HEAD``.

    ``text_field`` is the column or field that was asked for. Raises InputError, with the file's name, for binary data,
    for a table without this column, and if a library that reads this format is missing.
    """
    head = packed.read(HEAD)
    compression = _match(_COMPRESSIONS, head)
    if compression == ZSTD:
        require(ZSTD_MODULE, name, "zstd")
    if compression is not None:
        head += packed.read(PACKED_HEAD - len(head))
        head = io.BufferedReader(Decompressed(io.BytesIO(head), compression)).read(HEAD)
    kind = _match(_TABLES, head)
    if kind is not None:
        if compression is not None:
            raise InputError(f"{name}: {kind} in a compressed file; decompress it")
        require("pyarrow", name, "parquet")
        return Content(None, kind)
    if head[:512].count(0) * 3 > len(head[:512]):  # archives and UTF-16 can be valid UTF-8
        raise InputError(f"{name}: not text in UTF-8, but binary data; give text")
    if compression is None and address.endswith(_BINARY_NAMES) and (head or not address.endswith(_COMPRESSION_NAMES)):
        raise InputError(f"{name}: not what its name says; repair or rename it")
    inner = address
    for suffix in _COMPRESSION_NAMES:
        inner = inner.removesuffix(suffix)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if inner.endswith(_JSON_NAMES) or re.match(rb"\{\s*[\"'}]", text):
        return Content(compression, JSON)
    if re.match(rb'<doc id="[^\n]*>\r?\n', text):
        return Content(compression, WIKI)
    return _columns(name, head, compression, inner.endswith(_COLUMN_NAMES), text_field) or Content(compression)


def _match(patterns: tuple[tuple[bytes, str], ...], head: bytes) -> str | None:
    """What the first pattern that fits says."""
    return next((what for pattern, what in patterns if re.match(pattern, head, re.DOTALL)), None)


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
