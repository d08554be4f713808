import json

import pytest
from fairseq.data import Dictionary

from tn_fairseq.dictionary import MASK
from tn_fairseq.errors import InputError
from tn_fairseq.vocabulary import (
    STOP_WORDS,
    casing,
    continues_word,
    match_case,
    surface_forms,
    whole_words,
)


def dictionary_of(*pieces):
    dictionary = Dictionary()
    for piece in (*pieces, MASK):
        dictionary.add_symbol(piece)
    return dictionary


def words_of(*pieces, encoder_json=None):
    return list(whole_words(dictionary_of(*pieces), encoder_json).values())


def test_wordpiece_continuations_are_not_words():
    assert words_of("[unused12]", "main", "##ing", "chief", "##s", "[SEP]") == ["main", "chief"]


def test_sentencepiece_words_start_with_the_marker():
    assert words_of("▁", "▁main", "ing", "▁Chief", "s", "▁1", "▁,", "<0x0A>") == ["main", "Chief"]


def test_plain_words_need_a_letter():
    assert words_of("main", "1999", ",", "1980s", "--", "e-mail", "madeupword0000", "café", "main_street") == [
        "main",
        "1980s",
        "e-mail",
        "café",
    ]


def test_gpt2_numbers_are_read_through_encoder_json(tmp_path):
    encoder_json = tmp_path / "encoder.json"
    pieces = {"!": 0, "Ġmain": 5, "The": 7, "ĠcafÃ©": 8, "Ġ1": 9, "Ġ": 10, "Ġâ": 11}
    encoder_json.write_text(json.dumps(pieces), encoding="utf-8")
    dictionary = dictionary_of("5", "0", "7", "9", "8", "10", "11", "madeupword0000")
    words = whole_words(dictionary, encoder_json)
    assert words == {dictionary.index("5"): "main", dictionary.index("8"): "café"}


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["the", "way", "##s", "##ide", "[SEP]", ",", "café"], " the wayside, café"),
        (["▁The", "▁way", "s", "ide", "<0x0A>", ",", "▁café"], " The wayside, café"),
        (["the", "wayside", ",", "café"], " the wayside , café"),
    ],
)
def test_surface_forms_concatenate_to_the_text(pieces, text):
    dictionary = dictionary_of(*pieces)
    forms = surface_forms(dictionary)
    assert len(forms) == len(dictionary)
    joined = "".join(forms[dictionary.index(piece)] for piece in ("<s>", *pieces, "</s>", "<pad>", MASK))
    assert joined.replace(" ,", ",") == text.replace(" ,", ",")
    assert forms[dictionary.unk()] == " <unk>"


def test_surface_forms_of_gpt2_are_decoded_bytes(tmp_path):
    encoder_json = tmp_path / "encoder.json"
    encoder_json.write_text(json.dumps({"The": 1, "ĠcafÃ©": 2, "s": 3, "Ġâ": 4}), encoding="utf-8")
    dictionary = dictionary_of("1", "2", "3", "4", "madeupword0000")
    forms = surface_forms(dictionary, encoder_json)
    assert [forms[dictionary.index(number)] for number in "1234"] == ["The", " café", "s", " �"]
    with pytest.raises(InputError, match="--encoder-json"):
        surface_forms(dictionary)


def continuing(*pieces, encoder_json=None):
    dictionary = dictionary_of(*pieces)
    found = continues_word(dictionary, encoder_json)
    assert len(found) == len(dictionary)
    return {dictionary[index] for index, continues in enumerate(found) if continues}


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["mer", "##le", "##1", "##'", "##́", "dog", ".", "'", "[SEP]", "madeupword0000"], {"##le", "##1", "##́"}),
        (["▁mer", "le", "1", "é", "▁dog", ".", "'s", "-", "▁", "<0x0A>", "▁'"], {"le", "1", "é"}),
        (["mer", "le", "dog", ".", "##"], set()),  # a plain list of words
    ],
)
def test_pieces_that_continue_a_word(pieces, expected):
    words = [f"▁word{number}" if "▁" in pieces[0] else f"word{number}" for number in range(300)]
    more = ["##s", "##ing", "##er", "##ed"] if "##le" in pieces else []
    assert continuing(*pieces, *words, *more) == expected | set(more)


def test_pieces_of_gpt2_that_continue_a_word(tmp_path):
    pieces = {"Ġmer": 1, "le": 2, "Ã©": 3, "Ġdog": 4, ".": 5, "'s": 6, "Ċ": 7, "âĢ": 8, "Ġ1": 9, "1": 10, "The": 11}
    encoder_json = tmp_path / "encoder.json"
    encoder_json.write_text(json.dumps(pieces), encoding="utf-8")
    numbers = [str(number) for number in pieces.values()]
    # the first bytes of a quotation mark, 8, are no letter
    assert continuing(*numbers, "madeupword0000", encoder_json=encoder_json) == {"2", "3", "10", "11"}
    with pytest.raises(InputError, match="--encoder-json"):
        continuing(*numbers)
    assert continuing(*pieces, *(f"Ġword{n}" for n in range(50))) == {"le", "Ã©", "1", "The"}


def test_ids_are_those_of_the_dictionary():
    dictionary = dictionary_of("main", "##ing", "chief")
    assert whole_words(dictionary) == {4: "main", 6: "chief"}
    assert dictionary[4] == "main" and dictionary[6] == "chief"


def test_special_symbols_are_not_words():
    assert not set(words_of("main")) & {"s", "/s", "pad", "unk", "mask", "<s>", "<pad>", "</s>", "<unk>", MASK}


def test_the_error_for_numbers_without_encoder_json_names_the_flag():
    with pytest.raises(InputError, match="--encoder-json"):
        words_of("13", "262", "11", "madeupword0000")


def test_encoder_json_with_a_dictionary_of_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="--encoder-json"):
        words_of("main", "chief", encoder_json=tmp_path / "encoder.json")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file"),
        ("[1, 2]", "a JSON list, not an object"),
        ('{"a": "b"}', "does not map pieces to numbers"),
        ('{"a":\n', "line 2: not valid JSON"),
        ('{"a": 1}', "no piece 13"),
    ],
)
def test_an_invalid_encoder_json_gets_one_line(tmp_path, content, reason):
    encoder_json = tmp_path / "encoder.json"
    if content is not None:
        encoder_json.write_text(content)
    with pytest.raises(InputError, match=reason) as raised:
        words_of("13", "262", encoder_json=encoder_json)
    assert str(encoder_json) in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("word", "pattern"),
    [
        ("main", "lower"),
        ("1980s", "lower"),
        ("Main", "Capitalized"),
        ("I", "Capitalized"),
        ("USA", "UPPER"),
        ("McDonald", "mixed"),
        ("iPod", "mixed"),
    ],
)
def test_casing(word, pattern):
    assert casing(word) == pattern


@pytest.mark.parametrize(
    ("word", "like", "expected"),
    [("Main", "chief", "main"), ("main", "Chief", "Main"), ("main", "CHIEF", "MAIN"), ("iPod", "McDonald", "iPod")],
)
def test_casing_carries_over(word, like, expected):
    assert match_case(word, like) == expected


def test_stop_words_are_closed_class():
    assert {"the", "of", "and", "she", "would", "not", "between", "what"} <= STOP_WORDS
    content = "system serious fire bill mill cry interest describe find full little main name part show top side empty"
    assert not STOP_WORDS & set(content.split())
    assert all(word == word.lower() for word in STOP_WORDS)


@pytest.mark.parametrize("marker", ["▁", "Ġ"])
@pytest.mark.parametrize(("pieces", "marked"), [(150, True), (199, True), (200, False), (250, False)])
def test_a_marker_is_on_more_than_one_piece_in_a_hundred(marker, pieces, marked):
    plain = [f"word{number}" for number in range(pieces - 2)]
    words = words_of(*plain, f"{marker}two", f"{marker}three")  # <mask> does not count
    assert words == ["two", "three"] if marked else set(plain) <= set(words)


def test_a_wordpiece_marker_is_on_more_than_one_piece_in_a_hundred():
    for pieces, space in ((99, ""), (100, " ##")):
        dictionary = dictionary_of(*(f"word{number}" for number in range(pieces - 1)), "##s")
        assert surface_forms(dictionary)[dictionary.index("##s")] == f"{space}s"


@pytest.mark.parametrize(
    ("word", "like", "expected"),
    [("iPod", "Chief", "Ipod"), ("USA", "Chief", "Usa"), ("iPod", "chief", "ipod"), ("McDonald", "CHIEF", "MCDONALD")],
)
def test_casing_carries_over_to_every_letter(word, like, expected):
    assert match_case(word, like) == expected


@pytest.mark.parametrize(
    ("word", "pattern"), [("1980", "lower"), ("東京", "lower"), ("1980S", "UPPER"), ("MAin", "mixed")]
)
def test_casing_of_words_with_few_letters(word, pattern):
    assert casing(word) == pattern


def test_words_begin_with_a_letter_or_a_digit():
    assert words_of("main", "'s", "-ish", "(a)", "$us", "#1st", "3rd") == ["main", "3rd"]


def test_digits_other_than_ascii_are_text():
    assert words_of("٣", "४", "²") == []


def test_a_dictionary_of_special_symbols_has_no_words():
    assert words_of("[unused0]", "madeupword0000") == []
