"""Offsets: the places of tokens in a text, for each kind of tokenizer."""

import re
import unicodedata

import numpy as np
import pytest
from fairseq.data.encoders.gpt2_bpe_utils import bytes_to_unicode
from tokenizer_folders import PIECES, SPECIAL, TEXT, bert_folder, gpt2_folder, sentencepiece_folder
from tokenizers import Tokenizer, models, pre_tokenizers

from tn_fairseq.tokenizers import load_tokenizer

# composed and decomposed accents, capitals, Chinese, two emoji, ligatures inside words, control characters
PLACES = "  The Cafe\u0301 cats,\té É\r\nsat on 汉字 😀Ж🎉! oﬀ ﬁsh \u200b x\u0301\u0302y \x07 mats \n"
BYTES = {"vocab_size": 330, "byte_fallback": True, "model_type": "bpe", "hard_vocab_limit": False}


@pytest.fixture(params=["wordpiece", "gpt2", "unigram", "suffix", "bytes"])
def placing(request, tmp_path):
    """A tokenizer, the characters of a piece, and how the tokenizer normalizes a text."""
    bytes_of = {symbol: byte for byte, symbol in bytes_to_unicode().items()}
    if request.param == "wordpiece":
        tokenizer = load_tokenizer(bert_folder(tmp_path / "t", [*PIECES, "caf", "##e", "##é", "ﬁ", "##h", "xy", "o"]))
        return tokenizer, lambda piece: piece.removeprefix("##"), tokenizer.backend.normalizer.normalize_str
    if request.param == "gpt2":
        tokenizer = load_tokenizer(gpt2_folder(tmp_path / "t"))
        return tokenizer, lambda piece: bytes(bytes_of[symbol] for symbol in piece).strip(), str.encode
    options = {"unigram": {}, "suffix": {"treat_whitespace_as_suffix": True}, "bytes": BYTES}[request.param]
    tokenizer = load_tokenizer(sentencepiece_folder(tmp_path / "t", **options))

    def characters(piece):
        is_byte = re.fullmatch("<0x(..)>", piece)
        return bytes.fromhex(is_byte[1]) if is_byte else piece.strip("▁").encode()

    return tokenizer, characters, lambda text: unicodedata.normalize("NFKC", text).encode()


def test_each_place_contains_the_characters_of_its_piece(placing):
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
    outside = {character for place, character in enumerate(PLACES) if place not in covered}
    assert outside <= set(" \t\r\n\u0301\u0302\u200b\x07")

    # the ids are those of the line, and line breaks are spaces
    assert [array.shape for array in tokenizer.encode_with_offsets("")] == [(0,), (0, 2)]
    for line in [*TEXT, PLACES.replace("\r\n", "  ").replace("\n", " ")]:
        ids, offsets = tokenizer.encode_with_offsets(line)
        assert ids.tolist() == tokenizer.encode_chunk([line])[0].tolist()
        assert (np.diff(offsets, axis=0) >= 0).all()
    split, joined = map(tokenizer.encode_with_offsets, ("the\ncat\r\nsat\n\n汉", "the cat  sat  汉"))
    assert [array.tolist() for array in split] == [array.tolist() for array in joined]


def test_places_by_hand(tmp_path):
    bert = load_tokenizer(bert_folder(tmp_path / "bert"))
    ids, offsets = bert.encode_with_offsets("The  cats\nÉ 汉字😀 e\u0301.")
    assert [bert.pieces[index] for index in ids] == ["the", "cat", "##s", "e", "汉", "[UNK]", "[UNK]", "e", "."]
    assert offsets.tolist() == [[0, 3], [5, 8], [8, 9], [10, 11], [12, 13], [13, 14], [14, 15], [16, 17], [18, 19]]
    gpt2 = load_tokenizer(gpt2_folder(tmp_path / "gpt2"))
    ids, offsets = gpt2.encode_with_offsets("the  cat 😀")
    assert [gpt2.pieces[index] for index in ids] == ["the", "Ġ", "Ġcat", "Ġ", "ð", "Ł", "ĺ", "Ģ"]
    assert offsets.tolist() == [[0, 3], [4, 4], [5, 8], [9, 9], *[[9, 10]] * 4]


def test_white_space_at_the_end_of_a_piece_is_not_in_its_place(tmp_path):
    pieces = [*SPECIAL, "a", "Ġ", "aĠ"]
    backend = Tokenizer(models.BPE({piece: index for index, piece in enumerate(pieces)}, [("a", "Ġ")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.save(str(tmp_path / "tokenizer.json"))
    ids, offsets = load_tokenizer(tmp_path).encode_with_offsets("a aa")
    assert (ids.tolist(), offsets.tolist()) == ([7, 5, 5], [[0, 1], [2, 3], [3, 4]])


def test_places_in_split_characters_of_sentencepiece(tmp_path):
    tokenizer = load_tokenizer(sentencepiece_folder(tmp_path, **BYTES))
    ids, offsets = tokenizer.encode_with_offsets("café e\u0301 oﬀ 😀")
    places = [(tokenizer.pieces[index], *place) for index, place in zip(ids, offsets.tolist())]
    assert [place for place in places if place[0] != "▁"] == [
        *[("▁c", 0, 1), ("afé", 1, 4), ("é", 5, 7), ("o", 8, 9), ("f", 9, 10), ("f", 9, 10)],
        *[(f"<0x{byte:X}>", 11, 12) for byte in "😀".encode()],
    ]
