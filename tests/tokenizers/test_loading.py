"""Loading a tokenizer: every kind, copied and pickled, and invalid files."""

import pickle

import pytest
from tokenizer_folders import TEXT, bert_folder, gpt2_folder, refused, sentencepiece_folder

from tn_fairseq.tokenizers import load_tokenizer


@pytest.mark.parametrize("make", [bert_folder, gpt2_folder, sentencepiece_folder])
def test_lengths_split_the_ids_into_lines(tmp_path, make):
    tokenizer = load_tokenizer(make(tmp_path / "tokenizer"))
    ids, lengths = tokenizer.encode_chunk(TEXT)
    assert lengths.tolist() == [len(tokenizer.encode_chunk([line])[0]) for line in TEXT]
    assert ids.tolist() == [index for line in TEXT for index in tokenizer.encode_chunk([line])[0].tolist()]
    assert [len(array) for array in tokenizer.encode_chunk([])] == [0, 0]


@pytest.mark.parametrize("make", [bert_folder, gpt2_folder, sentencepiece_folder])
def test_the_copied_files_load_as_the_same_tokenizer(tmp_path, make):
    tokenizer = load_tokenizer(make(tmp_path / "tokenizer"))
    copy = tmp_path / "copy"
    copy.mkdir()
    for name, content in tokenizer.files.items():
        (copy / name).write_bytes(content)
    again = load_tokenizer(copy)
    assert (again.symbols, again.pieces) == (tokenizer.symbols, tokenizer.pieces)
    assert again.special_ids == tokenizer.special_ids
    assert again.files == tokenizer.files
    assert again.encode_chunk(TEXT)[0].tolist() == tokenizer.encode_chunk(TEXT)[0].tolist()


@pytest.mark.parametrize("make", [bert_folder, gpt2_folder, sentencepiece_folder])
def test_a_pickled_tokenizer_encodes_the_same(tmp_path, make):
    tokenizer = load_tokenizer(make(tmp_path / "tokenizer"))
    lines = [*TEXT, "the [MASK] </s> <mask>"]
    copy = pickle.loads(pickle.dumps(tokenizer))  # as a process pool does without fork
    assert copy.encode_chunk(lines)[0].tolist() == tokenizer.encode_chunk(lines)[0].tolist()


def test_missing_and_unknown_tokenizers(tmp_path):
    (tmp_path / "tokenizer.xml").touch()
    (tmp_path / "vocab.txt").write_bytes(b"[PAD]\n\xff\n")
    (tmp_path / "empty.model").touch()
    (tmp_path / "text.model").write_text("hello\n")
    (tmp_path / "empty").mkdir()
    assert "no such file" in refused(tmp_path / "no")
    assert "No such file" in refused(tmp_path / "no.txt")
    assert "no tokenizer.json, vocab.txt, .model or encoder.json" in refused(tmp_path / "empty")
    assert "unknown kind" in refused(tmp_path / "tokenizer.xml")
    assert "vocab.txt, line 2: not UTF-8 (byte 6)" in refused(tmp_path / "vocab.txt")
    assert "not a SentencePiece model" in refused(tmp_path / "empty.model")
    assert "not a SentencePiece model" in refused(tmp_path / "text.model")
    (tmp_path / "vocab.txt").unlink()
    assert "several SentencePiece models (empty.model, text.model)" in refused(tmp_path)


def test_damaged_json(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model":\n')
    assert "line 2: not valid JSON" in refused(path)
    path.write_text('{"model": {}}')
    assert "not a tokenizer.json" in refused(path)
    path.write_text("[]")
    assert "a JSON list, not an object" in refused(path)
    bert_folder(tmp_path)
    path.unlink()
    (tmp_path / "tokenizer_config.json").write_text("{")
    assert "tokenizer_config.json, line 1: not valid JSON" in refused(tmp_path)
