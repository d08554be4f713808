"""Loading a tokenizer: every kind, copied and pickled, and invalid files."""

import pickle

import pytest
from files import refused, write
from tokenizer_folders import TEXT, bert_folder, every_kind

from tn_fairseq.tokenizers import load_tokenizer


@every_kind
def test_lines_copies_and_pickles(tmp_path, make):
    tokenizer = load_tokenizer(make(tmp_path / "tokenizer"))
    lines = [*TEXT, "the [MASK] </s> <mask>"]
    ids, lengths = tokenizer.encode_chunk(lines)
    alone = [tokenizer.encode_chunk([line])[0].tolist() for line in lines]
    assert lengths.tolist() == list(map(len, alone)) and ids.tolist() == sum(alone, [])
    assert [len(array) for array in tokenizer.encode_chunk([])] == [0, 0]
    for name, content in tokenizer.files.items():
        write(tmp_path / "copy" / name, content)
    for again in (load_tokenizer(tmp_path / "copy"), pickle.loads(pickle.dumps(tokenizer))):  # as processes get it
        for name in ("symbols", "pieces", "special_ids", "files"):
            assert getattr(again, name) == getattr(tokenizer, name)
        assert again.encode_chunk(lines)[0].tolist() == ids.tolist()


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("no", None, "no: no such file"),
        ("no.txt", None, "no.txt: No such file"),
        ("", None, "no tokenizer.json, vocab.txt, .model or encoder.json"),
        ("tokenizer.xml", "", "unknown kind"),
        ("vocab.txt", b"[PAD]\n\xff\n", "vocab.txt, line 2: not UTF-8 (byte 6)"),
        ("a.model", "hello\n", "not a SentencePiece model"),
        ("tokenizer.json", '{"model":\n', "line 2: not valid JSON"),
        ("tokenizer.json", {"model": {}}, "not a tokenizer.json"),
    ],
)
def test_what_is_refused(tmp_path, path, content, message):
    if content is not None:
        write(tmp_path / path, content)
    assert message in refused(load_tokenizer, tmp_path / path)


def test_folders_that_are_refused(tmp_path):
    bert_folder(tmp_path)
    write(tmp_path / "tokenizer_config.json", "{")
    assert "tokenizer_config.json, line 1" in refused(load_tokenizer, tmp_path)
    for name in "ab":
        write(tmp_path / f"{name}.model", "")
    assert "(a.model, b.model)" in refused(load_tokenizer, tmp_path)
