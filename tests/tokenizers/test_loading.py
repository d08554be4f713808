"""Loading a tokenizer: every kind, copied and pickled, and invalid files."""

import pickle

import pytest
from files import refused, write
from tokenizer_folders import TEXT, bert_folder, every_kind

from tn_fairseq.tokenizers import load_tokenizer


@every_kind
def test_lengths_split_the_ids_into_lines(tmp_path, make):
    tokenizer = load_tokenizer(make(tmp_path / "tokenizer"))
    ids, lengths = tokenizer.encode_chunk(TEXT)
    assert lengths.tolist() == [len(tokenizer.encode_chunk([line])[0]) for line in TEXT]
    assert ids.tolist() == [index for line in TEXT for index in tokenizer.encode_chunk([line])[0].tolist()]
    assert [len(array) for array in tokenizer.encode_chunk([])] == [0, 0]


@every_kind
def test_a_copy_of_the_files_and_a_pickle_are_the_same_tokenizer(tmp_path, make):
    tokenizer = load_tokenizer(make(tmp_path / "tokenizer"))
    for name, content in tokenizer.files.items():
        write(tmp_path / "copy" / name, content)
    lines = [*TEXT, "the [MASK] </s> <mask>"]
    for again in (load_tokenizer(tmp_path / "copy"), pickle.loads(pickle.dumps(tokenizer))):  # as processes get it
        for name in ("symbols", "pieces", "special_ids", "files"):
            assert getattr(again, name) == getattr(tokenizer, name)
        assert again.encode_chunk(lines)[0].tolist() == tokenizer.encode_chunk(lines)[0].tolist()


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("no", None, "no: no such file"),
        ("no.txt", None, "no.txt: No such file"),
        ("", None, "no tokenizer.json, vocab.txt, .model or encoder.json"),
        ("tokenizer.xml", "", "unknown kind"),
        ("vocab.txt", b"[PAD]\n\xff\n", "vocab.txt, line 2: not UTF-8 (byte 6)"),
        ("a.model", "", "not a SentencePiece model"),
        ("a.model", "hello\n", "not a SentencePiece model"),
        ("tokenizer.json", '{"model":\n', "line 2: not valid JSON"),
        ("tokenizer.json", {"model": {}}, "not a tokenizer.json"),
        ("tokenizer.json", [], "a JSON array, not an object"),
    ],
)
def test_what_is_refused(tmp_path, path, content, message):
    if content is not None:
        write(tmp_path / path, content)
    assert message in refused(load_tokenizer, tmp_path / path)


def test_folders_that_are_refused(tmp_path):
    bert_folder(tmp_path)
    write(tmp_path / "tokenizer_config.json", "{")
    assert "tokenizer_config.json, line 1: not valid JSON" in refused(load_tokenizer, tmp_path)
    for name in "ab":
        write(tmp_path / f"{name}.model", "")
    assert "several SentencePiece models (a.model, b.model)" in refused(load_tokenizer, tmp_path)
