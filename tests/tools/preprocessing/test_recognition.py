"""What is in a file decides how it is read, not its name; what cannot be read is refused."""

import bz2
import csv
import gzip
import io
import json
import lzma
import random
import tarfile
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
    assert refusal(packed).endswith(" in a compressed file; decompress it")


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
    for text in (
        "{{Infobox}}\nthe cat",
        "[Music]\nthe cat",
        "text, of course\nthe cat",
        "PARENTS\n",
        "ORCHESTRA\n",
        "a\x07b\n",
    ):
        path = write(tmp_path / "a.txt", text.encode())
        assert find_files([path])[0].content.kind == PLAIN and lines_of(path) == text.splitlines()
    assert lines_of(write(tmp_path / "empty.gz", b"")) == []


def tar(name: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO(content))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.bin", tar("inside.txt", b"the cat"), "not text in UTF-8, but binary data"),
        ("a.gz", gzip.compress(tar("inside.txt", b"the cat")), "not text in UTF-8, but binary data"),
        ("a.txt", "the cat".encode("utf-16"), "not text in UTF-8, but binary data"),
        ("a.csv", "id,text".encode("utf-16-be"), "not text in UTF-8, but binary data"),
        ("a.parquet", b"version https://git-lfs.github.com/spec/v1\n", "not what its name says; repair or rename it"),
        ("a.zst", b"<html>404</html>", "not what its name says; repair or rename it"),
        ("a.arrow", b"", "not what its name says; repair or rename it"),
        ("a.csv", b"id,body\n1,the cat\n", "not one column 'text' in its first line, but 'id', 'body'; give one with"),
    ],
    ids=lambda value: value if isinstance(value, str) else "bytes",
)
def test_what_is_not_text_is_refused_and_no_bad_record(tmp_path, name, content, message):
    assert refusal(write(tmp_path / name, content)).startswith(message)


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("a.txt", "ein \xe4u\xdferes Bild".encode("latin-1"), "not UTF-8 at byte 4"),
        ("a.txt", random.Random(1).randbytes(5000), "not UTF-8 at byte 0"),
        ("a.txt", "汉字".encode("utf-16"), "not UTF-8 at byte 0"),
        ("a.gz", gzip.compress(gzip.compress(b"the cat", mtime=0)), "not UTF-8 at byte 1"),
        ("a.json", b'[{"text": "a"},\n{"text": "b"}]', "record 1: not valid JSON"),
        ("a.jsonl", b'["the cat", "the mat"]', "record 1: a JSON array, not an object"),
        ("a.jsonl", b"the cat\nthe mat\n", "record 1: not valid JSON"),
        ("a.txt", b'{\n  "text": "a"\n}\n', "record 1: not valid JSON"),
    ],
    ids=lambda value: value if isinstance(value, str) else "bytes",
)
def test_what_does_not_fit_the_format_is_refused_with_its_place(tmp_path, name, content, place):
    assert place in refused(lines_of, write(tmp_path / name, content))


def test_a_text_field_without_effect_is_refused(tmp_path):
    plain, packed = write(tmp_path / "a.txt", "the cat"), write(tmp_path / "a.gz", gzip.compress(b"the cat"))
    lines, reading = write(tmp_path / "a.jl", JSON_LINES), Reading("text")
    message = refused(reading.check_effect, find_files([plain, packed], "text"))
    assert message.startswith("--text-field text: has no effect, because no input has fields, and")
    reading.check_effect(find_files([plain, lines], "text"))
    Reading().check_effect(find_files([plain]))
