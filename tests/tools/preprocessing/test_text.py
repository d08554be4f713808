"""Text in every format and place gives what plain text gives; damaged records are refused or skipped."""

import bz2
import csv
import gzip
import html
import io
import json
import lzma
import random
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
from tn_fairseq.tools.preprocessing.text import Reading, read_chunks
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


def wiki_documents(texts: list[str]) -> bytes:
    """What WikiExtractor writes: a title, and the text with &amp; for &."""
    documents = (
        f'<doc id="{number}" url="https://en.wikipedia.org/wiki?curid={number}" title="The {number}">\nThe {number}\n\n'
        f"{html.escape(text, quote=False)}\n\n</doc>\n"
        for number, text in enumerate(texts)
    )
    return "".join(documents).encode()


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
    """A table as Python's csv writes it."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, **dialect)
        rows.writerow(["id", "text"])
        rows.writerows(enumerate(texts))
    return path


def save_to_disk(folder: Path, texts: list) -> Path:
    """What ``save_to_disk`` of the library datasets writes."""
    write(folder / "state.json", {"_data_files": [{"filename": "data-00000-of-00002.arrow"}]})
    write(folder / "dataset_info.json", {"features": {}})
    for number, part in enumerate((texts[:7], texts[7:])):
        path = folder / f"data-{number:05}-of-00002.arrow"
        with ipc.new_stream(path, table(part).schema) as stream:
            stream.write_table(table(part), max_chunksize=2)
    return write(folder / "cache-0123456789abcdef.arrow", path.read_bytes()).parent


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
    "wiki": lambda folder: write(folder / "AA" / "wiki_00", wiki_documents(TEXTS)).parent,
    "wiki.bz2": lambda folder: compressed(folder / "wiki_00.bz2", wiki_documents(TEXTS)),
    "parquet": lambda folder: write_parquet(folder / "a.parquet", TEXTS),
    "arrow file": lambda folder: write_arrow_file(folder / "a", TEXTS),
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


SETTINGS = [(1 << 18, None, 1), (1, 3, 1), (60, None, 1), (200, 2, 2)]  # bytes of a chunk, shards, workers
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


@pytest.mark.parametrize("kind", ["a.txt", "a.txt.zst", "a.jsonl.gz", "a.parquet", "a.arrow"])
def test_only_a_small_part_of_a_file_is_in_memory(tmp_path, kind):
    path, texts = tmp_path / kind, [f"{number} " * 2000 for number in range(2000)]  # 20 MB
    if kind == "a.parquet":
        parquet.write_table(table(texts), path, compression="NONE", use_dictionary=False)
    elif kind == "a.arrow":
        with ipc.new_stream(path, table(texts).schema) as stream:
            stream.write_table(table(texts), max_chunksize=50)
    else:
        content = json_lines(texts) if ".jsonl" in kind else "\n".join(texts).encode()
        path.write_bytes(COMPRESS.get(path.suffix[1:], bytes)(content))
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


@pytest.mark.parametrize("kind", ["plain", "jsonl", "parquet"])
def test_sentences_of_lines(tmp_path, bert, kind):
    pytest.importorskip("sentencex")
    documents = ["Dr. A.\u2028Cat sat.  The mat!\u3000\nthe cat", "Mat? Cat."]
    text = {
        "plain": lambda: write(tmp_path / "a", "\n\n".join(documents)),
        "jsonl": lambda: write(tmp_path / "a.jsonl", json_lines(documents)),
        "parquet": lambda: write_parquet(tmp_path / "a.parquet", documents),
    }[kind]()
    reading = Reading(split_sentences="en")
    for shards in (None, 2):
        counts = binarize({"train": [text]}, bert, tmp_path / "out", shards=shards, reading=reading)["train"]
        assert (counts.documents, counts.sentences) == (2, 5)
    found = [sentences(tmp_path / "out" / f"shard{number}") for number in range(2)]
    assert [len(part) for part in found] == [3, 2] and found[0][1] == "the mat <unk> </s>"


GOOD = json.dumps({"text": "the cat"})
BAD_RECORDS = [
    ('{"text": "the', "not valid JSON (Unterminated string"),
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


# as WikiExtractor 3.0.6 wrote it
WIKI = b"""<doc id="12" url="https://en.wikipedia.org/wiki?curid=12" title="Rock &amp; Roll">
Rock &amp; Roll

Rock &amp; Roll is a genre. It is loud, and 3 &lt; 4.
It has fans.
History.
It began in the 1950s.

</doc>
<doc id="25" url="https://en.wikipedia.org/wiki?curid=25" title="Autism">
Autism

Autism is a condition.
Second line.

</doc>
"""
ROCK = ["Rock & Roll is a genre. It is loud, and 3 < 4.", "It has fans.", "History.", "It began in the 1950s."]
AUTISM = ["Autism is a condition.", "Second line."]


@pytest.mark.parametrize("content", [WIKI, WIKI.replace(b"\n", b"\r\n"), WIKI.removesuffix(b"\n")])
def test_documents_of_wikiextractor(tmp_path, content):
    assert texts_of(write(tmp_path / "wiki_00", content)) == (ROCK + AUTISM, 0)


def test_broken_documents_of_wikiextractor_are_refused_or_skipped(tmp_path, monkeypatch):
    second = WIKI.index(b'<doc id="25"')
    for content, record, reason, kept in (
        (WIKI.replace(b'<doc id="25"', b'<dog id="25"'), 2, 'does not begin with <doc id="...">', ROCK),
        (WIKI[: second + 90], 2, "has no </doc>", ROCK),
        (WIKI.replace(b"Autism is", b"Autism \xff"), 2, "not UTF-8", ROCK),
    ):
        for chunk_bytes in (1, 1 << 18):
            monkeypatch.setattr(text_module, "CHUNK_BYTES", chunk_bytes)
            path = write(tmp_path / "wiki_00", content)
            assert refusal_of_plain(path).startswith(f"{path}, record {record}: {reason}; repair it, or skip it")
            assert texts_of(path) == (kept, 1)


def refusal_of_plain(path: Path) -> str:
    return refused(lambda: [chunk.plain(Reading()) for chunk in read_chunks(find_files([path]), "", Reading())])


@pytest.mark.parametrize("value", [None, b"\xff"])
def test_a_bad_row_of_a_table_is_refused_or_skipped(tmp_path, bert, value):
    column = pa.array([b"the cat", b"the mat", value, b"cat"], pa.binary())
    column = pa.StringArray.from_buffers(len(column), column.buffers()[1], column.buffers()[2], column.buffers()[0])
    parquet.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    message = refused(binarize, {"train": [tmp_path / "a.parquet"]}, bert, tmp_path / "out")
    assert f"a.parquet, record 3: {'the text is null' if value is None else 'not UTF-8'}; " in message
    counts = binarize({"train": [tmp_path / "a.parquet"]}, bert, tmp_path / "out", reading=SKIP)["train"]
    assert (counts.documents, counts.bad) == (3, 1)


def texts_of(path: Path) -> tuple[list[str], int]:
    """The texts that are read if bad records are skipped, and the number of these."""
    kept = [chunk.plain(SKIP) for chunk in read_chunks(find_files([path]), "", SKIP)]
    return [line for chunk in kept for line in chunk.lines() if line], sum(chunk.bad for chunk in kept)


def refusal_of(path: Path) -> str:
    return refused(list, read_chunks(find_files([path]), "", Reading()))


@pytest.mark.parametrize("chunk_bytes", [1000, 1 << 18])
@pytest.mark.parametrize("kind", ["txt", "jsonl"])
@pytest.mark.parametrize("compression", COMPRESS)
def test_the_rest_of_a_truncated_archive_is_refused_or_skipped(tmp_path, compression, kind, chunk_bytes, monkeypatch):
    monkeypatch.setattr(text_module, "CHUNK_BYTES", chunk_bytes)
    rng = random.Random(1)
    texts = [" ".join(str(rng.random()) for _ in range(50)) for _ in range(1000)]
    content = "\n".join(texts).encode() if kind == "txt" else json_lines(texts)
    # in parts, because xz and bz2 have large blocks
    data = b"".join(
        COMPRESS[compression](content[start : start + 100_000]) for start in range(0, len(content), 100_000)
    )
    path = write(tmp_path / f"a.{kind}.{compression}", data[: len(data) // 2])
    lines, bad = texts_of(path)
    assert 300 < len(lines) < 600 and lines == texts[: len(lines)] and bad == 1
    assert refusal_of(path).startswith(f"{path}, {'line' if kind == 'txt' else 'record'} {len(lines) + 1}: ")
    write(path, data[: len(data) // 2] + bytes(200) + data[len(data) // 2 + 200 :])  # decompressors may notice it late
    assert refusal_of(path).startswith(f"{path}, ")


@pytest.mark.parametrize("kind", ["parquet", "saved data set"])
def test_a_damaged_table_is_refused_or_its_rest_is_skipped(tmp_path, kind):
    texts = [str(number) * 300 for number in range(1000)]
    write_both = {"parquet": lambda: write_parquet(tmp_path / "a.parquet", texts)}
    path = write_both.get(kind, lambda: save_to_disk(tmp_path / "saved", texts))()
    file = path if kind == "parquet" else path / "data-00001-of-00002.arrow"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    lines, bad = texts_of(path)
    assert len(lines) < 1000 and lines == texts[: len(lines)] and bad == 1
    number = len(lines) - (0 if kind == "parquet" else 7) + 1
    assert refusal_of(path).startswith(f"{file}, record {number}: ")


def test_a_column_without_text_is_refused(tmp_path):
    files = find_files([write_parquet(tmp_path / "a.parquet", TEXTS)])
    for field, message in (
        ("body", "a.parquet: not one column 'body', but 'id', 'text'; give one with --text-field"),
        ("id", "a.parquet: the column 'id' is of type int64; give a column of text with --text-field"),
    ):
        assert message in refused(list, read_chunks(files, "", Reading(field, skip_bad_records=True)))


def test_splitting_sentences_needs_a_library_and_a_language(monkeypatch):
    assert "--split-sentences klingon: not the code of a language" in refused(Reading, split_sentences="klingon")
    monkeypatch.setitem(sys.modules, "sentencex", None)
    assert "pip install 'tn_fairseq[sentences]'" in refused(Reading, split_sentences="en")


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.txt", b""), ("a.gz", gzip.compress(b"the", mtime=0)), ("a.xz", lzma.compress(b"{}")), ("a.parquet", b"PAR1")],
)
def test_a_connection_that_breaks_is_not_taken_for_damage(name, content, monkeypatch):
    fsspec.filesystem("memory").pipe(f"/{name}", content)
    files = find_files([f"memory:///{name}"])

    class Broken(io.BytesIO):
        def read(self, *_):
            raise RuntimeError("connection lost\nmore")

        readinto = readinto1 = readline = read1 = seek = read

    monkeypatch.setattr(files[0].system, "open", lambda *_: Broken())
    assert refused(list, read_chunks(files, "", SKIP)) == f"{files[0].name}: connection lost; give a readable text file"


def test_only_bad_records(tmp_path, bert):
    path = write(tmp_path / "a.jsonl", GOOD.replace("text", "body"))
    message = refused(binarize, {"train": [path]}, bert, tmp_path / "out", reading=SKIP)
    assert "1 bad records, and no text for train; give another --text-field" in message
