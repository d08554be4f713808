"""The train-tokenizer command: its files, which are always the same, and its errors."""

import random
import subprocess
import sys

import pytest
from files import contents, refused, write
from tokenizer_folders import SPECIAL
from tokenizers import Tokenizer

from tn_fairseq.commands import data_train_tokenizer
from tn_fairseq.tokenizers import load_tokenizer

KINDS = ["wordpiece", "sentencepiece"]
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Made-up words with many equal frequencies, the hardest case for reproducible files."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abdeiklmnoprstuÉß", k=rng.randint(2, 6))) for _ in range(300)]
    lines = [" ".join(rng.choices(words, k=8)).capitalize() + ", 汉字 [MASK]." for _ in range(400)]
    return write(tmp_path_factory.mktemp("corpus") / "corpus.txt", "\n".join(lines))


def flags(corpus, output, kind="wordpiece", size=200):
    return ["--input", str(corpus), "--type", kind, "--vocab-size", str(size), "--output", str(output)]


def train(*args, more=()):
    """Run the command; returns the folder."""
    data_train_tokenizer.main([*flags(*args), *more])
    return args[1]


def pieces(folder):
    return (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.parametrize("cased", [False, True])
def test_wordpiece_is_written_and_read_as_by_transformers(corpus, tmp_path, capsys, cased):
    transformers = pytest.importorskip("transformers")
    train(corpus, tmp_path, more=["--cased"] * cased)
    assert sorted(contents(tmp_path)) == ["tokenizer.json", "tokenizer_config.json", "vocab.txt"]
    assert f"wrote vocab.txt, tokenizer.json, tokenizer_config.json to {tmp_path}" in capsys.readouterr().out
    found = pieces(tmp_path)
    assert found[:5] == SPECIAL and len(found) == len(set(found)) == 200
    assert any("É" in piece for piece in found) == cased
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    assert len(theirs) == 200 and theirs.mask_token == "[MASK]"
    lines = [*corpus.read_text(encoding="utf-8").replace("[MASK]", "").split("\n"), "Ünknown ☃ wörds"]
    for ours in (load_tokenizer(tmp_path), load_tokenizer(tmp_path / "vocab.txt")):
        assert (" cased" if cased else "uncased") in ours.description
        for line in lines:
            assert ours.encode_chunk([line])[0].tolist() == theirs(line, add_special_tokens=False)["input_ids"]

    # no unknown pieces, and no literal special token is learned
    dictionary = ours.dictionary()
    ids, _ = ours.encode_chunk(corpus.read_text(encoding="utf-8").split("\n"))
    assert (ours.lookup_table(dictionary)[ids] != dictionary.unk()).all() and len(dictionary) + 1 == 200
    assert not any(piece.startswith(("##[", "##]", "##汉")) for piece in found)


def test_sentencepiece_files(corpus, tmp_path, capsys):
    train(corpus, tmp_path, "sentencepiece", 100)
    assert sorted(contents(tmp_path)) == ["sentencepiece.model", "sentencepiece.vocab"]
    listed = [line.split("\t")[0] for line in (tmp_path / "sentencepiece.vocab").read_text().split("\n")[:-1]]
    assert listed[:5] == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    dictionary = load_tokenizer(tmp_path).dictionary()
    assert dictionary.symbols[4:] == listed[5:]
    assert len(dictionary) + 1 == 100
    assert "SentencePiece of sentencepiece.model, 100 pieces" in capsys.readouterr().out


def test_the_same_input_gives_the_same_files(corpus, tmp_path):
    for kind in KINDS:
        train(corpus, tmp_path / "one" / kind, kind, 100)
    # Another process has different seeds for its hash tables.
    again = [flags(corpus, tmp_path / "two" / kind, kind, 100) for kind in KINDS]
    program = f"from {data_train_tokenizer.__name__} import main\nfor flags in {again!r}: main(flags)"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_another_kind_in_the_same_folder_replaces_the_first(corpus, tmp_path):
    for kind, name in (("wordpiece", "WordPiece"), ("sentencepiece", "SentencePiece"), ("wordpiece", "WordPiece")):
        assert name in load_tokenizer(train(corpus, tmp_path, kind, 100)).description


@every_kind
def test_the_sizes_in_the_errors_are_the_limits(corpus, tmp_path, kind):
    for size, problem in ((6, "is too small for this corpus; its characters need "), (90_000, "is too large")):
        message = refused(train, corpus, tmp_path, kind, size)
        assert f"--vocab-size {size} {problem}" in message
        limit = int("".join(filter(str.isdigit, message.split(";")[1])))
        assert len(load_tokenizer(train(corpus, tmp_path, kind, limit)).dictionary()) + 1 == limit


N = 1100  # more than the 1,000 characters that `tokenizers` keeps
CHINESE = [chr(0x4E00 + number) for number in range(N)]


@pytest.fixture(scope="module")
def chinese(tmp_path_factory):
    """The first character occurs 1,100 times and the last one once; and a, three times, of which two begin a word."""
    lines = ["".join(CHINESE[: N - number]) for number in range(N)]
    return write(tmp_path_factory.mktemp("chinese") / "corpus.txt", "\n".join(["a aa", *lines]))


@pytest.mark.parametrize(
    ("size", "more", "left"),
    [
        (1005, [], (101, 5050 + 3, CHINESE[1000], 100)),  # the 1,000 most frequent ones
        (1106, [], (1, 1, CHINESE[1099], 1)),
        (1107, [], None),  # a is two pieces
        (328, ["--character-coverage", "0.5"], (778, 777 * 778 // 2 + 3, CHINESE[323], 777)),
    ],
)
def test_what_is_left_out_is_printed(chinese, tmp_path, capsys, size, more, left):
    train(chinese, tmp_path, "wordpiece", size, more=more)
    printed = capsys.readouterr().out
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    lines = chinese.read_text(encoding="utf-8").split("\n")
    unknown = sum(e.tokens.count("[UNK]") for e in tokenizer.encode_batch(lines, add_special_tokens=False))
    assert tokenizer.get_vocab_size() == size
    if left is None:
        assert unknown == 0 and "left out" not in printed
        return
    characters, times, example, count = left
    assert abs(unknown - times) <= 1  # aa is one unknown word of two characters
    share = times / (N * (N + 1) // 2 + 3)
    plural = "s" * (characters > 1)
    assert f"left out: {characters:,} character{plural}, unknown, {share:.3%} of the text, such as " in printed
    assert f"{example!r} ({count:,} times)" in printed


@pytest.mark.parametrize(
    ("size", "more", "message"),
    [
        (1108, [], "too large for this corpus; it has 1107 pieces; reduce it"),
        (1004, [], "too small for this corpus; its characters need 1005; increase it, or give a smaller --character-"),
        (329, ["--character-coverage", "0.5"], "has 328 pieces; reduce it, or give a larger --character-coverage"),
    ],
)
def test_the_number_of_pieces_of_a_large_alphabet(chinese, tmp_path, size, more, message):
    assert message in refused(train, chinese, tmp_path, "wordpiece", size, more=more)


def test_frequent_characters_are_pieces_up_to_half_of_the_vocabulary(chinese, tmp_path):
    rng = random.Random(1)
    words = ["".join(rng.choices("bcdefghijk", k=8)) for _ in range(3000)]
    corpus = write(tmp_path / "corpus.txt", chinese.read_text(encoding="utf-8") + "\n" + " ".join(words * 2))
    for size, expected in ((2100, 1050 - 5 - 2 * 10), (6000, 1096)):  # 1,096 occur at least 5 times
        kept = set(pieces(train(corpus, tmp_path / str(size), "wordpiece", size)))
        assert len(kept) == size
        assert [character in kept for character in CHINESE] == [number < expected for number in range(N)]


def test_the_character_coverage_of_sentencepiece(tmp_path, capsys):
    corpus = write(tmp_path / "corpus.txt", ("the cat sat on the mat " * 40 + "\n") * 20 + "the 汉 e\u0301\n")
    train(corpus, tmp_path / "default", "sentencepiece", 17)
    assert "left out: 2 characters, unknown, 0.015% of the text, such as " in capsys.readouterr().out
    train(corpus, tmp_path / "all", "sentencepiece", 19, more=["--character-coverage", "1"])
    assert "left out" not in capsys.readouterr().out
    kept = load_tokenizer(tmp_path / "all").pieces
    assert {"汉", "é"} <= set(kept) and "汉" not in load_tokenizer(tmp_path / "default").pieces


def test_wrong_input(corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "vocab.txt", "")
    for text, more, named in (
        (write(tmp_path / "empty.txt", b"\n \n"), "", "no line with text"),
        (write(tmp_path / "latin.txt", "汉字\n".encode() + b"\xff"), "", "not UTF-8 at byte 7"),
        (corpus, "--vocab-size 0", "--vocab-size"),
        (corpus, "--vocab-size 99999999999", "--vocab-size"),
        (corpus, "--character-coverage 0", "--character-coverage"),
        (corpus, "--character-coverage 1.5", "--character-coverage"),
        (corpus, "--character-coverage 0.979", "--character-coverage 0.979"),
        (corpus, "--cased", "--cased"),
        (corpus, "--output vocab.txt", "--output"),
    ):
        assert named in refused(train, text, tmp_path / "out", "sentencepiece", 100, more=more.split())
        assert not (tmp_path / "out").exists()
    train(corpus, tmp_path / "out", "sentencepiece", 100, more=["--character-coverage", "0.98"])


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "sentencepiece.model", "old.model"])
def test_a_model_or_a_tokenizer_of_others_is_not_replaced(corpus, tmp_path, name):
    (tmp_path / name).write_text("{}")
    for kind in KINDS:
        error = refused(train, corpus, tmp_path, kind, 100)
        assert f"--output {tmp_path}: holds " in error and (name == "config.json" or name in error)
    assert contents(tmp_path) == {name: b"{}"}


def test_the_text_is_not_replaced(corpus, tmp_path):
    (tmp_path / "vocab.txt").write_text("a text")
    (tmp_path / "tokenizer.json").write_text("{}")
    message = refused(train, tmp_path / "vocab.txt", tmp_path, "wordpiece", 100)
    assert "would replace the text vocab.txt" in message and (tmp_path / "vocab.txt").read_text() == "a text"
