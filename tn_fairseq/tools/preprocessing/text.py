"""Read text: plain text, JSON Lines, CSV, TSV, Parquet, Arrow or WikiExtractor's files, from any file system of fsspec.

Plain text is UTF-8, one sentence (or paragraph) per line, with blank lines between documents. In the other formats,
each record is one document, and blank lines in it mean nothing. All but Parquet and Arrow can be compressed.

The process that reads only decompresses and cuts the files into chunks. ``Chunk.plain`` and ``Records.plain`` do the
rest, in the workers, which need no access to the files.
"""

import csv
import html
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from operator import length_hint
from typing import IO, Any

from tqdm import tqdm

from ...core.errors import InputError
from ...core.files import json_type
from ...core.packages import require
from .compression import Decompressed, is_damage
from .recognition import ARROW_FILE, ARROW_STREAM, COLUMNS, JSON, PARQUET, PLAIN, WIKI, rows_of
from .text_files import TextFile, reason_of

# Large enough that the overhead per chunk is negligible, small enough that the library's encodings stay in the cache.
CHUNK_BYTES = 1 << 18
# A table's schema and batches, and the function that returns the position in the file after a number of rows.
Table = tuple[Any, Iterable[Any], Callable[[int], int]]
ROWS = 64  # of a Parquet file, read at a time
PARQUET_BYTES = 1 << 18  # also of a Parquet file
_END_OF_DOCUMENT = re.compile(rb"^</doc>\r?\n?", re.MULTILINE)
_WIKI_DOCUMENT = re.compile(r'\s*<doc id="[^\n]*>\r?\n(?:[^\n]*\n\r?\n)?(.*)', re.DOTALL)  # without the title


@dataclass(frozen=True)
class Reading:
    """How to read: the field or column with the text, the language whose sentences to split, and what to skip.

    No ``text_field`` means that it is called text.
    """

    text_field: str | None = None
    split_sentences: str | None = None
    skip_bad_records: bool = False

    def __post_init__(self) -> None:
        """Raises InputError if there is no such language, or if the library that splits is missing."""
        if self.split_sentences is not None:
            require("sentencex", "--split-sentences", "sentences")
            if not re.fullmatch(r"[a-z]{2,3}(-\w+)*", self.split_sentences):
                raise InputError(
                    f"--split-sentences {self.split_sentences}: not the code of a language, such as en or de"
                )

    @property
    def field(self) -> str:
        """The field or column with the text."""
        return self.text_field or "text"

    def check_effect(self, files: Iterable[TextFile]) -> None:
        """Raises InputError if no file has fields, but one was asked for."""
        if self.text_field is not None and all(file.content.kind in (PLAIN, WIKI) for file in files):
            raise InputError(
                f"--text-field {self.text_field}: has no effect, because no input has fields, and the first line of "
                "none is a header with this column; remove it, or give JSON Lines, CSV, TSV, Parquet or Arrow"
            )


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
            raise InputError(
                f"{self.name}: not UTF-8 at byte {self.offset + error.start}; convert it, for example with iconv"
            ) from None
        if self.offset == 0:
            text = text.removeprefix("\ufeff")
        return text.replace("\r\n", "\n").removesuffix("\n").split("\n")

    def plain(self, reading: Reading) -> "Chunk":
        """The same lines, or their sentences."""
        language = reading.split_sentences
        if language is None:
            return self
        lines = ("\n".join(_sentences(language, line)) for line in self.lines())
        return replace(self, data="".join(f"{line}\n" for line in lines).encode())


@dataclass(frozen=True)
class Records:
    """Some records of a file: texts in UTF-8, or what ``text_of`` finds a text in; each one is a document.

    ``text_of`` gets a record that is not blank and the name of the field. A record that the file's reader could not
    read is its error.
    """

    name: str
    first: int
    rows: list[bytes | None | ValueError]
    text_of: Callable[[bytes, str], Any] | None = None
    bad: int = 0

    def __str__(self) -> str:
        return f"{self.name}, from record {self.first + 1}"

    def plain(self, reading: Reading) -> Chunk:
        """The documents as plain text; raises InputError for a bad record, unless these are skipped."""
        documents, bad = [], self.bad
        for number, row in enumerate(self.rows, self.first + 1):
            if self.text_of and isinstance(row, bytes) and not row.strip():
                continue
            try:
                if isinstance(row, ValueError):
                    raise row
                text = self.text_of(row, reading.field) if self.text_of and row is not None else row
                if text is None:
                    raise ValueError("the text is null")
                text = text.decode() if isinstance(text, bytes) else text
                lines = (line for line in text.replace("\r\n", "\n").split("\n") if line and not line.isspace())
                document = "".join(f"{line}\n" for line in lines).encode()
            except (ValueError, RecursionError) as error:
                if not reading.skip_bad_records:
                    raise _bad(f"{self.name}, record {number}", error) from None
                bad += 1
            else:
                if document:
                    documents.append(document)
        return Chunk(self.name, self.first, b"\n".join(documents), True, bad).plain(reading)


def read_chunks(files: Iterable[TextFile], title: str, reading: Reading) -> Iterator[Chunk | Records]:
    """Read the files in order, in chunks of complete lines or records; shows a progress bar with the title."""
    files = list(files)
    with tqdm(total=sum(file.size for file in files), unit="B", unit_scale=True, desc=title, disable=None) as progress:
        for file in files:
            done = 0
            try:
                with file.open() as stream:
                    for position, chunk in _READERS[file.content.kind](file, stream, reading):
                        yield chunk
                        progress.update(position - done)
                        done = position
            except Exception as error:
                if isinstance(error, InputError) or not (file.system or isinstance(error, OSError)):
                    raise
                raise InputError(f"{file.name}: {_reason(error)}; give a readable text file") from None


def _read_lines(file: TextFile, stream: IO[bytes], reading: Reading) -> Iterator[tuple[int, Chunk]]:
    unpacked, source = _unpack(file, stream)
    offset = lines = 0
    while True:
        data = source.read(CHUNK_BYTES) + source.readline()
        if unpacked is not None and unpacked.damage is not None:
            break
        if not data:
            return
        yield offset + len(data) if unpacked is None else stream.tell(), Chunk(file.name, offset, data)
        offset += len(data)
        lines += 0 if unpacked is None else data.count(b"\n")
    if not reading.skip_bad_records:
        unit = "record" if file.content.kind == JSON else "line"
        number = lines + data.count(b"\n") + 1
        raise _bad(f"{file.name}, {unit} {number}", unpacked.damage)
    yield file.size, Chunk(file.name, offset, data[: data.rfind(b"\n") + 1], bad=1)


def _unpack(file: TextFile, stream: IO[bytes]) -> tuple[Decompressed | None, IO[bytes]]:
    """The decompressor, or None, and what to read from."""
    if file.content.compression is None:
        return None, stream
    unpacked = Decompressed(stream, file.content.compression)
    return unpacked, io.BufferedReader(unpacked, CHUNK_BYTES)


def _read_json_lines(file: TextFile, stream: IO[bytes], reading: Reading) -> Iterator[tuple[int, Records]]:
    first = 0
    for position, chunk in _read_lines(file, stream, reading):
        data = chunk.data.removeprefix(b"\xef\xbb\xbf") if first == 0 else chunk.data
        rows: list[bytes | None | ValueError] = list(data.removesuffix(b"\n").split(b"\n"))
        yield position, Records(file.name, first, rows, _field, chunk.bad)
        first += len(rows)


def _read_documents(file: TextFile, stream: IO[bytes], reading: Reading) -> Iterator[tuple[int, Records]]:
    """Read the documents between ``<doc ...>`` and ``</doc>``."""
    begun: list[bytes] = []  # parts of a document whose end has not been read
    first, position = 0, file.size
    for position, chunk in _read_lines(file, stream, reading):
        *ended, rest = _END_OF_DOCUMENT.split(chunk.data)
        if ended:
            ended[0], begun = b"".join([*begun, ended[0]]), []
        begun.append(rest)
        yield position, Records(file.name, first, list(ended), _wiki_text, chunk.bad)
        first += len(ended)
    if b"".join(begun).strip():
        yield position, Records(file.name, first, [ValueError("has no </doc>")])


def _read_columns(file: TextFile, stream: IO[bytes], reading: Reading) -> Iterator[tuple[int, Records]]:
    """Read a column of CSV or TSV."""
    unpacked, source = _unpack(file, stream)
    lines = rows_of(io.TextIOWrapper(source, "utf-8-sig", "surrogateescape", newline=""), file.content)
    header = next(lines)
    assert isinstance(header, list)  # it was recognized by them
    column = header.index(reading.field)
    rows: list[bytes | None | ValueError] = []
    first = size = bad = 0
    for line in lines:
        if line == []:
            continue
        if size >= CHUNK_BYTES:
            yield stream.tell(), Records(file.name, first, rows)
            first, rows, size = first + len(rows), [], 0
        if isinstance(line, csv.Error):
            rows.append(ValueError(str(line)))
        elif len(line) != len(header):
            rows.append(ValueError(f"not {len(header)} columns, but {len(line)}"))
        else:
            rows.append(line[column].encode("utf-8", "surrogateescape"))
            size += len(line[column]) + 1
    if unpacked is not None and unpacked.damage is not None:
        del rows[-1:]  # it ends at the damage
        if not reading.skip_bad_records:
            raise _bad(f"{file.name}, record {first + len(rows) + 1}", unpacked.damage)
        bad = 1
    yield file.size, Records(file.name, first, rows, bad=bad)


def _open_parquet(file: TextFile, stream: IO[bytes], reading: Reading) -> Table:
    from pyarrow import parquet

    table = parquet.ParquetFile(stream, buffer_size=PARQUET_BYTES, pre_buffer=False)  # or it keeps all it has read
    batches = table.iter_batches(ROWS, columns=[reading.field], use_threads=False)
    return table.schema_arrow, batches, lambda row: file.size * row // max(table.metadata.num_rows, 1)


def _open_arrow_stream(file: TextFile, stream: IO[bytes], reading: Reading) -> Table:
    from pyarrow import ipc

    table = ipc.open_stream(stream)
    return table.schema, table, lambda _: stream.tell()


def _open_arrow_file(file: TextFile, stream: IO[bytes], reading: Reading) -> Table:
    from pyarrow import ipc

    table = ipc.open_file(stream)
    count = table.num_record_batches
    numbers = iter(range(count))
    return table.schema, map(table.get_batch, numbers), lambda _: file.size * (count - length_hint(numbers)) // count


def _read_table(file: TextFile, stream: IO[bytes], reading: Reading) -> Iterator[tuple[int, Records]]:
    """Read a table's column of text."""
    from pyarrow import ArrowException

    rows: list[bytes | None | ValueError] = []
    first = 0
    try:
        schema, batches, position = _TABLES[file.content.kind](file, stream, reading)
        _check_column(file.name, schema, reading.field)
        size = 0
        for batch in batches:
            for row in _texts(batch.column(reading.field)):
                rows.append(row)
                size += len(row or b"") + 1
                if size >= CHUNK_BYTES:
                    yield position(first + len(rows)), Records(file.name, first, rows)
                    first, rows, size = first + len(rows), [], 0
    except (ArrowException, OSError, MemoryError) as error:
        if not is_damage(error):
            raise
        if not reading.skip_bad_records:
            raise _bad(f"{file.name}, record {first + len(rows) + 1}", error) from None
        yield file.size, Records(file.name, first, rows, bad=1)
    else:
        yield file.size, Records(file.name, first, rows)


_TABLES = {PARQUET: _open_parquet, ARROW_STREAM: _open_arrow_stream, ARROW_FILE: _open_arrow_file}
_READERS: dict[str, Callable[[TextFile, IO[bytes], Reading], Iterator[tuple[int, Chunk | Records]]]] = {
    PLAIN: _read_lines,
    JSON: _read_json_lines,
    WIKI: _read_documents,
    COLUMNS: _read_columns,
    **dict.fromkeys(_TABLES, _read_table),
}


def _check_column(name: str, schema: Any, field: str) -> None:
    from pyarrow import types

    if schema.names.count(field) != 1:
        raise InputError(f"{name}: not one column {field!r}, but {_few(schema.names)}; give one with --text-field")
    kind = schema.field(field).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        raise InputError(f"{name}: the column {field!r} is of type {kind}; give a column of text with --text-field")


def _texts(column: Any) -> list[bytes | None]:
    """The values in UTF-8, which may be invalid: the workers decode them."""
    from pyarrow import large_binary, types

    if types.is_dictionary(column.type):
        column.validate(full=True)
        column = column.dictionary_decode()
    column = column.cast(large_binary())
    column.validate(full=True)  # Arrow's own reader does not: damaged offsets would crash this process
    return column.to_pylist()


def _sentences(language: str, line: str) -> Iterator[str]:
    """The sentences in a line, without white space around them."""
    from sentencex import segment

    start = 0
    for part in segment(language, re.sub(r"\s", " ", line)):  # it fails on some longer white space, such as U+2028
        sentence = line[start : start + len(part)].strip()
        if sentence:  # a blank line would separate documents
            yield sentence
        start += len(part)


def _wiki_text(row: bytes, field: str) -> str:
    """The text of a document, without its title; raises ValueError if it does not begin with ``<doc``."""
    if (document := _WIKI_DOCUMENT.match(row.decode())) is None:
        raise ValueError('does not begin with <doc id="...">')
    return html.unescape(document[1])  # WikiExtractor writes &lt; for <


def _field(row: bytes, field: str) -> Any:
    """A field of an object in JSON; raises ValueError if it is neither text nor null."""
    record = json.loads(row.decode())
    if not isinstance(record, dict):
        raise ValueError(f"a JSON {json_type(record)}, not an object")
    if field not in record:
        raise ValueError(f"no field {field!r}, but {_few(record)} (see --text-field)")
    text = record[field]
    if text is not None and not isinstance(text, str):
        raise ValueError(f"the field {field!r} is a JSON {json_type(text)}, not text")
    return text


def _bad(place: str, error: BaseException) -> InputError:
    return InputError(f"{place}: {_reason(error)}; repair it, or skip it with --skip-bad-records")


def _reason(error: BaseException) -> str:
    if isinstance(error, UnicodeError):
        return "not UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON ({error.msg})"
    return reason_of(error)


def _few(names: Iterable[str]) -> str:
    """The first names, in quotes."""
    return ", ".join(map(repr, islice(names, 10)))
