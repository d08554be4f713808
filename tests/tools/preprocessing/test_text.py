"""Text in every format and place gives what plain text gives; damaged records are refused or skipped."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import random
import re
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from files import contents, refused, write
from helpers import zstd
from preprocessed import sentences
from pyarrow import feather, ipc, parquet
from tokenizer_folders import TEXT, bert_folder

from tn_fairseq.commands import data_train_tokenizer
from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tools.preprocessing import text as text_module
from tn_fairseq.tools.preprocessing.binarization import binarize
from tn_fairseq.tools.preprocessing.text import Reading, Records, read_chunks
from tn_fairseq.tools.preprocessing.text_files import find_files

SKIP = Reading(skip_bad_records=True)
# Records, among them one without text. Blank lines in a record are not boundaries.
TEXTS = [TEXT[0], f"{TEXT[1]}\r\n\r\n \n{TEXT[2]}\n", "", "\x07", f"\n\n{TEXT[3]}", "汉 😀", *TEXT * 5]
LINES = [[line for line in text.replace("\r\n", "\n").split("\n") if line.strip()] for text in TEXTS]
PLAIN = "\n\n".join("\n".join(lines) for lines in LINES if lines) + "\n"
COMPRESS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress, "zst": zstd.compress}


def compressed(path: Path, content: bytes) -> Path:
    """Write a file with two compressed parts, as pigz, pzstd and cat do."""
    compress, half = COMPRESS[path.suffix[1:]], len(content) // 2
    return write(path, compress(content[:half]) + compress(content[half:]))


def json_lines(texts: list[str | None]) -> bytes:
    """The records, and a blank line."""
    records = [json.dumps({"id": number, "text": text}) for number, text in enumerate(texts)]
    return ("\ufeff" + "\n".join(records) + "\n\n").encode()


def table(texts: list[str | None]) -> pa.Table:
    return pa.table({"id": list(range(len(texts))), "text": texts})


def write_parquet(path: Path, texts: list, dictionary: bool = False) -> Path:
    rows = table(texts)
    if dictionary:
        rows = rows.set_column(1, "text", rows["text"].dictionary_encode())
    parquet.write_table(rows, path, row_group_size=3)
    return path


def write_arrow_file(path: Path, texts: list) -> Path:
    with ipc.new_file(path, table(texts).schema) as file:
        file.write_table(table(texts), max_chunksize=3)
    return path


def write_columns(path: Path, texts: list, **dialect: str) -> Path:
    """A table as Python's csv writes it, with the byte order mark of Excel."""
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        rows = csv.writer(file, **dialect)
        rows.writerow(["text", "id"])
        rows.writerows(zip(texts, range(len(texts))))
    return path


def save_to_disk(folder: Path, texts: list) -> Path:
    """What ``save_to_disk`` of the library datasets writes, as a pattern."""
    write(folder / "state.json", {"_data_files": [{"filename": "data-00000-of-00002.arrow"}]})
    write(folder / "dataset_info.json", {"features": {}})
    for number, part in enumerate((texts[:7], texts[7:])):
        path = folder / f"data-{number:05}-of-00002.arrow"
        with ipc.new_stream(path, table(part).schema) as stream:
            stream.write_table(table(part), max_chunksize=2)
    return folder / "data-*.arrow"


def in_parts(folder: Path) -> Path:
    write(folder / "b.jsonl", json_lines(TEXTS[7:]))
    compressed(folder / "a" / "part.jsonl.gz", json_lines(TEXTS[:7]))
    write(folder / "_SUCCESS", b"\xff")
    write(folder / ".hidden.jsonl", b"\xff")
    return folder


def linked(folder: Path) -> Path:
    """A folder of links, as in the cache of the Hugging Face Hub."""
    (folder / "snapshot").mkdir()
    for path in sorted(path for path in in_parts(folder / "blobs").rglob("*.*") if path.is_file()):
        (folder / "snapshot" / path.name.replace("part", "a")).symlink_to(path)
    return folder / "snapshot"


def in_memory(folder: Path) -> str:
    for name, part in (("a", TEXTS[:7]), ("b", TEXTS[7:])):
        fsspec.filesystem("memory").pipe(f"/{folder.name}/{name}.jsonl.xz", lzma.compress(json_lines(part)))
    return f"memory://{folder.name}/*.jsonl.xz"


WRITERS: dict[str, Callable[[Path], object]] = {
    **{kind: lambda folder, kind=kind: compressed(folder / f"a.txt.{kind}", PLAIN.encode()) for kind in COMPRESS},
    "jsonl": lambda folder: write(folder / "a.jsonl", json_lines(TEXTS)),
    "jsonl.zst": lambda folder: compressed(folder / "a.JSONL.zst", json_lines(TEXTS)),
    "parquet": lambda folder: write_parquet(folder / "a.parquet", TEXTS),
    "arrow file": lambda folder: write_arrow_file(folder / "a.arrow", TEXTS),
    "feather": lambda folder: feather.write_feather(table(TEXTS), folder / "a.feather") or folder / "a.feather",
    "csv": lambda folder: write_columns(folder / "a.csv", TEXTS),
    "tsv": lambda folder: write_columns(folder / "a.tsv", TEXTS, delimiter="\t"),
    "csv.bz2": lambda folder: compressed(folder / "a.csv.bz2", write_columns(folder / ".a.csv", TEXTS).read_bytes()),
    "categories": lambda folder: write_parquet(folder / "a.parquet", TEXTS, dictionary=True),
    "saved data set": lambda folder: save_to_disk(folder / "saved", TEXTS),
    "folder": lambda folder: in_parts(folder / "parts"),
    "pattern": lambda folder: in_parts(folder) / "**" / "*",
    "links": linked,
    "pattern of links": lambda folder: linked(folder) / "*",
    "address of links": lambda folder: f"file://{linked(folder)}",
    "memory": in_memory,
}


def counted(counts) -> tuple:
    """The counts that do not depend on how documents are separated."""
    return counts.documents, counts.sentences, counts.shard_tokens, counts.unknown, counts.nothing_kept, counts.bad


SETTINGS = [(1 << 18, None, 1), (1, 3, 1), (200, 2, 2)]  # bytes of a chunk, shards, workers
# one kind of each reader; to the workers, all others are like one of these, and forks of this process are slow
WITH_WORKERS = ("zst", "jsonl", "parquet", "csv", "saved data set", "folder")


@pytest.fixture(scope="module")
def from_plain_text(tmp_path_factory) -> list[tuple]:
    """The files and counts of the plain text, binarized with each of the settings."""
    folder = tmp_path_factory.mktemp("plain")
    plain = write(folder / "plain", PLAIN)
    return [binarized(plain, folder, setting) for setting in SETTINGS]


def binarized(text: object, folder: Path, setting: tuple) -> tuple:
    """The files and counts of a text that is binarized in small chunks."""
    chunk_bytes, shards, workers = setting
    bert = load_tokenizer(bert_folder(folder / "tokenizer"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "CHUNK_BYTES", chunk_bytes)
        counts = binarize({"train": [text], "valid": [text]}, bert, folder / "ours", workers, shards=shards)
    return contents(folder / "ours"), counted(counts["train"]), counted(counts["valid"])


@pytest.mark.parametrize("kind", WRITERS)
def test_the_same_text_in_any_format_gives_the_same_bytes(tmp_path, from_plain_text, kind):
    (tmp_path / "in").mkdir()
    given = WRITERS[kind](tmp_path / "in")
    for setting, theirs in zip(SETTINGS, from_plain_text, strict=True):
        if setting[-1] == 1 or kind in WITH_WORKERS:
            assert binarized(given, tmp_path, setting) == theirs


@pytest.mark.parametrize(("kind", "size"), [("wordpiece", "64"), ("sentencepiece", "40")])
def test_a_tokenizer_is_the_same_from_any_format(tmp_path, kind, size, capsys):
    plain = write(tmp_path / "plain", PLAIN)
    saved = save_to_disk(tmp_path / "saved", [*TEXTS, None])
    words = ["--type", kind, "--vocab-size", size, "--output"]
    data_train_tokenizer.main(["--input", str(plain), *words, str(tmp_path / "ours")])
    data_train_tokenizer.main(["--input", str(saved), *words, str(tmp_path / "theirs"), "--skip-bad-records"])
    assert "skipped bad records: 1\n" in capsys.readouterr().out
    assert contents(tmp_path / "ours") == contents(tmp_path / "theirs")


def test_progress_ends_at_the_size_of_the_files(tmp_path, monkeypatch):
    bars = []

    class Bar(text_module.tqdm):
        def __init__(self, *args, **options):
            super().__init__(*args, **{**options, "disable": False, "file": open("/dev/null", "w")})  # noqa: SIM115
            bars.append(self)

    monkeypatch.setattr(text_module, "tqdm", Bar)
    for kind, writer in WRITERS.items():
        (tmp_path / kind).mkdir()
        files = find_files([writer(tmp_path / kind)])
        positions = [bars[-1].n for _ in read_chunks(files, "read", Reading())]
        assert positions == sorted(positions) and bars[-1].n == bars[-1].total > 0, kind


def test_a_pipe():
    end, start = os.pipe()
    os.write(start, b'{"text": "the cat"}\n')
    os.close(start)
    (chunk,) = read_chunks(find_files([f"/dev/fd/{end}"], "json"), "", Reading())
    assert chunk.plain(Reading()).data == b"the cat\n"


@pytest.mark.parametrize("kind", ["a.txt.zst", "a.jsonl.gz", "a.csv", "a.parquet", "a.arrow"])
def test_only_a_small_part_of_a_file_is_in_memory(tmp_path, kind):
    path, texts = tmp_path / kind, [f"{number} " * 2000 for number in range(2000)]  # 20 MB
    if kind == "a.parquet":
        parquet.write_table(table(texts), path, compression="NONE", use_dictionary=False)
    elif kind == "a.csv":
        write_columns(path, texts)
    elif kind == "a.arrow":
        with ipc.new_stream(path, table(texts).schema) as stream:
            stream.write_table(table(texts), max_chunksize=50)
    else:
        path.write_bytes(
            COMPRESS[path.suffix[1:]](json_lines(texts) if ".jsonl" in kind else "\n".join(texts).encode())
        )
    del texts
    files = find_files([path])
    list(read_chunks(files[:0], "", Reading()))  # imports
    tracemalloc.start()
    arrow = pa.total_allocated_bytes()
    try:
        for _ in read_chunks(files, "", Reading()):
            assert tracemalloc.get_traced_memory()[0] < 6e6 and pa.total_allocated_bytes() < arrow + 12e6
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["plain", "jsonl"])
def test_sentences_of_lines(tmp_path, bert, kind):
    pytest.importorskip("sentencex")
    documents = ["Dr. A.\u2028Cat sat.  The mat!\u3000\nthe cat", "Mat? Cat."]
    content = "\n\n".join(documents) if kind == "plain" else json_lines(documents)
    text = write(tmp_path / ("a" if kind == "plain" else "a.jsonl"), content)
    for shards in (None, 2):
        reading = Reading(split_sentences="en")
        counts = binarize({"train": [text]}, bert, tmp_path / "out", shards=shards, reading=reading)["train"]
        assert (counts.documents, counts.sentences) == (2, 5)
    found = [sentences(tmp_path / "out" / f"shard{number}") for number in range(2)]
    assert [len(part) for part in found] == [3, 2] and found[0][1] == "the mat <unk> </s>"


GOOD = json.dumps({"text": "the cat"})
BAD_RECORDS = [
    ('{"text": "the', "not JSON at column 10 (Unterminated"),
    ("[1]", "a JSON array, not an object"),
    ('{"id": 1, "body": "the cat"}', "no field 'text', but 'id', 'body'"),
    ('{"text": null}', "the text is null"),
    ('{"text": 5}', "the field 'text' is a JSON number, not text"),
    ('{"text": "\\ud800"}', "not UTF-8"),
    (b'{"text": "\xff"}', "not UTF-8"),
    pytest.param("[" * 100_000, "recursion", id="recursion"),
    ('{"id": ' + "1" * 5000 + "}", "integer string conversion"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_RECORDS)
def test_a_bad_line_of_json_is_refused_or_skipped(tmp_path, bert, line, reason, monkeypatch):
    line = line if isinstance(line, bytes) else line.encode()
    path = write(tmp_path / "a.jsonl", b"\n".join([GOOD.encode(), b"", line, GOOD.encode()]))
    for chunk_bytes in (1, 1 << 18):
        monkeypatch.setattr(text_module, "CHUNK_BYTES", chunk_bytes)
        message = refused(binarize, {"train": [path]}, bert, tmp_path / "out")
        assert message.startswith(f"{path}, record 3: ") and reason in message and "--skip-bad-records" in message
        counts = binarize({"train": [path]}, bert, tmp_path / "out", reading=SKIP)["train"]
        assert (counts.documents, counts.bad) == (2, 1)
    path.write_bytes(line)
    message = refused(binarize, {"train": [path]}, bert, tmp_path / "out", reading=SKIP)
    assert "1 bad records, and no text for train" in message


def test_records_without_text_leave_nothing():
    assert Records("", 0, [b"", b"the cat", b"\n \n", b"the mat"]).plain(Reading()).data == b"the cat\n\nthe mat\n"


@pytest.mark.parametrize("value", [None, b"\xff"])
def test_a_bad_row_of_a_table_is_refused_or_skipped(tmp_path, bert, value, monkeypatch):
    monkeypatch.setattr(text_module, "CHUNK_BYTES", 1)
    column = pa.array([b"the cat", b"the mat", value, b"cat"], pa.binary())
    column = pa.StringArray.from_buffers(len(column), column.buffers()[1], column.buffers()[2], column.buffers()[0])
    parquet.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    message = refused(binarize, {"train": [tmp_path / "a.parquet"]}, bert, tmp_path / "out")
    assert f"a.parquet, record 3: {'the text is null' if value is None else 'not UTF-8'}; " in message
    counts = binarize({"train": [tmp_path / "a.parquet"]}, bert, tmp_path / "out", reading=SKIP)["train"]
    assert (counts.documents, counts.bad) == (3, 1)


def refusal_of(path: Path, **how) -> str:
    """The error of reading a file."""
    read = Reading(**how)
    return refused(
        lambda: [text.plain(read).lines() for text in read_chunks(find_files([path], read.format), "", read)]
    )


@pytest.mark.parametrize(("compression", "kind"), [*((one, "jsonl") for one in COMPRESS), ("gz", "txt"), ("xz", "csv")])
def test_a_damaged_archive_is_refused_with_its_place(tmp_path, compression, kind):
    rng = random.Random(1)
    texts = [" ".join(str(rng.random()) for _ in range(50)) for _ in range(1000)]
    content = json_lines(texts) if kind == "jsonl" else "\n".join(["text", *texts]).encode()
    # in parts, because xz and bz2 have large blocks
    parts = [COMPRESS[compression](content[at : at + 100_000]) for at in range(0, len(content), 100_000)]
    path, data, middle = tmp_path / f"a.{kind}.{compression}", b"".join(parts), sum(map(len, parts[:5]))
    for damaged in (
        data[: len(data) // 2],
        data[: len(data) // 2] + bytes(200) + data[len(data) // 2 + 200 :],
        data[:middle] + b"x" + data[middle:],  # where Python's readers end
        content,
    ):
        assert re.match(
            rf"{path}(, (from byte|record) \d+)?: .*; repair it, give its --format", refusal_of(write(path, damaged))
        )


TABLE = b"id,text\n1,the cat\n"


@pytest.mark.parametrize(
    ("name", "content", "named", "message"),
    [
        ("a.txt", "ein \xe4u\xdferes Bild".encode("latin-1"), {}, "a.txt: not UTF-8 at byte 4; "),
        ("a.json", b'[{"text": "a"},\n{"text": "b"}]', {}, "a.json, record 1: not JSON at column 16 ("),
        ("a.csv", TABLE, {"text_field": "body"}, "a.csv, record 1: not one column 'body', but 'id', 'text' (see"),
        ("a.csv", b"", {}, "a.csv, record 1: not one column 'text', but none (see"),
        ("a.csv", b"text,text\n1,2\n", {}, "a.csv, record 1: not one column 'text', but 'text', 'text' (see"),
        ("a.csv", TABLE + b"2,a,b\n", {}, "a.csv, record 2: not 2 columns, but 3; "),
        ("a.csv", TABLE + b'2,"x" y\n', {}, "a.csv, record 2: ',' expected after '\"'; "),
        ("a.csv", TABLE + b'2,"x\n3,y\n', {}, "a.csv, record 2: unexpected end of data; "),
        ("a.csv", TABLE + b'2,"' + b"x" * 2000, {}, "a.csv, record 2: field larger than field limit (1000); "),
        ("a.csv", TABLE + b"2,\xff\n", {}, "a.csv, record 2: not UTF-8; "),
        ("a.tsv", TABLE, {}, "a.tsv, record 1: not one column 'text', but 'id,text' (see"),
        ("a.parquet", TABLE, {}, "a.parquet, record 1: Parquet magic bytes not found in footer"),
        ("a.arrow", TABLE, {}, "a.arrow, record 1: "),
        ("a.feather", b"", {}, "a.feather, record 1: "),
        ("a.gz", TABLE, {}, "a.gz, from byte 0: Not a gzipped file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_the_format_is_refused_with_its_place(tmp_path, monkeypatch, name, content, named, message):
    monkeypatch.setattr(text_module, "LONGEST_CELL", 1000)
    found = refusal_of(write(tmp_path / name, content), **named)
    assert found.startswith(f"{tmp_path / message}")


@pytest.mark.parametrize(("write_table", "kind"), [(write_parquet, "parquet"), (write_arrow_file, "arrow")])
def test_a_damaged_table_and_a_column_without_text_are_refused(tmp_path, write_table, kind):
    path = write_table(tmp_path / f"a.{kind}", TEXTS)
    assert "record 1: not one column 'body'" in refusal_of(path, text_field="body")
    assert "record 1: the column is of type int64" in refusal_of(path, text_field="id")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert refusal_of(path).startswith(f"{path}, record 1: ")
    stream = save_to_disk(tmp_path, TEXTS).parent / "data-00001-of-00002.arrow"
    stream.write_bytes(stream.read_bytes()[: stream.stat().st_size // 2])
    assert re.match(rf"{stream}, record \d+: ", refusal_of(stream))


def test_splitting_sentences_needs_a_library_and_a_language(monkeypatch):
    assert "--split-sentences klingon" in refused(Reading, split_sentences="klingon")
    monkeypatch.setitem(sys.modules, "sentencex", None)
    assert "pip install 'tn_fairseq[sentences]'" in refused(Reading, split_sentences="en")


@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a.jsonl", "a.csv", "a.parquet", "a.arrow"])
def test_a_connection_that_breaks(name, monkeypatch):
    fsspec.filesystem("memory").pipe(f"/{name}", b"")
    files = find_files([f"memory:///{name}"])

    class Broken(io.BytesIO):
        def read(self, *_):
            raise RuntimeError("connection lost\nmore")

        readinto = readinto1 = readline = read1 = seek = read

    monkeypatch.setattr(files[0].system, "open", lambda *_: Broken())
    message = refused(list, read_chunks(files, "", SKIP))
    assert re.match(rf"{files[0].name}, .*: connection lost; check the address and the network", message)
