"""Each kind of tokenizer: its ids, its dictionary, and the vocabularies it refuses."""

import io
import json
import os
import pickle
import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from fairseq.data import Dictionary
from fairseq.data.encoders.gpt2_bpe_utils import bytes_to_unicode, get_encoder
from tokenizers import ByteLevelBPETokenizer, Tokenizer, models, pre_tokenizers

from tn_fairseq.dictionary import load_dictionary
from tn_fairseq.errors import InputError
from tn_fairseq.tokenization import load_tokenizer, wordpiece_tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = ["the", "cat", "sat", "##s", "on", "mat", "é", "e", "汉", "[", "]", "mask", "<", ">", "/", "s", ".", "##ing"]
TEXT = ["The cat sat on the mat.", "the cats, sitting on mats. It's 汉字!", "café déjà vu 12:30", "a  b\tc <mask> </s>"]

REAL_DATA = Path(os.environ.get("TN_FAIRSEQ_DATA", ""))
with_real_data = pytest.mark.skipif(
    "TN_FAIRSEQ_DATA" not in os.environ, reason="TN_FAIRSEQ_DATA does not name a folder of real data"
)


def bert_folder(folder: Path, pieces: list[str] = PIECES, **config) -> Path:
    """A folder with a vocab.txt, and a tokenizer_config.json if anything is to be in it."""
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in SPECIAL + pieces), encoding="utf-8")
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def gpt2_folder(folder: Path) -> Path:
    """A small tokenizer in the files of GPT-2."""
    folder.mkdir(exist_ok=True)
    learner = ByteLevelBPETokenizer()
    learner.train_from_iterator(TEXT * 3, vocab_size=300)
    learner.save_model(str(folder))
    (folder / "vocab.json").rename(folder / "encoder.json")
    (folder / "merges.txt").rename(folder / "vocab.bpe")
    return folder


def sentencepiece_folder(folder: Path, **options) -> Path:
    """A small unigram model; with the library's defaults it has no <pad>."""
    folder.mkdir(exist_ok=True)
    model = io.BytesIO()
    defaults = {"sentence_iterator": iter(TEXT * 3), "vocab_size": 42, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(model_writer=model, **{**defaults, **options})
    (folder / "any.model").write_bytes(model.getvalue())
    return folder


def symbols_of(tokenizer, line: str) -> list[str]:
    """The line's symbols of the dictionary."""
    dictionary = tokenizer.dictionary()
    ids, _ = tokenizer.encode_chunk([line])
    return [dictionary[index] for index in tokenizer.lookup_table(dictionary)[ids]]


def model_dictionary(tokenizer) -> Dictionary:
    """The tokenizer's dictionary as a model has it: with <mask>."""
    dictionary = tokenizer.dictionary()
    dictionary.add_symbol("<mask>")
    return dictionary


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_tokenizer(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("make", [bert_folder, gpt2_folder, sentencepiece_folder])
def test_lengths_divide_the_ids_into_lines(tmp_path, make):
    tokenizer = load_tokenizer(make(tmp_path / "tokenizer"))
    ids, lengths = tokenizer.encode_chunk(TEXT)
    assert lengths.tolist() == [len(tokenizer.encode_chunk([line])[0]) for line in TEXT]
    assert ids.tolist() == [index for line in TEXT for index in tokenizer.encode_chunk([line])[0].tolist()]
    assert [len(array) for array in tokenizer.encode_chunk([])] == [0, 0]


@pytest.mark.parametrize("make", [bert_folder, gpt2_folder, sentencepiece_folder])
def test_the_copied_files_make_the_same_tokenizer(tmp_path, make):
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
def test_a_pickled_tokenizer_encodes_alike(tmp_path, make):
    tokenizer = load_tokenizer(make(tmp_path / "tokenizer"))
    lines = [*TEXT, "the [MASK] </s> <mask>"]
    copy = pickle.loads(pickle.dumps(tokenizer))  # what a pool does where processes are not forked
    assert copy.encode_chunk(lines)[0].tolist() == tokenizer.encode_chunk(lines)[0].tolist()


def test_bert_dictionary_keeps_the_order_and_leaves_the_special_tokens_to_fairseq(tmp_path):
    dictionary = load_tokenizer(bert_folder(tmp_path)).dictionary()
    assert dictionary.symbols == ["<s>", "<pad>", "</s>", "<unk>", *PIECES]
    assert set(dictionary.count) == {1}


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


def test_a_literal_special_token_of_a_white_space_tokenizer_is_unknown(tmp_path):
    backend = Tokenizer(models.WordLevel({piece: i for i, piece in enumerate(["the", *SPECIAL])}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.save(str(tmp_path / "tokenizer.json"))
    assert symbols_of(load_tokenizer(tmp_path), "the [MASK] [SEP]") == ["the", "<unk>", "<unk>"]


def test_casing_is_told_by_the_pieces_unless_the_config_says(tmp_path):
    uncased = load_tokenizer(bert_folder(tmp_path / "uncased"))
    cased = load_tokenizer(bert_folder(tmp_path / "cased", ["Cat", "cat"]))
    told = load_tokenizer(bert_folder(tmp_path / "told", ["Cat", "cat"], do_lower_case=True))
    assert ("uncased (no piece" in uncased.description, "cased (it has 'Cat')" in cased.description) == (True, True)
    assert "uncased (says tokenizer_config.json)" in told.description
    assert symbols_of(cased, "Cat cat") == ["Cat", "cat"]
    assert symbols_of(told, "Cat cat") == ["cat", "cat"]
    accents = load_tokenizer(bert_folder(tmp_path / "accents", do_lower_case=True, strip_accents=False))
    assert (symbols_of(uncased, "É"), symbols_of(accents, "É")) == (["e"], ["é"])


def test_a_tokenizer_json_does_not_cut_or_pad_lines(tmp_path):
    backend = wordpiece_tokenizer(SPECIAL + PIECES, lowercase=True)
    backend.enable_truncation(2)
    backend.enable_padding(length=9)
    backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path / "tokenizer.json")
    assert tokenizer.description.endswith("uncased")
    assert symbols_of(tokenizer, "the cat sat on the mat") == ["the", "cat", "sat", "on", "the", "mat"]


def test_bert_ids_are_those_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    folder = bert_folder(tmp_path, tokenizer_class="BertTokenizer", do_lower_case=True)
    reference = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer = load_tokenizer(folder)
    for line in TEXT:
        assert tokenizer.encode_chunk([line])[0].tolist() == reference(line, add_special_tokens=False)["input_ids"]


def test_gpt2_ids_are_those_of_fairseqs_own_encoder(tmp_path):
    folder = gpt2_folder(tmp_path)
    reference = get_encoder(folder / "encoder.json", folder / "vocab.bpe")
    tokenizer = load_tokenizer(folder / "encoder.json")
    for line in [*TEXT, " leading", "trailing ", "  x\u3000y\x85z\x1c1", "<|endoftext|> 😀"]:
        assert tokenizer.encode_chunk([line])[0].tolist() == reference.encode(line)
        assert symbols_of(tokenizer, line) == list(map(str, reference.encode(line)))


def test_gpt2_dictionary_is_numbers_in_order(tmp_path):
    tokenizer = load_tokenizer(gpt2_folder(tmp_path))
    assert tokenizer.dictionary().symbols[4:] == [str(number) for number in range(300)]


def test_sentencepiece_leaves_its_special_tokens_to_fairseq(tmp_path):
    ids = {"bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3}
    folder = sentencepiece_folder(tmp_path, **ids, control_symbols=["<mask>"])
    tokenizer = load_tokenizer(folder)
    pieces = tokenizer.dictionary().symbols
    assert len(pieces) + 1 == 42  # fairseq appends <mask>
    assert len(set(pieces)) == len(pieces)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "any.model"))
    assert pieces[4:] == [processor.id_to_piece(index) for index in range(5, 42)]
    assert set(symbols_of(tokenizer, "</s> <mask> the <s>")).isdisjoint({"<s>", "</s>", "<mask>"})
    assert symbols_of(tokenizer, "Ж")[-1] == "<unk>"


def test_sentencepiece_with_the_librarys_defaults(tmp_path):
    assert load_tokenizer(sentencepiece_folder(tmp_path)).dictionary().symbols[:4] == ["<s>", "<pad>", "</s>", "<unk>"]


def test_a_literal_user_defined_mask_is_unknown(tmp_path):
    tokenizer = load_tokenizer(sentencepiece_folder(tmp_path, user_defined_symbols=["<mask>"]))
    assert "<mask>" not in tokenizer.dictionary()
    assert symbols_of(tokenizer, "<mask>")[-1] == "<unk>"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["[PAD]", "[UNK]", "[CLS]", "cat"], "lacks the special tokens [SEP], [MASK]"),
        ([*SPECIAL, "cat", "", "sat"], "line 7: empty"),
        ([*SPECIAL, "cat", "sat", ""], "line 8: empty"),
        ([*SPECIAL, "cat", "sat", "cat"], "line 8: 'cat' stands on line 6 already"),
        ([*SPECIAL, "black cat"], "line 6: 'black cat' is empty or holds white space"),
        ([*SPECIAL, "a\u3000"], "line 6"),
        ([*SPECIAL, "<unk>"], "line 6: '<unk>' is fairseq's own"),
        (SPECIAL, "nothing but special tokens"),
    ],
)
def test_bert_vocabularies_that_are_refused(tmp_path, lines, message):
    (tmp_path / "vocab.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert message in refused(tmp_path / "vocab.txt")


def test_a_vocabulary_with_crlf(tmp_path):
    path = bert_folder(tmp_path) / "vocab.txt"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_tokenizer(path).dictionary().symbols[4:] == PIECES


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
    assert "not UTF-8 (byte 6)" in refused(tmp_path / "vocab.txt")
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


def test_a_tokenizer_json_without_special_tokens(tmp_path):
    Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "a": 2})).save(str(tmp_path / "tokenizer.json"))
    assert "lacks the special tokens <pad>, <unk>, <mask>" in refused(tmp_path)


def test_a_sentencepiece_model_without_sentence_symbols(tmp_path):
    assert "lacks the special tokens <s>, </s>" in refused(sentencepiece_folder(tmp_path, bos_id=-1, eos_id=-1))


def test_damaged_gpt2_files(tmp_path):
    folder = gpt2_folder(tmp_path)
    encoder, merges = folder / "encoder.json", folder / "vocab.bpe"
    vocabulary, lines = json.loads(encoder.read_text()), merges.read_text()
    merges.write_text(lines.split("\n", 1)[1])
    assert "line 1: not '#version" in refused(folder)
    merges.write_text(lines + "one\n")
    assert "not two pieces" in refused(folder)
    merges.write_text(lines + "qqq zzz\n")
    assert "does not fit encoder.json" in refused(folder)
    merges.unlink()
    assert "vocab.bpe: no such file" in refused(folder)
    merges.write_text(lines)
    encoder.write_text(json.dumps({**vocabulary, "!": 1}))
    assert "a number of its own" in refused(folder)
    encoder.write_text(json.dumps({piece: index for piece, index in vocabulary.items() if piece != "A"}))
    assert "lacks pieces for some of the 256 bytes" in refused(folder)


def test_a_dictionary_that_lacks_a_symbol_is_refused(tmp_path):
    tokenizer = load_tokenizer(bert_folder(tmp_path))
    (tmp_path / "dict.txt").write_text("".join(f"{piece} 1\n" for piece in reversed(PIECES[1:])), encoding="utf-8")
    for method in (tokenizer.lookup_table, tokenizer.token_ids):
        with pytest.raises(InputError, match=r"lacks 1 of the tokenizer's 18 symbols \('the'\)"):
            method(load_dictionary(tmp_path / "dict.txt"))


def test_token_ids_undo_the_lookup_table_and_know_the_special_tokens(tmp_path):
    tokenizer = load_tokenizer(bert_folder(tmp_path))
    assert tokenizer.pieces == [*SPECIAL, *PIECES]
    assert tokenizer.special_ids == {"<s>": 2, "<pad>": 0, "</s>": 3, "<unk>": 1, "<mask>": 4}
    dictionary = model_dictionary(tokenizer)
    token_ids = tokenizer.token_ids(dictionary)
    assert token_ids.tolist() == [2, 0, 3, 1, *range(5, 23), 4]
    assert token_ids[tokenizer.lookup_table(dictionary)[5:]].tolist() == list(range(5, 23))


def test_token_ids_follow_the_dictionarys_order(tmp_path):
    tokenizer = load_tokenizer(bert_folder(tmp_path))
    (tmp_path / "dict.txt").write_text("".join(f"{piece} 1\n" for piece in reversed(PIECES)), encoding="utf-8")
    token_ids = tokenizer.token_ids(load_dictionary(tmp_path / "dict.txt"))
    assert token_ids.tolist() == [2, 0, 3, 1, *reversed(range(5, 23)), 4]


def test_token_ids_of_a_tokenizer_json_with_robertas_special_tokens(tmp_path):
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "cat", "<mask>", "the"]
    Tokenizer(models.WordLevel({piece: index for index, piece in enumerate(pieces)})).save(
        str(tmp_path / "tokenizer.json")
    )
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.pieces == pieces
    assert tokenizer.token_ids(model_dictionary(tokenizer)).tolist() == [0, 1, 2, 3, 4, 6, 5]


def test_what_gpt2_lacks_gets_the_ids_after_its_own(tmp_path):
    tokenizer = load_tokenizer(gpt2_folder(tmp_path))
    assert len(tokenizer.pieces) == 300 and tokenizer.pieces[0] == "!"
    assert tokenizer.special_ids == {}
    numbers = [*range(299, -1, -1)]
    symbols = [*map(str, numbers), "madeupword0000", "madeupword0001"]
    (tmp_path / "dict.txt").write_text("".join(f"{symbol} 0\n" for symbol in symbols))
    token_ids = tokenizer.token_ids(load_dictionary(tmp_path / "dict.txt"))
    assert token_ids.tolist() == [300, 301, 302, 303, *numbers, 304, 305, 306]


def test_token_ids_of_sentencepiece_models_with_and_without_pad_and_mask(tmp_path):
    ids = {"bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3}
    whole = load_tokenizer(sentencepiece_folder(tmp_path / "whole", **ids, control_symbols=["<mask>"]))
    assert whole.special_ids == {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4}
    assert whole.token_ids(model_dictionary(whole)).tolist() == [0, 1, 2, 3, *range(5, 42), 4]
    bare = load_tokenizer(sentencepiece_folder(tmp_path / "bare"))
    assert bare.pieces[:3] == ["<unk>", "<s>", "</s>"] and len(bare.pieces) == 42
    assert bare.special_ids == {"<s>": 1, "</s>": 2, "<unk>": 0}
    assert bare.token_ids(model_dictionary(bare)).tolist() == [1, 42, 2, 0, *range(3, 42), 43]


def test_of_two_masks_fairseqs_own_is_the_mask(tmp_path):
    tokenizer = load_tokenizer(sentencepiece_folder(tmp_path, control_symbols=["[MASK]", "<mask>"]))
    assert tokenizer.special_ids["<mask>"] == tokenizer.pieces.index("<mask>") == 4
    assert sorted(tokenizer.token_ids(model_dictionary(tokenizer))) == list(range(43))  # <pad> is new


def test_ids_with_gaps_have_no_token_ids(tmp_path):
    vocabulary = {piece: 2 * index for index, piece in enumerate([*SPECIAL, "cat"])}
    Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]")).save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path)
    with pytest.raises(InputError, match="its ids run to 10 with gaps"):
        tokenizer.token_ids(model_dictionary(tokenizer))


@with_real_data
def test_the_released_bert_vocabulary():
    tokenizer = load_tokenizer(REAL_DATA / "vocab" / "bert-uncased.vocab.txt")
    dictionary = tokenizer.dictionary()
    assert len(dictionary) + 1 == 30_522  # with <mask>
    assert len(dictionary) - dictionary.nspecial == 30_517
    token_ids = tokenizer.token_ids(model_dictionary(tokenizer))
    assert [*token_ids[:4], token_ids[-1]] == [101, 0, 102, 100, 103]
    assert sorted(token_ids) == list(range(30_522))


@with_real_data
def test_the_released_roberta_dictionary():
    tokenizer = load_tokenizer(REAL_DATA / "vocab" / "encoder.json")
    dictionary = load_dictionary(REAL_DATA / "vocab" / "dict.roberta.txt")
    token_ids = tokenizer.token_ids(dictionary)
    assert sorted(token_ids) == list(range(50_265))
    assert [*token_ids[:4], *token_ids[-4:]] == [50_257, 50_258, 50_259, 50_260, 50_261, 50_262, 50_263, 50_264]


# composed and decomposed accents, capitals, Chinese, two emoji, ligatures within words, control characters
PLACES = "  The Cafe\u0301 cats,\té É\r\nsat on 汉字 😀Ж🎉! oﬀ ﬁsh \u200b x\u0301\u0302y \x07 mats \n"


@pytest.fixture(params=["wordpiece", "gpt2", "unigram", "suffix", "bytes"])
def placing(request, tmp_path):
    """A tokenizer whose offsets are looked at, and what it makes of the characters at a piece's place."""
    bytes_of = {symbol: byte for byte, symbol in bytes_to_unicode().items()}
    if request.param == "wordpiece":
        tokenizer = load_tokenizer(bert_folder(tmp_path / "t", [*PIECES, "caf", "##e", "##é", "ﬁ", "##h", "xy", "o"]))
        return (
            tokenizer,
            lambda piece: piece.removeprefix("##"),
            lambda text: tokenizer.backend.normalizer.normalize_str(text),
        )
    if request.param == "gpt2":
        tokenizer = load_tokenizer(gpt2_folder(tmp_path / "t"))
        return tokenizer, lambda piece: bytes(bytes_of[symbol] for symbol in piece).strip(), str.encode
    options = {
        "unigram": {},
        "suffix": {"treat_whitespace_as_suffix": True},
        "bytes": {"vocab_size": 330, "byte_fallback": True, "model_type": "bpe", "hard_vocab_limit": False},
    }[request.param]
    tokenizer = load_tokenizer(sentencepiece_folder(tmp_path / "t", **options))

    def characters(piece):
        is_byte = re.fullmatch("<0x(..)>", piece)
        return bytes.fromhex(is_byte[1]) if is_byte else piece.strip("▁").encode()

    return tokenizer, characters, lambda text: unicodedata.normalize("NFKC", text).encode()


def test_each_place_holds_the_characters_of_its_piece(placing):
    tokenizer, characters, normalized = placing
    unknown = tokenizer.special_ids.get("<unk>")
    ids, offsets = tokenizer.encode_with_offsets(PLACES)
    assert (ids.dtype, offsets.dtype, offsets.shape) == (np.int32, np.int32, (len(ids), 2))
    for index, (begin, end) in zip(ids, offsets.tolist()):
        text = PLACES[begin:end]
        assert text == text.strip()
        if index != unknown:
            assert characters(tokenizer.pieces[index]) in normalized(text)
            assert bool(text) == bool(characters(tokenizer.pieces[index]))
            assert len(text) <= len(tokenizer.pieces[index]) + text.count("\u0301") + text.count("\u0302")
    covered = {place for begin, end in offsets.tolist() for place in range(begin, end)}
    assert set("".join(PLACES[place] for place in range(len(PLACES)) if place not in covered)) <= set(
        " \t\r\n\u0301\u0302\u200b\x07"
    )


def test_offsets_come_with_the_ids_of_the_line(placing):
    tokenizer = placing[0]
    for line in [*TEXT, PLACES.replace("\r\n", "  ").replace("\n", " ")]:
        ids, offsets = tokenizer.encode_with_offsets(line)
        assert ids.tolist() == tokenizer.encode_chunk([line])[0].tolist()
        assert (np.diff(offsets, axis=0) >= 0).all()


def test_line_ends_are_blanks(placing):
    tokenizer = placing[0]
    parted, whole = map(tokenizer.encode_with_offsets, ("the\ncat\r\nsat\n\n汉", "the cat  sat  汉"))
    assert [array.tolist() for array in parted] == [array.tolist() for array in whole]


def test_an_empty_text_has_no_places(placing):
    ids, offsets = placing[0].encode_with_offsets("")
    assert (ids.shape, offsets.shape) == ((0,), (0, 2))


def test_places_by_hand(tmp_path):
    bert = load_tokenizer(bert_folder(tmp_path / "bert"))
    ids, offsets = bert.encode_with_offsets("The  cats\nÉ 汉字😀 e\u0301.")
    assert [bert.pieces[index] for index in ids] == ["the", "cat", "##s", "e", "汉", "[UNK]", "[UNK]", "e", "."]
    assert offsets.tolist() == [
        *[[0, 3], [5, 8], [8, 9], [10, 11], [12, 13], [13, 14], [14, 15], [16, 17], [18, 19]],
    ]
    gpt2 = load_tokenizer(gpt2_folder(tmp_path / "gpt2"))
    ids, offsets = gpt2.encode_with_offsets("the  cat 😀")
    assert [gpt2.pieces[index] for index in ids] == ["the", "Ġ", "Ġcat", "Ġ", "ð", "Ł", "ĺ", "Ģ"]
    assert offsets.tolist() == [[0, 3], [4, 4], [5, 8], [9, 9], *[[9, 10]] * 4]


def test_white_space_at_the_end_of_a_piece_is_no_part_of_its_place(tmp_path):
    pieces = [*SPECIAL, "a", "Ġ", "aĠ"]
    backend = Tokenizer(models.BPE({piece: index for index, piece in enumerate(pieces)}, [("a", "Ġ")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.save(str(tmp_path / "tokenizer.json"))
    ids, offsets = load_tokenizer(tmp_path).encode_with_offsets("a aa")
    assert (ids.tolist(), offsets.tolist()) == ([7, 5, 5], [[0, 1], [2, 3], [3, 4]])


def test_places_in_divided_characters_of_sentencepiece(tmp_path):
    options = {"vocab_size": 330, "byte_fallback": True, "model_type": "bpe", "hard_vocab_limit": False}
    tokenizer = load_tokenizer(sentencepiece_folder(tmp_path, **options))
    ids, offsets = tokenizer.encode_with_offsets("café e\u0301 oﬀ 😀")
    places = [(tokenizer.pieces[index], *place) for index, place in zip(ids, offsets.tolist())]
    assert [place for place in places if place[0] != "▁"] == [
        *[("▁c", 0, 1), ("afé", 1, 4), ("é", 5, 7), ("o", 8, 9), ("f", 9, 10), ("f", 9, 10)],
        *[(f"<0x{byte:X}>", 11, 12) for byte in "😀".encode()],
    ]
