"""What is in a file decides how it is read, not its name; what cannot be read is refused, also with bad records."""

import bz2
import csv
import gzip
import io
import json
import lzma
import random
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from files import refused, write
from helpers import zstd
from pyarrow import csv as arrow_csv
from pyarrow import feather, ipc, parquet

from tn_fairseq.tools.preprocessing.recognition import (
    ARROW_FILE,
    ARROW_STREAM,
    JSON,
    PARQUET,
    PLAIN,
    Content,
    recognize,
)
from tn_fairseq.tools.preprocessing.text import Reading, read_chunks
from tn_fairseq.tools.preprocessing.text_files import find_files

TEXTS = ["the cat", 'a "quoted", text', "", "汉\t😀; it|is", '"all of it"']
LINES = [text for text in TEXTS if text]
JSON_LINES = "".join(json.dumps({"id": 1, "text": text}) + "\n" for text in TEXTS).encode()


def lines_of(path: Path, text_field: str | None = None, **how: bool) -> list[str]:
    reading = Reading(text_field, **how)
    chunks = (chunk.plain(reading) for chunk in read_chunks(find_files([path], text_field), "", reading))
    return [line for chunk in chunks for line in chunk.lines() if line]


def refusal(path: Path, text_field: str | None = None) -> str:
    """The error, which is the same if bad records are skipped."""
    messages = {refused(lines_of, path, text_field, skip_bad_records=skip) for skip in (False, True)}
    (message,) = messages
    return message.removeprefix(f"{path}: ")


def binary(kind: str) -> bytes:
    table, content = pa.table({"id": list(range(len(TEXTS))), "text": TEXTS}), io.BytesIO()
    if kind == PARQUET:
        parquet.write_table(table, content)
    elif kind == "Feather":
        feather.write_feather(table, content)
    else:
        with (ipc.new_stream if kind == ARROW_STREAM else ipc.new_file)(content, table.schema) as file:
            file.write_table(table)
    return content.getvalue()


@pytest.mark.parametrize("name", ["a.jl", "a.jsonlines", "a.txt", "a", "a.tsv", "a.json.backup"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress, bz2.compress, zstd.compress])
def test_json_lines_of_any_name(tmp_path, name, compress):
    path = write(tmp_path / name, compress(JSON_LINES))
    assert find_files([path])[0].content.kind == JSON and lines_of(path, "text") == LINES
    assert lines_of(write(path, compress(b"\xef\xbb\xbf" + JSON_LINES))) == LINES


@pytest.mark.parametrize("kind", [PARQUET, ARROW_STREAM, ARROW_FILE, "Feather"])
def test_tables_of_any_name(tmp_path, kind):
    for name in ("a.data", "a.parquet", "a.arrow", "a.txt"):
        path = write(tmp_path / name, binary(kind))
        assert find_files([path])[0].content.kind == (ARROW_FILE if kind == "Feather" else kind)
        assert lines_of(path, "text") == LINES
    packed = write(tmp_path / "packed", gzip.compress(binary(kind)))
    assert refusal(packed).endswith(" in a compressed file; decompress it once")


def test_text_that_begins_with_the_letters_of_a_binary_format(tmp_path):
    for line in ("PARENTS OF THE CHILDREN", "ORCHESTRA AND CHOIR", "ORC"):
        assert lines_of(write(tmp_path / "a.txt", f"{line}\nanother line\n".encode())) == [line, "another line"]
    for content, format in ((b"PARE\x15\x04\0\0", "encrypted Parquet"), (b"ORC\n\x03\0\0", "ORC")):
        assert refusal(write(tmp_path / "a.txt", content)).startswith(format)


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t"), ("a.txt", "|")])
def test_columns_are_what_pyarrow_reads(tmp_path, name, delimiter):
    content = io.StringIO()
    rows = csv.writer(content, delimiter=delimiter)
    rows.writerows([["number", "body"], *([str(number), text] for number, text in enumerate(TEXTS))])
    path = write(tmp_path / name, content.getvalue().encode())
    options = arrow_csv.ParseOptions(delimiter=delimiter)
    expected = arrow_csv.read_csv(path, parse_options=options)["body"].to_pylist()
    assert lines_of(path, "body") == [text for text in expected if text] == LINES
    write(path, ("\ufeff" + content.getvalue().replace("\r\n", "\n") + "\n\n").encode())
    assert lines_of(path, "body") == LINES


def test_quotes_in_tsv_mean_nothing_where_they_cannot_mean_anything(tmp_path):
    lines = ['"Hello" he said', 'it is 5" long', '"not closed', "the end"]
    content = "id\ttext\n" + "".join(f"1\t{line}\n" for line in lines)
    assert lines_of(write(tmp_path / "a.tsv", content.encode())) == lines


def test_rows_with_other_columns_are_bad_records(tmp_path):
    path = write(tmp_path / "a.csv", b'id,text\n1,the cat\n2,a,b\n3,"x" y\n4,\xff\n5,the mat\n')
    assert lines_of(path, skip_bad_records=True) == ["the cat", "the mat"]
    for problem in ("record 2: not 2 columns, but 3", "record 3: ',' expected", "record 4: not UTF-8"):
        assert problem in refused(lines_of, path)
        number = int(problem.split()[1].strip(":"))
        rows = path.read_bytes().splitlines()
        write(path, b"\n".join([*rows[:number], b"0,", *rows[number + 1 :]]) + b"\n")
    damaged = write(tmp_path / "b.csv", gzip.compress(b"id,text\n" + b"1,the cat\n" * 100_000)[:-100])
    assert "b.csv, record " in refused(lines_of, damaged)
    assert set(lines_of(damaged, skip_bad_records=True)) == {"the cat"}


def test_the_first_line_of_a_file_cut_into_parts_is_a_bad_record(tmp_path):
    path = write(tmp_path / "a.jsonl", b'xt": "the"}\n' + JSON_LINES)
    assert lines_of(path, skip_bad_records=True) == LINES and "record 1: not valid JSON" in refused(lines_of, path)


def test_what_only_looks_like_a_format_is_plain_text(tmp_path):
    for text in ("{{Infobox}}\nthe cat", "[Music]\nthe cat", "text, of course\nthe cat", "PARagraph\n", "a\x07b\n"):
        path = write(tmp_path / "a.txt", text.encode())
        assert find_files([path])[0].content.kind == PLAIN and lines_of(path) == text.splitlines()
    assert lines_of(write(tmp_path / "empty.gz", b"")) == []


def archives(folder: Path) -> list[Path]:
    inside = write(folder / "inside.txt", "the cat")
    with zipfile.ZipFile(folder / "a.docx", "w") as archive:
        archive.write(inside)
    with tarfile.open(folder / "a.bin", "w") as tar:
        tar.add(inside)
    with tarfile.open(folder / "a.gz", "w:gz") as tar:
        tar.add(inside)
    return [folder / name for name in ("a.docx", "a.bin", "a.gz")]


def test_lines_that_end_with_carriage_returns_are_refused(tmp_path):
    path = write(tmp_path / "mac.txt", b"the cat\rsat\r\rthe mat\r")
    assert refusal(path).endswith("if they end its lines, convert them with tr '\\r' '\\n'")
    assert lines_of(write(tmp_path / "mac.csv", b"id,text\r1,the cat\r2,sat\r")) == ["the cat", "sat"]
    assert lines_of(write(tmp_path / "stray.txt", b"the cat\r sat" + b" and sat" * 2000 + b"\r")) != []


def test_archives_are_refused(tmp_path):
    for path in archives(tmp_path):
        assert refusal(path) == "an archive of several files; unpack it and give its files"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", b"\x93NUMPY\x01\0v\0" + random.Random(1).randbytes(500), "not text, but binary data; give text"),
        ("a.txt", random.Random(1).randbytes(5000), "not text, but binary data; give text"),
        ("a.bin", b"".join(bytes([number % 120, 0]) for number in range(500)), "not text, but binary data; give text"),
        ("a.gz", gzip.compress(random.Random(1).randbytes(5000), mtime=0), "not text, but binary data; give text"),
        ("a.txt", "the cat".encode("utf-16"), "not UTF-8, but UTF-16; convert it, for example with iconv"),
        ("a.parquet", b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS instead of the file"),
        ("a.parquet", b"the cat", "not what its name says, but plain text; repair or rename it"),
        ("a.zst", b"<html>404</html>", "not what its name says, but plain text; repair or rename it"),
        ("a.arrow", b"", "not what its name says, but empty; repair or rename it"),
        ("a.json", b'[{"text": "a"},\n{"text": "b"}]', "a JSON array, not JSON Lines; convert it, for example with jq"),
        (
            "a.jsonl",
            b'["the cat", "the mat"]',
            "a JSON array, not JSON Lines; convert it, for example with jq -c '.[] | {text: .}'",
        ),
        ("a.txt", "the cat".encode("utf-32"), "not UTF-8, but UTF-32; convert it, for example with iconv"),
        ("a.xml.bz2", bz2.compress(b'<mediawiki version="0.3">\n<page>\n'), "a dump of a wiki; extract its text"),
        ("a.html", b"\n<!DOCTYPE html>\n<html lang=en>", "XML or HTML; extract its text"),
        ("a.tmx", b'\xef\xbb\xbf<?xml version="1.0"?>\n<tmx>', "XML or HTML; extract its text"),
        (
            "a.txt",
            b"# sent_id = 1\n# text = Cats sat.\n1\tCats\tcat\tNOUN\t_\n",
            "CoNLL-U; take its text: sed",
        ),
        (
            "a.txt",
            b"1\tThe cat.\n2\tThe mat.\n3\tThe end.\n",
            "numbered sentences; remove the numbers, for example with",
        ),
        (
            "a.txt",
            b"label\ttext\n0\tThe cat.\n1\tThe mat.\n",
            "a table of 2 columns, separated by tabs; take the one with",
        ),
        ("a.jsonl", b"the cat\nthe mat\n", "not JSON Lines, but plain text; rename it, for example to .txt"),
        ("a.json", b'{\n  "text": "a"\n}\n', "JSON with objects of several lines, not JSON Lines; convert it with jq"),
        (
            "a.gz",
            gzip.compress(gzip.compress(b"the cat", mtime=0), mtime=0),
            "a compressed file in a compressed file; decompress it once",
        ),
        ("a.csv", b"id,body\n1,the cat\n", "not one column 'text' in its first line, but 'id', 'body'; give one with"),
        ("a.orc", b"ORC\0", "ORC; convert it"),
        ("a.lz4", b"\x04\x22\x4d\x18", "compressed with compress, LZ4 or Snappy; decompress it"),
    ],
    ids=lambda value: value if isinstance(value, str) else "bytes",
)
def test_what_is_not_text_is_refused_and_no_bad_record(tmp_path, name, content, message):
    assert refusal(write(tmp_path / name, content)).startswith(message)


@pytest.mark.parametrize("content", [b"a\tb\n\nc\td\n", b"a\tb\n\nc\td\ne\n", b"\ta\n\tb\n\tc\n", b"a\nb\nc\n"])
def test_tabs_in_text_are_no_table(content):
    assert recognize("a.txt", "a.txt", io.BytesIO(content), None) == Content()


def test_options_without_effect_are_refused(tmp_path):
    plain, packed = write(tmp_path / "a.txt", "the cat"), write(tmp_path / "a.gz", gzip.compress(b"the cat"))
    lines = write(tmp_path / "a.jl", JSON_LINES)
    for reading, paths, message in (
        (Reading("text"), [plain, packed], "--text-field text: has no effect, because no input has fields, and"),
        (Reading(skip_bad_records=True), [plain], "--skip-bad-records: has no effect, because all inputs are plain"),
        (Reading(skip_bad_records=True), [plain, packed], None),
        (Reading("text"), [plain, lines], None),
        (Reading(), [plain], None),
    ):
        files = find_files(paths, reading.text_field)
        if message:
            assert refused(reading.check_effect, files).startswith(message)
        else:
            reading.check_effect(files)
