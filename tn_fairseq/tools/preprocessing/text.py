"""Read text: plain text, JSON Lines, CSV, TSV, Parquet or Arrow, compressed or not, from any file system of fsspec.

Plain text is UTF-8, one sentence (or paragraph) per line, with blank lines between documents. In the other formats,
each record is one document, and blank lines in it mean nothing.

The process that reads only decompresses and cuts the files into chunks. ``Chunk.plain`` and ``Records.plain`` do the
rest, in the workers, which need no access to the files.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import IO, Any

from tqdm import tqdm

from ...core.errors import InputError, first_line
from ...core.files import json_type
from ...core.options import option
from ...core.packages import require
from .text_files import ARROW, CONVERT, CSV, FORMATS, JSON, PARQUET, TEXT, TSV, TextFile, refusal

# Large enough that the overhead per chunk is negligible, small enough that the library's encodings stay in the cache.
CHUNK_BYTES = 1 << 18
ROWS = 64  # of a Parquet file, read at a time
PARQUET_BYTES = 1 << 18  # also of a Parquet file
LONGEST_CELL = 1 << 26  # characters of CSV or TSV; quotes that are not closed would otherwise hold all that follows


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read text: the options of all commands that do."""

    format: str | None = option(
        "what the files are (default: what their suffixes say below those of compressions, such as .gz, else text)",
        default=None,
        choices=FORMATS,
        group="reading",
    )
    text_field: str = option(
        "the field or column with the text of a record", default="text", metavar="NAME", group="reading"
    )
    split_sentences: str | None = option(
        "split each line into sentences, by the rules of a language, such as de (default: en)",
        default=None,
        const="en",
        metavar="LANGUAGE",
        group="reading",
    )
    skip_bad_records: bool = option(
        "skip and count records that are not valid JSON, or lack the field", default=False, group="reading"
    )

    def __post_init__(self) -> None:
        """Raises InputError if there is no such language, or if the library that splits is missing."""
        if self.split_sentences is not None:
            require("sentencex", "--split-sentences", "sentences")
            if not re.fullmatch(r"[a-z]{2,3}(-\w+)*", self.split_sentences):
                raise InputError(f"--split-sentences {self.split_sentences}: give the code of a language, such as en")


@dataclass(frozen=True)
class Chunk:
    """Some complete lines of plain text, as bytes.

    ``whole_documents`` tells that a document starts with the first line, and none goes on after the last one. ``bad``
    is the number of records that were skipped.
    """

    name: str
    offset: int
    data: bytes
    whole_documents: bool = False
    bad: int = 0

    def __str__(self) -> str:
        return f"{self.name}, from byte {self.offset}"

    @property
    def starts_document(self) -> bool:
        """Whether the first line starts a document without a blank line before it."""
        return self.offset == 0 or self.whole_documents

    @property
    def size(self) -> int:
        """The number of bytes, with the blank line that would separate whole documents from the next ones."""
        return len(self.data) + (self.whole_documents and len(self.data) > 0)

    def lines(self) -> list[str]:
        """The lines without line endings (LF or CRLF) and without a byte order mark.

        Raises InputError with the offset in the file if the bytes are not UTF-8.
        """
        if not self.data:
            return []
        try:
            text = self.data.decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{self.name}: not UTF-8 at byte {self.offset + error.start}; {CONVERT}") from None
        if self.offset == 0:
            text = text.removeprefix("\ufeff")
        return text.replace("\r\n", "\n").removesuffix("\n").split("\n")

    def plain(self, reading: Reading) -> "Chunk":
        """The same lines, or their sentences."""
        if reading.split_sentences is None:
            return self
        lines = ("\n".join(_sentences(reading.split_sentences, line)) for line in self.lines())
        return replace(self, data="".join(f"{line}\n" for line in lines).encode())


@dataclass(frozen=True)
class Records:
    """Some records of a file, each one a document: texts in UTF-8, or lines of JSON."""

    name: str
    first: int
    rows: list[bytes | None]
    are_json: bool = False

    def __str__(self) -> str:
        return f"{self.name}, from record {self.first + 1}"

    def plain(self, reading: Reading) -> Chunk:
        """The documents as plain text; raises InputError for a bad record, unless these are skipped."""
        documents, bad = [], 0
        for number, row in enumerate(self.rows, self.first + 1):
            if self.are_json and row is not None and not row.strip():
                continue
            try:
                if row is None:
                    raise ValueError("the text is null")
                text = _field(row, reading.text_field) if self.are_json else row.decode()
                lines = (line for line in text.replace("\r\n", "\n").split("\n") if line and not line.isspace())
                document = "".join(f"{line}\n" for line in lines).encode()
            except (ValueError, RecursionError) as error:
                if not reading.skip_bad_records:
                    reason = "not UTF-8" if isinstance(error, UnicodeError) else first_line(error)
                    place = f"{self.name}, record {number}"
                    raise InputError(f"{place}: {reason}; {CONVERT}; --skip-bad-records skips it") from None
                bad += 1
            else:
                if document:
                    documents.append(document)
        return Chunk(self.name, self.first, b"\n".join(documents), True, bad).plain(reading)


def read_chunks(files: Iterable[TextFile], title: str, reading: Reading) -> Iterator[Chunk | Records]:
    """Read the files in order, in chunks of complete lines or records; shows a progress bar with the title.

    Raises InputError with the place for a file that is damaged, or not of its format.
    """
    files = list(files)
    with tqdm(total=sum(file.size for file in files), unit="B", unit_scale=True, desc=title, disable=None) as progress:
        for file in files:
            done = 0
            try:
                with file.open() as (stream, packed):
                    for chunk in _READERS[file.format](file, stream, reading):
                        yield chunk
                        if file.size:  # a pipe has no position
                            progress.update(packed.tell() - done)
                            done = packed.tell()
                    if file.compression and packed.read(1):  # bz2 and lzma end there in silence
                        raise ValueError("what follows the compressed text is not compressed")
            except Exception as error:
                raise refusal(file.name, error, CONVERT) from None
            progress.update(file.size - done)


def _read_lines(file: TextFile, stream: IO[bytes], reading: Reading) -> Iterator[Chunk]:
    offset = 0
    try:
        while data := stream.read(CHUNK_BYTES) + stream.readline():
            yield Chunk(file.name, offset, data)
            offset += len(data)
    except Exception as error:
        raise refusal(f"{file.name}, from byte {offset}", error, CONVERT) from None


def _read_json(file: TextFile, stream: IO[bytes], reading: Reading) -> Iterator[Records]:
    first = 0
    for chunk in _read_lines(file, stream, reading):
        data = chunk.data.removeprefix(b"\xef\xbb\xbf") if first == 0 else chunk.data
        rows: list[bytes | None] = list(data.removesuffix(b"\n").split(b"\n"))
        yield Records(file.name, first, rows, are_json=True)
        first += len(rows)


def _read_table(file: TextFile, stream: IO[bytes], reading: Reading) -> Iterator[Records]:
    rows: list[bytes | None] = []
    first = size = 0
    try:
        for row in _CELLS[file.format](stream, reading.text_field):
            rows.append(row)
            size += len(row or b"") + 1
            if size >= CHUNK_BYTES:
                yield Records(file.name, first, rows)
                first, rows, size = first + len(rows), [], 0
    except Exception as error:
        raise refusal(f"{file.name}, record {first + len(rows) + 1}", error, CONVERT) from None
    yield Records(file.name, first, rows)


# The values of a column, as UTF-8 that may be invalid: the workers decode them.


def _csv_cells(stream: IO[bytes], field: str, delimiter: str = ",") -> Iterator[bytes]:
    csv.field_size_limit(LONGEST_CELL)
    text = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
    rows = csv.reader(text, delimiter=delimiter, strict=True)
    names = next(rows, [])
    _check_column(names, field)
    column = names.index(field)
    for row in filter(None, rows):
        if len(row) != len(names):
            raise ValueError(f"not {len(names)} columns, but {len(row)}")
        yield row[column].encode("utf-8", "surrogateescape")
    text.detach()  # or it closes the stream


def _parquet_cells(stream: IO[bytes], field: str) -> Iterator[bytes | None]:
    from pyarrow import parquet

    # pyarrow.dataset would decode whole row groups, which can be whole files
    table = parquet.ParquetFile(stream, buffer_size=PARQUET_BYTES, pre_buffer=False)  # or it keeps all it has read
    _check_column(table.schema_arrow.names, field)
    for batch in table.iter_batches(ROWS, columns=[field], use_threads=False):
        yield from _texts(batch.column(field))


def _arrow_cells(stream: IO[bytes], field: str) -> Iterator[bytes | None]:
    from pyarrow import ipc

    is_file = stream.read(6) == b"ARROW1"  # Arrow has a format for files and one for streams, with the same suffix
    stream.seek(0)
    table = ipc.open_file(stream) if is_file else ipc.open_stream(stream)
    _check_column(table.schema.names, field)
    for batch in map(table.get_batch, range(table.num_record_batches)) if is_file else table:
        yield from _texts(batch.column(field))


def _few(names: Iterable[str]) -> str:
    return ", ".join(repr(name[:30]) for name in islice(names, 10)) or "none"


def _check_column(names: list[str], field: str) -> None:
    if names.count(field) != 1:
        raise ValueError(f"not one column {field!r}, but {_few(names)} (see --text-field)")


def _texts(column: Any) -> list[bytes | None]:
    from pyarrow import large_binary, types

    if types.is_dictionary(column.type):
        column.validate(full=True)
        column = column.dictionary_decode()
    if not (types.is_string(column.type) or types.is_large_string(column.type) or types.is_string_view(column.type)):
        raise ValueError(f"the column is of type {column.type}, not text (see --text-field)")
    column = column.cast(large_binary())
    column.validate(full=True)  # Arrow's own reader does not: damaged offsets would crash this process
    return column.to_pylist()


_CELLS: dict[str, Callable[[IO[bytes], str], Iterator[bytes | None]]] = {
    CSV: _csv_cells,
    TSV: partial(_csv_cells, delimiter="\t"),
    PARQUET: _parquet_cells,
    ARROW: _arrow_cells,
}
_READERS: dict[str, Callable[[TextFile, IO[bytes], Reading], Iterator[Chunk | Records]]] = {
    TEXT: _read_lines,
    JSON: _read_json,
    **dict.fromkeys(_CELLS, _read_table),
}


def _field(row: bytes, field: str) -> str:
    """A field of an object in JSON; raises ValueError if it is not text."""
    try:
        record = json.loads(row.decode())
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON at column {error.colno} ({error.msg})") from None
    if not isinstance(record, dict):
        raise ValueError(f"a JSON {json_type(record)}, not an object")
    if field not in record:
        raise ValueError(f"no field {field!r}, but {_few(record)} (see --text-field)")
    text = record[field]
    if text is None:
        raise ValueError("the text is null")
    if not isinstance(text, str):
        raise ValueError(f"the field {field!r} is a JSON {json_type(text)}, not text")
    return text


def _sentences(language: str, line: str) -> Iterator[str]:
    """The sentences in a line, without white space around them."""
    from sentencex import segment

    start = 0
    for part in segment(language, re.sub(r"\s", " ", line)):  # it fails on some longer white space, such as U+2028
        sentence = line[start : start + len(part)].strip()
        if sentence:  # a blank line would separate documents
            yield sentence
        start += len(part)
