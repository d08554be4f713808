"""Binarized text: byte for byte what fairseq-preprocess writes, for every tokenizer and number of workers."""

import errno
import multiprocessing
import os
import stat
from pathlib import Path

import pytest
from fairseq import options
from fairseq.data import Dictionary, TokenBlockDataset, indexed_dataset
from fairseq_cli import preprocess
from tokenizer_folders import (
    REAL_DATA,
    TEXT,
    bert_folder,
    gpt2_folder,
    sentencepiece_folder,
    with_real_data,
)

from tn_fairseq.errors import InputError
from tn_fairseq.files import STAGING, write_folder
from tn_fairseq.preprocessing.binarization import binarize, read_chunks
from tn_fairseq.tokenizers import load_tokenizer

KINDS = {"wordpiece": bert_folder, "gpt2": gpt2_folder, "sentencepiece": sentencepiece_folder}
# Three documents with everything that is dropped: outer and repeated blank lines, lines without pieces, white space.
MESSY = (
    "\ufeff\n\n" + TEXT[0] + "\r\n" + TEXT[1] + "\n\u200b\n" + TEXT[2] + "\n"
    "\n \t\r\n\x07\n\n" + TEXT[3] + "\n"
    "\n[MASK] the </s> <mask> <unk> [SEP] 😀 Ж\n\n\n"
)


@pytest.fixture(params=KINDS)
def tokenizer(request, tmp_path):
    return load_tokenizer(KINDS[request.param](tmp_path / "tokenizer"))


@pytest.fixture
def bert(tmp_path):
    return load_tokenizer(bert_folder(tmp_path / "bert"))


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """All files in a folder and its subfolders."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def sentences(folder: Path, split: str = "train") -> list[str]:
    """The sentences that fairseq reads, each with its </s>."""
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    dataset = indexed_dataset.make_dataset(str(folder / split), "mmap")
    return [" ".join(dictionary[index] for index in dataset[i].tolist()) for i in range(len(dataset))]


def fairseq_preprocess(text: Path, destdir: Path) -> None:
    """Binarize the output of --text-only as a user would."""
    flags = ["--only-source", "--srcdict", text / "dict.txt", "--destdir", destdir]
    for split in ("train", "valid"):
        flags += [f"--{split}pref", text / f"{split}.txt"]
    preprocess.main(options.get_preprocessing_parser().parse_args(list(map(str, flags))))


def test_output_is_identical_to_fairseq_preprocess(tmp_path, tokenizer):
    splits = {"train": [write(tmp_path / "a", MESSY)], "valid": [write(tmp_path / "b", "\n".join(TEXT))]}
    binarize(splits, tokenizer, tmp_path / "ours")
    binarize(splits, tokenizer, tmp_path / "text", text_only=True)
    fairseq_preprocess(tmp_path / "text", tmp_path / "theirs")
    ours, theirs = contents(tmp_path / "ours"), contents(tmp_path / "theirs")
    for name in ("dict.txt", "train.bin", "train.idx", "valid.bin", "valid.idx"):
        assert ours[name] == theirs[name]
    assert sorted(ours.keys() - theirs.keys()) == sorted(f"tokenizer/{name}" for name in tokenizer.files)
    assert {f"tokenizer/{name}": content for name, content in tokenizer.files.items()}.items() <= ours.items()


def test_numbers_have_the_width_that_fairseq_chooses(tmp_path):
    for size, width in ((65_495, 2), (65_496, 4)):  # with four special symbols, 65,500 is fairseq's limit
        tokenizer = load_tokenizer(bert_folder(tmp_path / str(size), ["the", *map(str, range(size - 1))]))
        out = tmp_path / f"out{size}"
        text = [write(tmp_path / "text", "the\n")]
        binarize({"train": text, "valid": text}, tokenizer, out)
        assert len((out / "train.bin").read_bytes()) == 2 * width
        binarize({"train": text, "valid": text}, tokenizer, tmp_path / f"text{size}", text_only=True)
        fairseq_preprocess(tmp_path / f"text{size}", tmp_path / f"theirs{size}")
        assert contents(out)["train.idx"] == contents(tmp_path / f"theirs{size}")["train.idx"]


@pytest.mark.parametrize("text_only", [False, True])
def test_output_does_not_depend_on_workers_or_chunks(tmp_path, tokenizer, text_only, monkeypatch):
    splits = {"train": [write(tmp_path / "a", MESSY * 20), write(tmp_path / "b", MESSY)], "valid": [tmp_path / "b"]}
    counts = binarize(splits, tokenizer, tmp_path / "whole", text_only=text_only)
    for chunk_bytes in (1, 60, 200):
        monkeypatch.setattr(read_chunks, "__defaults__", (chunk_bytes,))
        for workers in (1, 2) if chunk_bytes == 60 else (1,):
            assert binarize(splits, tokenizer, tmp_path / "parts", workers, text_only) == counts
            assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_documents_and_dropped_lines(tmp_path, bert):
    counts = binarize({"train": [write(tmp_path / "a", MESSY)]}, bert, tmp_path / "out")["train"]
    found = sentences(tmp_path / "out")
    assert [line == "</s>" for line in found] == [False, False, False, True, False, True, False]
    assert found[-1] == "[ mask ] the < / s > < mask > < <unk> > [ <unk> ] <unk> <unk> </s>"
    assert (counts.documents, counts.sentences) == (3, 5)
    assert counts.tokens == sum(len(line.split()) for line in found)
    assert counts.unknown == sum(line.split().count("<unk>") for line in found)
    assert counts.pieces == counts.tokens - sum(line.endswith("</s>") for line in found)
    assert (counts.nothing_kept, counts.repeated_blanks, counts.outer_blanks) == (2, 2, 4)


def test_every_line_is_accounted_for(tmp_path, bert):
    counts = binarize({"train": [write(tmp_path / "a", MESSY)]}, bert, tmp_path / "out")["train"]
    dropped = counts.nothing_kept + counts.repeated_blanks + counts.outer_blanks
    assert counts.sentences + counts.documents - 1 + dropped == MESSY.count("\n")


@pytest.mark.parametrize("ends", [("", ""), ("\n", ""), ("\n\n", ""), ("\n\n\n", "\n\n"), ("\n\x07\n", "\x07\n")])
def test_one_boundary_between_files(tmp_path, bert, ends):
    files = [write(tmp_path / "a", "the cat" + ends[0]), write(tmp_path / "b", ends[1] + "the mat\n")]
    counts = binarize({"train": files}, bert, tmp_path / "out")["train"]
    assert sentences(tmp_path / "out") == ["the cat </s>", "</s>", "the mat </s>"]
    assert counts.documents == 2


def test_an_empty_file_and_the_same_file_twice(tmp_path, bert):
    one, empty = write(tmp_path / "a", "the cat"), write(tmp_path / "b", "")
    binarize({"train": [empty, one, empty, one]}, bert, tmp_path / "out")
    assert sentences(tmp_path / "out") == ["the cat </s>", "</s>", "the cat </s>"]


def test_only_line_feeds_end_lines(tmp_path, bert):
    text = "the\x0bcat\x0csat\x1con\u2028the\x85mat\r\nthe\rcat"
    binarize({"train": [write(tmp_path / "a", text)]}, bert, tmp_path / "out")
    assert len(sentences(tmp_path / "out")) == 2


def test_fairseq_sees_the_documents(tmp_path, bert):
    binarize({"train": [write(tmp_path / "a", MESSY)]}, bert, tmp_path / "out")
    dataset = indexed_dataset.make_dataset(str(tmp_path / "out" / "train"), "mmap")
    blocks = TokenBlockDataset(dataset, dataset.sizes, 512, pad=1, eos=2, break_mode="complete_doc")
    assert len(blocks) == 3


def test_a_released_dictionary_keeps_its_order(tmp_path, bert):
    symbols = [*reversed(bert.symbols.values()), "madeupword0000"]
    released = write(tmp_path / "released.txt", "".join(f"{symbol} {i}\n" for i, symbol in enumerate(symbols)))
    text = [write(tmp_path / "a", MESSY)]
    binarize({"train": text}, bert, tmp_path / "plain")
    binarize({"train": text}, bert, tmp_path / "out", dict_path=released)
    assert (tmp_path / "out" / "dict.txt").read_bytes() == released.read_bytes()
    assert sentences(tmp_path / "out") == sentences(tmp_path / "plain")
    assert (tmp_path / "out" / "train.bin").read_bytes() != (tmp_path / "plain" / "train.bin").read_bytes()


def test_a_released_dictionary_of_another_tokenizer_is_refused(tmp_path, bert):
    released = write(tmp_path / "released.txt", "the 1\n")
    with pytest.raises(InputError, match="the dictionary lacks 17"):
        binarize({"train": [write(tmp_path / "a", "the")]}, bert, tmp_path / "out", dict_path=released)


@pytest.mark.parametrize("bad", [b"\xff", "é".encode("latin-1"), b"\xed\xa0\x80", "é".encode()[:1]])
@pytest.mark.parametrize("workers", [1, 2])
def test_invalid_utf8_is_reported_with_file_and_offset(tmp_path, bert, bad, workers, monkeypatch):
    monkeypatch.setattr(read_chunks, "__defaults__", (100,))
    good = "汉 the cat\n".encode() * 50
    files = [write(tmp_path / "good", good), write(tmp_path / "bad", good + bad + b"\n" + good)]
    with pytest.raises(InputError, match=f"bad: not UTF-8 at byte {len(good)};"):
        binarize({"train": files}, bert, tmp_path / "out", workers)
    assert contents(tmp_path / "out") == {}


@pytest.mark.parametrize("text", ["", "\n \n", "\x07\n\u200b\n"])
def test_a_corpus_without_text_is_refused(tmp_path, bert, text):
    with pytest.raises(InputError, match=r"empty\.txt: no line with text for valid"):
        splits = {"train": [write(tmp_path / "a", "the")], "valid": [write(tmp_path / "empty.txt", text)]}
        binarize(splits, bert, tmp_path / "out")
    assert contents(tmp_path / "out") == {}


def test_a_missing_file_is_reported_before_any_work(tmp_path, bert):
    splits = {"train": [write(tmp_path / "a", b"\xff")], "test": [tmp_path / "no.txt"]}
    with pytest.raises(InputError, match=r"no\.txt: No such file"):
        binarize(splits, bert, tmp_path / "out")
    with pytest.raises(InputError, match="is a folder"):
        binarize({"train": [tmp_path]}, bert, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_destination_that_cannot_be_written(tmp_path, bert):
    text = write(tmp_path / "a", "the")
    with pytest.raises(InputError, match="--destdir"):
        binarize({"train": [text]}, bert, text / "out")


def test_a_failed_run_does_not_change_earlier_output(tmp_path, bert, tokenizer):
    good, bad = write(tmp_path / "good", "the cat\n"), write(tmp_path / "bad", b"the\xff")
    binarize({"train": [good], "valid": [good]}, bert, tmp_path / "out")
    before = contents(tmp_path / "out")
    with pytest.raises(InputError):
        binarize({"train": [good], "valid": [bad]}, tokenizer, tmp_path / "out")
    assert contents(tmp_path / "out") == before


def test_leftovers_of_a_killed_run_are_deleted(tmp_path, bert):
    (tmp_path / "out" / STAGING).mkdir(parents=True)
    write(tmp_path / "out" / STAGING / "test.bin", "half")
    binarize({"train": [write(tmp_path / "a", "the")]}, bert, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "dict.txt",
        "tokenizer",
        "train.bin",
        "train.idx",
    ]


def test_a_run_killed_while_files_are_moved_leaves_no_dictionary(tmp_path, bert, monkeypatch):
    text = [write(tmp_path / "a", "the")]
    binarize({"train": text}, bert, tmp_path / "out")
    moved = []

    def replace_once(source, target):
        if moved:
            raise KeyboardInterrupt
        moved.append(os.rename(source, target))

    monkeypatch.setattr(os, "replace", replace_once)
    with pytest.raises(KeyboardInterrupt):
        binarize({"train": text}, bert, tmp_path / "out")
    assert not (tmp_path / "out" / "dict.txt").exists()


def test_splits_of_another_dictionary_are_deleted(tmp_path, bert):
    text = [write(tmp_path / "a", "the cat")]
    binarize({"train": text, "test": text}, bert, tmp_path / "out")
    binarize({"train": text}, bert, tmp_path / "out")
    assert (tmp_path / "out" / "test.bin").exists()
    other = load_tokenizer(bert_folder(tmp_path / "other", ["cat"]))
    binarize({"train": text}, other, tmp_path / "out")
    assert not (tmp_path / "out" / "test.bin").exists()
    assert sentences(tmp_path / "out") == ["<unk> cat </s>"]


def test_binarizing_with_the_copied_tokenizer_again(tmp_path, tokenizer):
    text = [write(tmp_path / "a", MESSY)]
    binarize({"train": text}, tokenizer, tmp_path / "out")
    before = contents(tmp_path / "out")
    binarize({"train": text}, load_tokenizer(tmp_path / "out" / "tokenizer"), tmp_path / "out")
    assert contents(tmp_path / "out") == before


# Shards


def documents(folder: Path) -> list[list[str]]:
    """The sentences of each document that fairseq reads."""
    found: list[list[str]] = [[]]
    for sentence in sentences(folder):
        if sentence == "</s>":
            found.append([])
        else:
            found[-1].append(sentence)
    return found


@pytest.mark.parametrize("chunk_bytes", [1, 50, 1 << 18])
@pytest.mark.parametrize("shards", [1, 2, 5])
def test_shards_contain_the_documents_in_order(tmp_path, tokenizer, shards, chunk_bytes, monkeypatch):
    monkeypatch.setattr(read_chunks, "__defaults__", (chunk_bytes,))
    splits = {"train": [write(tmp_path / "a", MESSY * 3), write(tmp_path / "b", MESSY)], "valid": [tmp_path / "b"]}
    whole = binarize(splits, tokenizer, tmp_path / "whole")
    counts = binarize(splits, tokenizer, tmp_path / "out", shards=shards)
    folders = [tmp_path / "out" / f"shard{number}" for number in range(shards)]
    assert sorted((tmp_path / "out").iterdir()) == folders
    assert [document for folder in folders for document in documents(folder)] == documents(tmp_path / "whole")
    assert counts["valid"] == whole["valid"]
    for name in ("documents", "sentences", "pieces", "unknown", "nothing_kept"):
        assert getattr(counts["train"], name) == getattr(whole["train"], name)
    dropped = [count["train"].repeated_blanks + count["train"].outer_blanks for count in (counts, whole)]
    assert dropped[0] == dropped[1] + shards - 1  # no boundary is written between shards
    assert counts["train"].shard_tokens == [sum(len(line.split()) for line in sentences(folder)) for folder in folders]
    files = [{k: v for k, v in contents(folder).items() if not k.startswith("train")} for folder in folders]
    assert files == [{k: v for k, v in contents(tmp_path / "whole").items() if not k.startswith("train")}] * shards


def test_shards_are_about_equally_large(tmp_path, bert):
    text = write(tmp_path / "text", "\n\n".join(["the cat " * (number % 7 + 1) for number in range(300)]))
    counts = binarize({"train": [text]}, bert, tmp_path / "out", shards=4)["train"]
    longest = 2 * 7 + 1
    assert all(abs(tokens - counts.tokens / 4) <= 2 * longest for tokens in counts.shard_tokens), counts.shard_tokens


def test_invalid_shards_are_refused(tmp_path, bert):
    text = write(tmp_path / "text", "the\n\ncat\nthe\n")
    with pytest.raises(InputError, match=r"text: 2 documents are too few for 3 shards; reduce --shards"):
        binarize({"train": [text]}, bert, tmp_path / "out", shards=3)
    with pytest.raises(
        InputError, match="contains ':', which separates shards in fairseq; give a --destdir without it"
    ):
        binarize({"train": [text]}, bert, tmp_path / "a:b", shards=2)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe: not a regular file, but --shards needs the file size"):
        binarize({"train": [tmp_path / "pipe"]}, bert, tmp_path / "out", shards=2)
    assert not (tmp_path / "out").exists()


def test_two_runs_cannot_write_to_one_folder(tmp_path, bert):
    text = [write(tmp_path / "text", "the cat\n")]
    (tmp_path / "out").mkdir()
    fork = multiprocessing.get_context("fork")
    locked, done = fork.Event(), fork.Event()

    def hold() -> None:
        with write_folder(tmp_path / "out", "--destdir"):
            locked.set()
            done.wait(20)

    other = fork.Process(target=hold)
    other.start()
    assert locked.wait(20)
    with pytest.raises(InputError, match="out: another run is writing there; wait for it, or give another --destdir"):
        binarize({"train": text}, bert, tmp_path / "out")
    done.set()
    other.join()
    binarize({"train": text}, bert, tmp_path / "out")
    assert sentences(tmp_path / "out") == ["the cat </s>"]


@with_real_data
def test_real_sentences(tmp_path):
    tokenizer = load_tokenizer(REAL_DATA / "vocab" / "bert-uncased.vocab.txt")
    text = (REAL_DATA / "corpus" / "wiki.train.txt").read_text(encoding="utf-8").replace(". ", ".\n")
    train = write(tmp_path / "train.txt", "\n".join(text.split("\n")[:10_000]))
    splits = {"train": [train], "valid": [write(tmp_path / "valid.txt", "the cat")]}
    one = binarize(splits, tokenizer, tmp_path / "one", workers=1)
    assert binarize(splits, tokenizer, tmp_path / "two", workers=2) == one
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    binarize(splits, tokenizer, tmp_path / "text", text_only=True)
    fairseq_preprocess(tmp_path / "text", tmp_path / "theirs")
    for name in ("train.bin", "train.idx", "dict.txt"):
        assert contents(tmp_path / "one")[name] == contents(tmp_path / "theirs")[name]


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_an_index_completed_in_parts_is_identical_to_fairseq_preprocess(tmp_path, bert, rows, monkeypatch):
    splits = {"train": [write(tmp_path / "a", MESSY)], "valid": [write(tmp_path / "b", "\n".join(TEXT))]}
    binarize(splits, bert, tmp_path / "text", text_only=True)
    fairseq_preprocess(tmp_path / "text", tmp_path / "theirs")
    monkeypatch.setattr("tn_fairseq.preprocessing.writers.INDEX_ROWS", rows)
    binarize(splits, bert, tmp_path / "ours")
    for name in ("train.idx", "valid.idx"):
        assert contents(tmp_path / "ours")[name] == contents(tmp_path / "theirs")[name]
    assert len(sentences(tmp_path / "ours")) == 7


# Documents


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 18])
def test_a_file_that_starts_with_dropped_lines_starts_a_document(tmp_path, bert, chunk_bytes, monkeypatch):
    monkeypatch.setattr(read_chunks, "__defaults__", (chunk_bytes,))
    files = [write(tmp_path / "a", "the cat\n"), write(tmp_path / "b", "\x07\n\u200b\nthe mat\n")]
    binarize({"train": files}, bert, tmp_path / "out")
    assert sentences(tmp_path / "out") == ["the cat </s>", "</s>", "the mat </s>"]


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 18])
def test_a_document_longer_than_a_shard_leaves_one_document_for_each_shard_after_it(
    tmp_path, bert, chunk_bytes, monkeypatch
):
    monkeypatch.setattr(read_chunks, "__defaults__", (chunk_bytes,))
    text = write(tmp_path / "text", "the cat " * 30 + "\n\nthe mat\n\ncat\n")
    binarize({"train": [text]}, bert, tmp_path / "out", shards=3)
    found = [documents(tmp_path / "out" / f"shard{number}") for number in range(3)]
    assert found == [[["the cat " * 30 + "</s>"]], [["the mat </s>"]], [["cat </s>"]]]


# Durability: what is synced to disk, and when


@pytest.mark.parametrize("shards", [None, 2])
def test_new_files_are_synced_before_old_ones_are_deleted_and_dict_txt_is_last(tmp_path, bert, shards, monkeypatch):
    text, out = [write(tmp_path / "text", "the cat\n\nthe mat\n")], tmp_path / "out"
    folders = [out] if shards is None else [out / f"shard{number}" for number in range(shards)]
    binarize({"train": text}, bert, out, shards=shards)
    old = contents(out)
    fsync, replace = os.fsync, os.replace
    synced_before_deletion: set[int] = set()  # inode numbers, which files keep when they are moved
    calls: list[tuple[str, int, Path]] = []

    def record_fsync(descriptor):
        fsync(descriptor)
        inode = os.fstat(descriptor).st_ino
        calls.append(("fsync", inode, Path()))
        if old.items() <= contents(out).items():
            synced_before_deletion.add(inode)

    def record_replace(source, target):
        calls.append(("replace", os.stat(source).st_ino, Path(target)))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    binarize({"train": text}, bert, out, shards=shards)
    assert {path.stat().st_ino for folder in folders for path in folder.rglob("*")} <= synced_before_deletion
    arrivals = [(number, path) for number, (kind, _, path) in enumerate(calls) if kind == "replace"]
    assert calls[-1][2] == folders[0] / "dict.txt"  # without it fairseq reads no shard
    for folder in folders:
        moved = {path.name: number for number, path in arrivals if path.parent == folder}
        assert set(moved) == {"train.bin", "train.idx", "tokenizer", "dict.txt"}
        complete = moved.pop("dict.txt")
        synced = [number for number, (_, inode, _) in enumerate(calls) if inode == folder.stat().st_ino]
        assert any(max(moved.values()) < number < complete for number in synced)


def refuse_to_sync(monkeypatch, kind, code: int) -> None:
    """Make fsync fail for files (stat.S_ISREG) or for folders (stat.S_ISDIR)."""

    def fsync(descriptor):
        if kind(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_failed_sync_does_not_change_earlier_output(tmp_path, bert, monkeypatch):
    binarize({"train": [write(tmp_path / "a", "the cat\n")]}, bert, tmp_path / "out")
    before = contents(tmp_path / "out")
    refuse_to_sync(monkeypatch, stat.S_ISREG, errno.ENOSPC)
    with pytest.raises(InputError, match="No space left on device; make room there, or give another --destdir"):
        binarize({"train": [write(tmp_path / "b", "the mat\n")]}, bert, tmp_path / "out")
    assert contents(tmp_path / "out") == before


def test_a_file_system_that_cannot_sync_folders_works(tmp_path, bert, monkeypatch):
    refuse_to_sync(monkeypatch, stat.S_ISDIR, errno.EINVAL)
    binarize({"train": [write(tmp_path / "a", "the cat\n")]}, bert, tmp_path / "out")
    assert sentences(tmp_path / "out") == ["the cat </s>"]
