"""BERT's vocab.txt: its pieces, casing, and invalid vocabularies."""

import pytest
from files import refused, write
from tokenizer_folders import REAL_DATA, SPECIAL, bert_folder, symbols_of, with_real_data

from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.tokenizers import load_tokenizer


@pytest.mark.parametrize("literal", ["[MASK]", "<mask>", "</s>"])
def test_a_literal_special_token_is_ordinary_text(tmp_path, literal):
    word = literal.strip("[]</>")
    slash = ["/"] if "/" in literal else []
    tokenizer = load_tokenizer(bert_folder(tmp_path))
    assert symbols_of(tokenizer, f"the {literal}.") == ["the", literal[0], *slash, word.lower(), literal[-1], "."]


def test_casing_follows_the_pieces_unless_the_config_sets_it(tmp_path):
    uncased = load_tokenizer(bert_folder(tmp_path / "uncased"))
    assert symbols_of(uncased, "The CATS, sat\ton  汉.") == ["the", "cat", "##s", "<unk>", "sat", "on", "汉", "."]
    assert symbols_of(uncased, "\x00\u200b\ufeff") == []
    cased = load_tokenizer(bert_folder(tmp_path / "cased", ["Cat", "cat"]))
    chinese = load_tokenizer(bert_folder(tmp_path / "chinese", ["<S>", "cat"]))
    told = load_tokenizer(bert_folder(tmp_path / "told", ["Cat", "cat"], do_lower_case=True))
    accents = load_tokenizer(bert_folder(tmp_path / "accents", do_lower_case=True, strip_accents=False))
    assert "uncased (no piece" in uncased.description and "cased (it has 'Cat')" in cased.description
    assert symbols_of(chinese, "Cat") == ["cat"]
    assert (symbols_of(cased, "Cat cat"), symbols_of(told, "Cat cat")) == (["Cat", "cat"], ["cat", "cat"])
    assert (symbols_of(uncased, "É"), symbols_of(accents, "É")) == (["e"], ["é"])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["[PAD]", "[UNK]", "[CLS]", "cat"], "[SEP], [MASK]"),
        (SPECIAL, "only special tokens"),
        ([f"{piece} {number}" for number, piece in enumerate([*SPECIAL, "cat"])], "a number after each piece"),
    ],
)
def test_bert_vocabularies_that_are_refused(tmp_path, lines, message):
    path = write(tmp_path / "vocab.txt", "".join(f"{line}\n" for line in lines))
    assert message in refused(load_tokenizer, path)


ODD = ["cat", "\u2028", "c", "sat", "a\u3000", "cat", "black cat", "x\x1cy", "##s", "<unk>", "a\u2028b", "<s>", "sat"]


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_every_vocabulary_of_transformers_is_read_as_there(tmp_path, end):
    transformers = pytest.importorskip("transformers")
    folder = bert_folder(tmp_path, do_lower_case=True, tokenizer_class="BertTokenizer")
    text = (end or "\n").join([*SPECIAL, *ODD]) + end
    (folder / "vocab.txt").write_bytes(text.encode())
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer = load_tokenizer(folder)
    assert "16 pieces and 2 lines that a later line repeats" in tokenizer.description
    ids = theirs.get_vocab()
    assert {piece: index for index, piece in enumerate(tokenizer.pieces) if index not in (5, 8)} == ids
    assert tokenizer.pieces[5] == tokenizer.pieces[8] == ""  # repeated later
    line = "Cat \u2028 cats black cat\x1csat <s> <unk>"
    assert tokenizer.encode_chunk([line])[0].tolist() == theirs(line, add_special_tokens=False)["input_ids"]

    dictionary = tokenizer.dictionary()
    dictionary.save(str(tmp_path / "dict.txt"))
    assert load_dictionary(tmp_path / "dict.txt").symbols == [*dictionary.symbols, "<mask>"]
    by_id = sorted((index, piece) for piece, index in ids.items() if piece not in SPECIAL)
    escaped = {"<s>": "<<s>>", "<unk>": "<<unk>>"}
    assert dictionary.symbols[4:] == [escaped.get(piece, piece) for _, piece in by_id]
    assert symbols_of(tokenizer, line)[-6:] == ["<unk>"] * 6  # no text has the escaped pieces

    theirs.save_pretrained(tmp_path / "saved")  # as tokenizer.json, without the repeated lines
    again = load_tokenizer(tmp_path / "saved")
    assert (again.pieces, again.symbols) == (tokenizer.pieces, tokenizer.symbols)


@pytest.mark.parametrize(("name", "value"), [("do_lower_case", "false"), ("tokenize_chinese_chars", None)])
def test_settings_that_are_no_booleans_are_refused(tmp_path, name, value):
    folder = bert_folder(tmp_path / "bert", **{name: value})
    assert f"tokenizer_config.json: {name}" in refused(load_tokenizer, folder)


@with_real_data
def test_the_released_chinese_vocabulary(tmp_path):
    tokenizer = load_tokenizer(REAL_DATA / "vocab" / "bert-base-chinese.vocab.txt")
    tokenizer.dictionary().save(str(tmp_path / "dict.txt"))
    dictionary = load_dictionary(tmp_path / "dict.txt")
    token_ids = tokenizer.token_ids(dictionary)
    assert (len(tokenizer.pieces), token_ids.max()) == (21_128, 21_127)
    assert [*token_ids[:4], token_ids[-1]] == [101, 0, 102, 100, 103]
    assert len(set(token_ids)) == len(dictionary) == 21_128 - tokenizer.pieces.count("") + 1  # line 344 is empty
    assert symbols_of(tokenizer, "我们\u2028在北京。") == ["我", "们", "在", "北", "京", "。"]
