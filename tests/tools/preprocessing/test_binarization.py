"""Binarized text: byte for byte what fairseq-preprocess writes, for every tokenizer and number of workers."""

import errno
import os
import stat
from pathlib import Path

import pytest
from fairseq import options
from fairseq.data import TokenBlockDataset, indexed_dataset
from fairseq_cli import preprocess
from files import contents, refused, write
from preprocessed import released_dictionary, sentences
from tokenizer_folders import KINDS, SPECIAL, TEXT, bert_folder

from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tokenizers.wordpiece import wordpiece_tokenizer
from tn_fairseq.tools.preprocessing import text as text_module
from tn_fairseq.tools.preprocessing.binarization import binarize

# Three documents with everything that is dropped: outer and repeated blank lines, lines without pieces, white space.
MESSY = (
    "\ufeff\n\n" + TEXT[0] + "\r\n" + TEXT[1] + "\n\u200b\n" + TEXT[2] + "\n"
    "\n \t\r\n\x07\n\n" + TEXT[3] + "\n"
    "\n[MASK] the </s> <mask> <unk> [SEP] 😀 Ж\n\n\n"
)


@pytest.fixture(params=KINDS)
def tokenizer(request, tmp_path):
    return load_tokenizer(request.param(tmp_path / "tokenizer"))


@pytest.fixture
def chunk_bytes(request, monkeypatch):
    monkeypatch.setattr(text_module, "CHUNK_BYTES", request.param)


def chunks_of(*sizes: int):
    return pytest.mark.parametrize("chunk_bytes", sizes, indirect=True)


@pytest.fixture
def splits(tmp_path):
    return {"train": [write(tmp_path / "a", MESSY)], "valid": [write(tmp_path / "b", "\n".join(TEXT))]}


def fairseq_preprocess(splits: dict, tokenizer, folder: Path) -> dict[str, bytes]:
    """Binarize the output of --text-only as a user would; the output without the log."""
    text = folder / "text"
    binarize(splits, tokenizer, text, text_only=True)
    flags = ["--only-source", "--srcdict", text / "dict.txt", "--destdir", folder / "theirs"]
    for split in ("train", "valid"):
        flags += [f"--{split}pref", text / f"{split}.txt"]
    preprocess.main(options.get_preprocessing_parser().parse_args(list(map(str, flags))))
    return {name: content for name, content in contents(folder / "theirs").items() if name != "preprocess.log"}


@pytest.mark.parametrize("rows", [3, 1 << 20])
def test_output_is_identical_to_fairseq_preprocess(tmp_path, tokenizer, splits, rows, monkeypatch):
    monkeypatch.setattr("tn_fairseq.tools.preprocessing.writers.INDEX_ROWS", rows)  # the index is completed in parts
    binarize(splits, tokenizer, tmp_path / "ours")
    expected = fairseq_preprocess(splits, tokenizer, tmp_path)
    assert {"dict.txt", "train.bin", "train.idx", "valid.bin", "valid.idx"} == expected.keys()
    expected |= {f"tokenizer/{name}": content for name, content in tokenizer.files.items()}
    assert contents(tmp_path / "ours") == expected
    binarize(splits, load_tokenizer(tmp_path / "ours" / "tokenizer"), tmp_path / "ours")  # again, with the copy
    assert contents(tmp_path / "ours") == expected


def test_pieces_with_white_space_as_text(tmp_path, splits):
    backend = wordpiece_tokenizer([*SPECIAL, "the", "cat", "sat", "on", ".", "\u2028", "x y"], lowercase=True)
    backend.save(str(tmp_path / "tokenizer.json"))
    theirs = fairseq_preprocess(splits, load_tokenizer(tmp_path), tmp_path)  # no text has them
    binarize(splits, load_tokenizer(tmp_path), tmp_path / "ours")
    assert contents(tmp_path / "ours").items() >= theirs.items()

    backend.add_tokens(["cat sat"])
    backend.save(str(tmp_path / "tokenizer.json"))
    message = refused(binarize, splits, load_tokenizer(tmp_path), tmp_path / "text", text_only=True)
    assert message.startswith("--text-only: the text has the piece 'cat sat'")
    binarize(splits, load_tokenizer(tmp_path), tmp_path / "ours")
    assert sentences(tmp_path / "ours")[0] == "the cat sat on the <unk> . </s>"
    assert len(indexed_dataset.make_dataset(str(tmp_path / "ours" / "train"), "mmap")[0]) == 7


# with four special symbols, 65,500 is the limit
@pytest.mark.parametrize(("size", "width"), [(65_495, 2), (65_496, 4)])
def test_numbers_have_the_width_that_fairseq_chooses(tmp_path, size, width):
    tokenizer = load_tokenizer(bert_folder(tmp_path / "vocabulary", ["the", *map(str, range(size - 1))]))
    text = [write(tmp_path / "a", "the\n")]
    binarize({"train": text, "valid": text}, tokenizer, tmp_path / "ours")
    ours = contents(tmp_path / "ours")
    assert len(ours["train.bin"]) == 2 * width
    assert ours["train.idx"] == fairseq_preprocess({"train": text, "valid": text}, tokenizer, tmp_path)["train.idx"]


@pytest.mark.parametrize("text_only", [False, True])
def test_output_does_not_depend_on_workers_or_chunks(tmp_path, tokenizer, text_only, monkeypatch):
    splits = {"train": [write(tmp_path / "a", MESSY * 20), write(tmp_path / "b", MESSY)], "valid": [tmp_path / "b"]}
    counts = binarize(splits, tokenizer, tmp_path / "whole", text_only=text_only)
    for chunk_bytes, workers in ((1, 1), (60, 1), (60, 2), (200, 1)):
        monkeypatch.setattr(text_module, "CHUNK_BYTES", chunk_bytes)
        assert binarize(splits, tokenizer, tmp_path / "parts", workers, text_only) == counts
        assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_documents_and_dropped_lines(tmp_path, bert, splits):
    counts = binarize(splits, bert, tmp_path / "out")["train"]
    found = sentences(tmp_path / "out")
    assert [line == "</s>" for line in found] == [False, False, False, True, False, True, False]
    assert found[-1] == "[ mask ] the < / s > < mask > < <unk> > [ <unk> ] <unk> <unk> </s>"
    assert (counts.documents, counts.sentences) == (3, 5)
    assert counts.tokens == sum(len(line.split()) for line in found)
    assert counts.unknown == sum(line.split().count("<unk>") for line in found)
    assert counts.pieces == counts.tokens - sum(line.endswith("</s>") for line in found)
    assert (counts.nothing_kept, counts.repeated_blanks, counts.outer_blanks) == (2, 2, 4)
    assert counts.sentences + counts.documents - 1 + 2 + 2 + 4 == MESSY.count("\n")  # every line is accounted for
    dataset = indexed_dataset.make_dataset(str(tmp_path / "out" / "train"), "mmap")
    assert len(TokenBlockDataset(dataset, dataset.sizes, 512, pad=1, eos=2, break_mode="complete_doc")) == 3


TWO = ["the cat </s>", "</s>", "the mat </s>"]


@chunks_of(1, 1 << 18)
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (("the cat", "the mat\n"), TWO),
        (("the cat\n\n\n", "\n\nthe mat\n"), TWO),
        (("the cat\n\x07\n", "\x07\n\u200b\nthe mat\n"), TWO),  # lines that are dropped start the document
        (("", "the cat", "", "the mat"), TWO),
        (("the \x0b \x0c \x1c \u2028 \x85 cat", "the \r mat"), TWO),  # only line feeds end lines
        (("the cat\r\nthe mat",), TWO[::2]),
    ],
)
def test_one_boundary_between_files(tmp_path, bert, files, expected, chunk_bytes):
    paths = [write(tmp_path / str(number), text) for number, text in enumerate(files)]
    counts = binarize({"train": paths}, bert, tmp_path / "out")["train"]
    assert sentences(tmp_path / "out") == expected
    assert counts.documents == expected.count("</s>") + 1


def test_a_released_dictionary_keeps_its_order(tmp_path, bert, splits):
    released = released_dictionary(tmp_path / "released.txt", bert)
    binarize(splits, bert, tmp_path / "plain")
    binarize(splits, bert, tmp_path / "out", dict_path=released)
    assert (tmp_path / "out" / "dict.txt").read_bytes() == released.read_bytes()
    assert sentences(tmp_path / "out") == sentences(tmp_path / "plain")
    assert (tmp_path / "out" / "train.bin").read_bytes() != (tmp_path / "plain" / "train.bin").read_bytes()
    released.write_bytes(released.read_bytes() + b"<mask> 1\n")  # the tasks append it
    binarize(splits, bert, tmp_path / "masked", dict_path=released)
    assert contents(tmp_path / "masked") == contents(tmp_path / "out")


@pytest.mark.parametrize(("bad", "workers"), [(b"\xff", 1), (b"\xed\xa0\x80", 1), ("é".encode()[:1], 2)])
@chunks_of(100)
def test_invalid_utf8_is_reported_with_file_and_offset(tmp_path, bert, bad, workers, chunk_bytes):
    good = "汉 the cat\n".encode() * 50
    files = [write(tmp_path / "good", good), write(tmp_path / "bad", good + bad + b"\n" + good)]
    message = refused(binarize, {"train": files}, bert, tmp_path / "out", workers)
    assert f"bad: not UTF-8 at byte {len(good)};" in message
    assert not (tmp_path / "out").exists()


def test_splits_of_another_dictionary_are_deleted(tmp_path, bert):
    text = [write(tmp_path / "a", "the cat")]
    binarize({"train": text, "test": text}, bert, tmp_path / "out")
    binarize({"train": text}, bert, tmp_path / "out")
    assert (tmp_path / "out" / "test.bin").exists()
    other = load_tokenizer(bert_folder(tmp_path / "other", ["cat"]))
    binarize({"train": text}, other, tmp_path / "out")
    assert not (tmp_path / "out" / "test.bin").exists()
    assert sentences(tmp_path / "out") == ["<unk> cat </s>"]


# Shards


def documents(folder: Path) -> list[str]:
    """The sentences of each document that fairseq reads, as one text."""
    return "\n".join(sentences(folder)).split("\n</s>\n")


def without_train(folder: Path) -> dict[str, bytes]:
    return {name: content for name, content in contents(folder).items() if not name.startswith("train")}


@chunks_of(1, 50)
@pytest.mark.parametrize("shards", [1, 2, 5])
def test_shards_contain_the_documents_in_order(tmp_path, bert, shards, chunk_bytes):
    splits = {"train": [write(tmp_path / "a", MESSY * 3), write(tmp_path / "b", MESSY)], "valid": [tmp_path / "b"]}
    whole = binarize(splits, bert, tmp_path / "whole")
    counts = binarize(splits, bert, tmp_path / "out", shards=shards)
    folders = [tmp_path / "out" / f"shard{number}" for number in range(shards)]
    assert sorted((tmp_path / "out").iterdir()) == folders
    assert [document for folder in folders for document in documents(folder)] == documents(tmp_path / "whole")
    assert counts["valid"] == whole["valid"]
    for name in ("documents", "sentences", "pieces", "unknown", "nothing_kept"):
        assert getattr(counts["train"], name) == getattr(whole["train"], name)
    dropped = [count["train"].repeated_blanks + count["train"].outer_blanks for count in (counts, whole)]
    assert dropped[0] == dropped[1] + shards - 1  # no boundary is written between shards
    assert counts["train"].shard_tokens == [sum(len(line.split()) for line in sentences(folder)) for folder in folders]
    assert [without_train(folder) for folder in folders] == [without_train(tmp_path / "whole")] * shards


def test_what_is_refused(tmp_path, bert):
    good, invalid = write(tmp_path / "good", "the\n\ncat\nthe\n"), write(tmp_path / "invalid", b"\xff")
    blank, pipe = write(tmp_path / "blank", "\n \n\x07\n\u200b\n"), tmp_path / "pipe"
    os.mkfifo(pipe)
    for train, valid, out, shards, message in (
        (good, blank, "out", None, "blank: no line with text for valid"),
        (invalid, tmp_path / "no.txt", "out", None, "no.txt"),  # before any work
        (good, good, "out", 3, "good: 2 documents are too few for 3 shards"),
        (good, good, "a:b", 2, "a:b"),
        (pipe, good, "out", 2, "pipe: not a regular file"),
    ):
        splits = {"train": [train], "valid": [valid]}
        assert message in refused(binarize, splits, bert, tmp_path / out, shards=shards)
        assert not (tmp_path / out).exists()


@chunks_of(1, 1 << 18)
def test_shards_are_about_equally_large_and_each_has_a_document(tmp_path, bert, chunk_bytes):
    text = write(tmp_path / "text", "\n\n".join(["the cat " * (number % 7 + 1) for number in range(300)]))
    counts = binarize({"train": [text]}, bert, tmp_path / "out", shards=4)["train"]
    assert all(abs(tokens - counts.tokens / 4) <= 2 * (2 * 7 + 1) for tokens in counts.shard_tokens)
    write(text, "the cat " * 30 + "\n\nthe mat\n\ncat\n")
    binarize({"train": [text]}, bert, tmp_path / "out", shards=3)
    found = [documents(tmp_path / "out" / f"shard{number}") for number in range(3)]
    assert found == [["the cat " * 30 + "</s>"], ["the mat </s>"], ["cat </s>"]]


# Durability: what is synced to disk, and when


@pytest.mark.parametrize("shards", [None, 2])
def test_new_files_are_synced_before_old_ones_are_deleted_and_dict_txt_is_last(tmp_path, bert, shards, monkeypatch):
    text, out, fsync = [write(tmp_path / "text", "the cat\n\nthe mat\n")], tmp_path / "out", os.fsync
    folders = [out] if shards is None else [out / f"shard{number}" for number in range(shards)]
    binarize({"train": text}, bert, out, shards=shards)
    old = contents(out)
    synced_before_deletion: set[int] = set()  # inode numbers, which files keep when they are moved
    synced_without_dict_txt = set()

    def record(descriptor):
        fsync(descriptor)
        inode = os.fstat(descriptor).st_ino
        if old.items() <= contents(out).items():
            synced_before_deletion.add(inode)
        for folder in folders:
            if folder.exists() and folder.stat().st_ino == inode:
                names = {path.name for path in folder.iterdir()}
                if names >= {"train.bin", "train.idx", "tokenizer"} and not (folders[0] / "dict.txt").exists():
                    synced_without_dict_txt.add(folder)  # fairseq reads no shard without the first dict.txt

    monkeypatch.setattr(os, "fsync", record)
    binarize({"train": text}, bert, out, shards=shards)
    assert {path.stat().st_ino for folder in folders for path in folder.rglob("*")} <= synced_before_deletion
    assert synced_without_dict_txt == set(folders)


def test_only_files_must_be_synced_and_a_failure_does_not_change_earlier_output(tmp_path, bert, monkeypatch):
    def refuse(kind, code) -> None:
        def fsync(descriptor):
            if kind(os.fstat(descriptor).st_mode):
                raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", fsync)

    old, new = ({"train": [write(tmp_path / word, f"the {word}\n")]} for word in ("cat", "mat"))
    binarize(old, bert, tmp_path / "out")
    before = contents(tmp_path / "out")
    refuse(stat.S_ISREG, errno.ENOSPC)
    assert "No space left on device" in refused(binarize, new, bert, tmp_path / "out")
    assert contents(tmp_path / "out") == before
    refuse(stat.S_ISDIR, errno.EINVAL)  # not every file system supports this
    binarize(new, bert, tmp_path / "out")
    assert sentences(tmp_path / "out") == ["the mat </s>"]
