"""BERT's vocab.txt: its pieces, casing, and invalid vocabularies."""

import pytest
from preprocessed import refused
from tokenizer_folders import PIECES, REAL_DATA, SPECIAL, bert_folder, model_dictionary, symbols_of, with_real_data

from tn_fairseq.tokenizers import load_tokenizer


def test_bert_pieces(tmp_path):
    tokenizer = load_tokenizer(bert_folder(tmp_path))
    assert symbols_of(tokenizer, "The CATS, sat\ton  汉.") == ["the", "cat", "##s", "<unk>", "sat", "on", "汉", "."]
    assert symbols_of(tokenizer, "\x00\u200b\ufeff") == []


@pytest.mark.parametrize("literal", [*SPECIAL, "<s>", "<pad>", "</s>", "<unk>", "<mask>"])
def test_a_literal_special_token_is_ordinary_text(tmp_path, literal):
    word = literal.strip("[]</>")
    slash = ["/"] if "/" in literal else []
    tokenizer = load_tokenizer(bert_folder(tmp_path, PIECES + [word.lower()] * (word.lower() not in PIECES)))
    assert symbols_of(tokenizer, f"the {literal}.") == ["the", literal[0], *slash, word.lower(), literal[-1], "."]


def test_casing_follows_the_pieces_unless_the_config_sets_it(tmp_path):
    uncased = load_tokenizer(bert_folder(tmp_path / "uncased"))
    cased = load_tokenizer(bert_folder(tmp_path / "cased", ["Cat", "cat"]))
    told = load_tokenizer(bert_folder(tmp_path / "told", ["Cat", "cat"], do_lower_case=True))
    assert ("uncased (no piece" in uncased.description, "cased (it has 'Cat')" in cased.description) == (True, True)
    assert "uncased (from tokenizer_config.json)" in told.description
    assert symbols_of(cased, "Cat cat") == ["Cat", "cat"]
    assert symbols_of(told, "Cat cat") == ["cat", "cat"]
    accents = load_tokenizer(bert_folder(tmp_path / "accents", do_lower_case=True, strip_accents=False))
    assert (symbols_of(uncased, "É"), symbols_of(accents, "É")) == (["e"], ["é"])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["[PAD]", "[UNK]", "[CLS]", "cat"], "lacks the special tokens [SEP], [MASK]"),
        ([*SPECIAL, "cat", "", "sat"], "line 7: '' is empty"),
        ([*SPECIAL, "cat", "sat", ""], "line 8: '' is empty"),
        ([*SPECIAL, "cat", "sat", "cat"], "line 8: 'cat' is already on line 6"),
        ([*SPECIAL, "black cat"], "line 6: 'black cat' is empty or contains white space"),
        ([*SPECIAL, "a\u3000"], "line 6"),
        ([*SPECIAL, "<unk>"], "line 6: '<unk>' is fairseq's own"),
        (SPECIAL, "contains only special tokens"),
    ],
)
def test_bert_vocabularies_that_are_refused(tmp_path, lines, message):
    (tmp_path / "vocab.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert message in refused(load_tokenizer, tmp_path / "vocab.txt")


@pytest.mark.parametrize(
    ("name", "value"), [("do_lower_case", "false"), ("strip_accents", "yes"), ("tokenize_chinese_chars", None)]
)
def test_settings_that_are_no_booleans_are_refused(tmp_path, name, value):
    folder = bert_folder(tmp_path / "bert", **{name: value})
    assert f"tokenizer_config.json: {name} must be true or false, not {value!r}" in refused(load_tokenizer, folder)


def test_a_vocabulary_with_crlf(tmp_path):
    path = bert_folder(tmp_path) / "vocab.txt"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_tokenizer(path).dictionary().symbols == ["<s>", "<pad>", "</s>", "<unk>", *PIECES]


@with_real_data
def test_the_released_bert_vocabulary():
    tokenizer = load_tokenizer(REAL_DATA / "vocab" / "bert-uncased.vocab.txt")
    dictionary = tokenizer.dictionary()
    assert len(dictionary) + 1 == 30_522  # with <mask>
    assert len(dictionary) - dictionary.nspecial == 30_517
    token_ids = tokenizer.token_ids(model_dictionary(tokenizer))
    assert [*token_ids[:4], token_ids[-1]] == [101, 0, 102, 100, 103]
    assert sorted(token_ids) == list(range(30_522))
