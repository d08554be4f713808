"""The train-tokenizer command: its files, which are always the same, and its errors."""

import random
import subprocess
import sys

import pytest
from preprocessed import contents, refused, write
from tokenizer_folders import SPECIAL

from tn_fairseq.preprocessing.commands import train_tokenizer
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
    train_tokenizer.main([*flags(*args), *more])
    return args[1]


def pieces(folder):
    return (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]


def test_wordpiece_files(corpus, tmp_path, capsys):
    out = train(corpus, tmp_path / "out")
    assert sorted(contents(out)) == ["tokenizer.json", "tokenizer_config.json", "vocab.txt"]
    assert pieces(out)[:5] == SPECIAL
    assert (len(pieces(out)), len(set(pieces(out)))) == (200, 200)
    printed = capsys.readouterr().out
    assert "WordPiece of tokenizer.json, 200 pieces, uncased" in printed
    assert f"wrote vocab.txt, tokenizer.json, tokenizer_config.json to {out}" in printed
    tokenizer = load_tokenizer(out)
    dictionary = tokenizer.dictionary()
    assert len(dictionary) + 1 == 200
    # no unknown pieces, and no literal special token is learned
    ids, _ = tokenizer.encode_chunk(corpus.read_text(encoding="utf-8").split("\n"))
    assert (tokenizer.lookup_table(dictionary)[ids] != dictionary.unk()).all()
    assert not any(piece.startswith(("##[", "##]", "##汉")) for piece in pieces(out))


def test_casing(corpus, tmp_path):
    uncased = train(corpus, tmp_path / "uncased")
    cased = train(corpus, tmp_path / "cased", more=["--cased"])
    assert not any("É" in piece or piece[:1].isupper() for piece in pieces(uncased)[5:])
    assert any("É" in piece for piece in pieces(cased))
    assert "uncased" in load_tokenizer(uncased / "vocab.txt").description
    assert " cased" in load_tokenizer(cased / "vocab.txt").description


@pytest.mark.parametrize("cased", [False, True])
def test_transformers_reads_wordpiece(corpus, tmp_path, cased):
    transformers = pytest.importorskip("transformers")
    train(corpus, tmp_path, more=["--cased"] * cased)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    assert len(theirs) == 200
    assert theirs.mask_token == "[MASK]"
    lines = [*corpus.read_text(encoding="utf-8").replace("[MASK]", "").split("\n"), "Ünknown ☃ wörds"]
    for ours in (load_tokenizer(tmp_path), load_tokenizer(tmp_path / "vocab.txt")):
        for line in lines:
            assert ours.encode_chunk([line])[0].tolist() == theirs(line, add_special_tokens=False)["input_ids"]


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
    program = f"from {train_tokenizer.__name__} import main\nfor flags in {again!r}: main(flags)"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_another_kind_in_the_same_folder_replaces_the_first(corpus, tmp_path):
    for kind, name in (("wordpiece", "WordPiece"), ("sentencepiece", "SentencePiece"), ("wordpiece", "WordPiece")):
        assert name in load_tokenizer(train(corpus, tmp_path, kind, 100)).description


@every_kind
@pytest.mark.parametrize(
    ("content", "size", "message"),
    [
        (None, 200, "No such file"),
        (b"\n \n", 200, "no line with text"),
        ("汉字\n".encode() + b"\xff", 200, "not UTF-8 at byte 7"),
        (b"the cat", -1, "--vocab-size -1"),
    ],
)
def test_wrong_input_gets_one_line(tmp_path, kind, content, size, message):
    path = tmp_path / "corpus.txt"
    if content is not None:
        write(path, content)
    assert message in refused(train, path, tmp_path / "out", kind, size)
    assert not (tmp_path / "out").exists()


@every_kind
def test_the_sizes_in_the_errors_are_the_limits(corpus, tmp_path, kind):
    for size, problem in ((6, "is too small for this corpus; its characters need "), (90_000, "is too large")):
        message = refused(train, corpus, tmp_path, kind, size)
        assert f"--vocab-size {size} {problem}" in message
        limit = int("".join(filter(str.isdigit, message.split(";")[1])))
        assert len(load_tokenizer(train(corpus, tmp_path, kind, limit)).dictionary()) + 1 == limit


def test_output_that_cannot_be_written(corpus, tmp_path):
    assert "--output" in refused(train, corpus, corpus / "out")


def test_the_tokenizer_of_a_model_is_not_replaced(corpus, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert "holds a model, which needs its own tokenizer; give another folder" in refused(train, corpus, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path != corpus] == ["config.json"]
    (tmp_path / "config.json").rename(tmp_path / "old.model")
    assert "holds old.model, another tokenizer; give another" in refused(train, corpus, tmp_path, "sentencepiece", 100)
    assert [path.name for path in tmp_path.iterdir() if path != corpus] == ["old.model"]


def test_cased_is_only_for_wordpiece(corpus, tmp_path, capsys):
    with pytest.raises(SystemExit):
        train(corpus, tmp_path, "sentencepiece", 100, more=["--cased"])
    assert "--cased is only for wordpiece" in capsys.readouterr().err
