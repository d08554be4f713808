"""The train-tokenizer command: its files, which are always the same, and its errors."""

import random
import subprocess
import sys

import pytest

from tn_fairseq.preprocessing.commands.train_tokenizer import main
from tn_fairseq.tokenizers import load_tokenizer

COMMAND = ["-m", "tn_fairseq.preprocessing", "train-tokenizer"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Made-up words with many equal frequencies, the hardest case for reproducible files."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abdeiklmnoprstuÉß", k=rng.randint(2, 6))) for _ in range(300)]
    lines = [" ".join(rng.choices(words, k=8)).capitalize() + ", 汉字 [MASK]." for _ in range(400)]
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def flags(corpus, output, kind="wordpiece", size=200):
    return ["--input", str(corpus), "--type", kind, "--vocab-size", str(size), "--output", str(output)]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def pieces(folder):
    return (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]


def test_wordpiece_files(corpus, tmp_path, capsys):
    main(flags(corpus, tmp_path / "out"))
    assert sorted(contents(tmp_path / "out")) == ["tokenizer.json", "tokenizer_config.json", "vocab.txt"]
    assert pieces(tmp_path / "out")[:5] == SPECIAL
    assert (len(pieces(tmp_path / "out")), len(set(pieces(tmp_path / "out")))) == (200, 200)
    out = capsys.readouterr().out
    assert "WordPiece of tokenizer.json, 200 pieces, uncased" in out
    assert f"wrote vocab.txt, tokenizer.json, tokenizer_config.json to {tmp_path / 'out'}" in out
    assert len(load_tokenizer(tmp_path / "out").dictionary()) + 1 == 200


def test_wordpiece_has_no_unknown_pieces_and_learns_no_literal_special_token(corpus, tmp_path):
    main(flags(corpus, tmp_path))
    tokenizer = load_tokenizer(tmp_path)
    ids, _ = tokenizer.encode_chunk(corpus.read_text(encoding="utf-8").split("\n"))
    table = tokenizer.lookup_table(tokenizer.dictionary())
    assert (table[ids] != tokenizer.dictionary().unk()).all()
    assert not any(piece.startswith(("##[", "##]", "##汉")) for piece in pieces(tmp_path))


def test_casing(corpus, tmp_path):
    main(flags(corpus, tmp_path / "uncased"))
    main([*flags(corpus, tmp_path / "cased"), "--cased"])
    assert not any("É" in piece or piece[:1].isupper() for piece in pieces(tmp_path / "uncased")[5:])
    assert any("É" in piece for piece in pieces(tmp_path / "cased"))
    assert "uncased" in load_tokenizer(tmp_path / "uncased" / "vocab.txt").description
    assert " cased" in load_tokenizer(tmp_path / "cased" / "vocab.txt").description


@pytest.mark.parametrize("cased", [False, True])
def test_transformers_reads_wordpiece(corpus, tmp_path, cased):
    transformers = pytest.importorskip("transformers")
    main(flags(corpus, tmp_path) + ["--cased"] * cased)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    assert len(theirs) == 200
    assert theirs.mask_token == "[MASK]"
    lines = [*corpus.read_text(encoding="utf-8").replace("[MASK]", "").split("\n"), "Ünknown ☃ wörds"]
    for ours in (load_tokenizer(tmp_path), load_tokenizer(tmp_path / "vocab.txt")):
        for line in lines:
            assert ours.encode_chunk([line])[0].tolist() == theirs(line, add_special_tokens=False)["input_ids"]


def test_sentencepiece_files(corpus, tmp_path, capsys):
    main(flags(corpus, tmp_path, "sentencepiece", 100))
    assert sorted(contents(tmp_path)) == ["sentencepiece.model", "sentencepiece.vocab"]
    listed = [line.split("\t")[0] for line in (tmp_path / "sentencepiece.vocab").read_text().split("\n")[:-1]]
    assert listed[:5] == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    dictionary = load_tokenizer(tmp_path).dictionary()
    assert dictionary.symbols[4:] == listed[5:]
    assert len(dictionary) + 1 == 100
    assert "SentencePiece of sentencepiece.model, 100 pieces" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece"])
def test_the_same_input_gives_the_same_files(corpus, tmp_path, kind):
    main(flags(corpus, tmp_path / "one", kind, 100))
    # Another process has different seeds for its hash tables.
    subprocess.run([sys.executable, *COMMAND, *flags(corpus, tmp_path / "two", kind, 100)], check=True)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_another_kind_in_the_same_folder_replaces_the_first(corpus, tmp_path):
    main(flags(corpus, tmp_path))
    main(flags(corpus, tmp_path, "sentencepiece", 100))
    assert "SentencePiece" in load_tokenizer(tmp_path).description
    main(flags(corpus, tmp_path))
    assert "WordPiece" in load_tokenizer(tmp_path).description


@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece"])
@pytest.mark.parametrize(
    ("content", "size", "message"),
    [
        (None, 200, "No such file"),
        (b"", 200, "no line with text"),
        (b"\n \n", 200, "no line with text"),
        ("汉字\n".encode() + b"\xff", 200, "not UTF-8 at byte 7"),
        (b"the cat sat on the mat\n" * 9, 6, "--vocab-size 6 is too small for this corpus; its characters need "),
        (b"the cat sat on the mat\n" * 9, 9999, "--vocab-size 9999 is too large for this corpus; it has "),
        (b"the cat", -1, "--vocab-size -1"),
    ],
)
def test_wrong_input_gets_one_line(tmp_path, kind, content, size, message):
    path = tmp_path / "corpus.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SystemExit) as caught:
        main(flags(path, tmp_path / "out", kind, size))
    assert message in caught.value.code
    assert caught.value.code.startswith("error: ")
    assert "\n" not in caught.value.code
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece"])
def test_the_sizes_in_the_errors_are_the_limits(corpus, tmp_path, kind):
    def limit(size):
        with pytest.raises(SystemExit) as caught:
            main(flags(corpus, tmp_path, kind, size))
        return int("".join(filter(str.isdigit, caught.value.code.split(";")[1])))

    least, most = limit(6), limit(90_000)
    for size in (least, most):
        main(flags(corpus, tmp_path, kind, size))
        assert len(load_tokenizer(tmp_path).dictionary()) + 1 == size


def test_output_that_cannot_be_written(corpus, tmp_path):
    with pytest.raises(SystemExit, match="--output"):
        main(flags(corpus, corpus / "out"))
    assert list(tmp_path.iterdir()) == []


def test_cased_is_only_for_wordpiece(corpus, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([*flags(corpus, tmp_path, "sentencepiece", 100), "--cased"])
    assert "--cased is only for wordpiece" in capsys.readouterr().err
