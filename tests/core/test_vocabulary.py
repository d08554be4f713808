import numpy as np
import pytest
from fairseq.data.encoders.gpt2_bpe_utils import bytes_to_unicode
from files import refused, write
from preprocessed import dictionary_of
from tokenizers import ByteLevelBPETokenizer

from tn_fairseq.core.dictionary import MASK
from tn_fairseq.core.vocabulary import (
    STOP_WORDS,
    WordStarts,
    casing,
    continues_word,
    match_case,
    surface_forms,
    whole_words,
    word_finder,
)


def words_of(*pieces, encoder_json=None):
    return list(whole_words(dictionary_of(*pieces), encoder_json).values())


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ("[unused12] main ##ing chief ##s [SEP]", "main chief"),
        ("▁ ▁main ing ▁Chief s ▁1 ▁, <0x0A>", "main Chief"),
        ("Ġ Ġmain ing ĠChief ĠcafÃ© Ġ1 Ġâ Ġaâ ĠaĠb Ġ東", "main Chief café"),  # â is half a character, 東 is no byte
        ("main 1999 , 1980s -- e-mail madeupword0000 café main_street", "main 1980s e-mail café"),
        ("main 's -ish (a) $us #1st 3rd", "main 3rd"),
        ("٣ ४ ²", ""),  # digits that are not GPT-2's numbers
        ("[unused0] madeupword0000", ""),
    ],
)
def test_whole_words(pieces, words):
    assert words_of(*pieces.split()) == words.split()


def test_every_character_of_gpt2_is_its_byte():
    for byte, character in bytes_to_unicode().items():
        if byte < 128:  # a byte above is only a part of a character
            assert surface_forms(dictionary_of(f"Ġ{character}"))[4] == f" {chr(byte)}"
    pieces = [f"Ġ{''.join(map(bytes_to_unicode().get, character.encode()))}" for character in "é汉😀\u00ad\u0080"]
    assert surface_forms(dictionary_of(*pieces))[4:-1] == [" é", " 汉", " 😀", " \u00ad", " \u0080"]


def test_ids_are_those_of_the_dictionary(tmp_path):
    assert whole_words(dictionary_of("main", "##ing", "chief")) == {4: "main", 6: "chief"}
    path = write(tmp_path / "encoder.json", {"!": 0, "Ġmain": 5, "The": 7, "ĠcafÃ©": 8})
    assert whole_words(dictionary_of("5", "0", "7", "8", "madeupword0000"), path) == {4: "main", 7: "café"}


@pytest.mark.parametrize("marker", ["▁", "Ġ"])
@pytest.mark.parametrize(("pieces", "marked"), [(199, True), (200, False)])
def test_a_marker_is_on_more_than_one_piece_in_a_hundred(marker, pieces, marked):
    plain = [f"word{number}" for number in range(pieces - 2)]
    words = words_of(*plain, f"{marker}two", f"{marker}three")  # <mask> does not count
    assert words == ["two", "three"] if marked else set(plain) <= set(words)


def test_a_wordpiece_marker_is_on_more_than_one_piece_in_a_hundred():
    for pieces, space in ((99, ""), (100, " ##")):
        dictionary = dictionary_of(*(f"word{number}" for number in range(pieces - 1)), "##s")
        assert surface_forms(dictionary)[dictionary.index("##s")] == f"{space}s"


@pytest.mark.parametrize(
    ("words", "word", "expected"),
    [
        (["total", "sum"], "Total", 0),  # uncased: everything is lower-case
        (["total", "Sum"], "Total", None),
        (["total", "Total"], "Total", 1),
    ],
)
def test_words_are_found_in_the_casing_of_the_dictionary(words, word, expected):
    assert word_finder(dict(enumerate(words)))(word) == expected


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["the", "way", "##s", "##ide", "[SEP]", ",", "café"], " the wayside , café"),
        (["▁The", "▁way", "s", "ide", "<0x0A>", ",", "▁café"], " The wayside, café"),
        (["the", "wayside", ",", "café"], " the wayside , café"),
    ],
)
def test_surface_forms_concatenate_to_the_text(pieces, text):
    dictionary = dictionary_of(*pieces)
    forms = surface_forms(dictionary)
    assert len(forms) == len(dictionary)
    assert "".join(forms[dictionary.index(piece)] for piece in ("<s>", *pieces, "</s>", "<pad>", MASK)) == text
    assert forms[dictionary.unk()] == " <unk>"


def test_surface_forms_of_gpt2_are_decoded_bytes(tmp_path):
    path = write(tmp_path / "encoder.json", {"The": 1, "ĠcafÃ©": 2, "s": 3, "Ġâ": 4})
    forms = surface_forms(dictionary_of("1", "2", "3", "4", "madeupword0000"), path)
    assert forms[4:8] == ["The", " café", "s", " �"]


def continuing(*pieces, encoder_json=None):
    dictionary = dictionary_of(*pieces)
    found = continues_word(dictionary, encoder_json)
    assert len(found) == len(dictionary)
    return {dictionary[index] for index, continues in enumerate(found) if continues}


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ("mer ##le ##1 ##' ##́ dog . ' [SEP] madeupword0000", {"##le", "##1", "##́"}),
        ("▁mer le 1 é ▁dog . 's - ▁ <0x0A> ▁'", {"le", "1", "é"}),
        ("Ġmer le Ã© Ġdog . 's Ċ âĢ Ġ1 1 The", {"le", "Ã©", "1", "The"}),  # âĢ: half a quotation mark
        ("mer le dog . ##", set()),  # a plain list of words
    ],
)
def test_pieces_that_continue_a_word(pieces, expected, tmp_path):
    pieces = pieces.split()
    words = [f"{pieces[0][0] if pieces[0][0] in '▁Ġ' else ''}word{number}" for number in range(300)]
    more = ["##s", "##ing", "##er", "##ed"] if "##le" in pieces else []
    assert continuing(*pieces, *words, *more) == expected | set(more)
    if pieces[0] == "Ġmer":
        path = write(tmp_path / "encoder.json", {piece: number for number, piece in enumerate(pieces)})
        numbers = {str(pieces.index(piece)) for piece in expected}
        assert continuing(*map(str, range(len(pieces))), "madeupword0000", encoder_json=path) == numbers


# Every pre-token of these begins with a space, a letter after a letter, or a punctuation mark after a letter.
ALPHABETS = {
    "Cyrillic": "привет мир, съешь ещё этих булок: 2019 год",
    "Greek": "καλημέρα κόσμε, τι κάνεις;",
    "Chinese": "我们 在北京, 今天 天气很好. 𠀀漢字",
    "Japanese": "こんにちは 世界, カタカナ",
    "Korean": "안녕하세요 세계",
    "accents": "déjà vu, naïve Ångström café ñandú straße",
    "Arabic": "مرحبا بالعالم",
    "emoji": "hello 😀 world 🎉 ok 🚀",
    "mixed": "manж the man” manя, naïveté…",
}


@pytest.fixture(scope="module", params=[0, 1, 40])
def byte_level(request):
    """Byte-level BPE with some merges, which begin and end inside of characters, and its dictionary."""
    learner = ByteLevelBPETokenizer()
    text = [*ALPHABETS.values(), *CONTEXTS.values(), THAI] * 3 + [" a b c d e f g"] * 99
    learner.train_from_iterator(text, vocab_size=257 + request.param, show_progress=False)
    pieces = sorted(learner.get_vocab(), key=learner.get_vocab().get)
    return learner, dictionary_of(*pieces)


def starts_of(byte_level, text):
    tokenizer, dictionary = byte_level
    encoding = tokenizer.encode(text)
    continues = continues_word(dictionary)
    return encoding, [not continues[dictionary.index(piece)] for piece in encoding.tokens]


@pytest.mark.parametrize("text", ALPHABETS.values(), ids=ALPHABETS)
def test_the_bytes_of_a_pre_token_are_one_word(byte_level, text):
    encoding, starts = starts_of(byte_level, text)
    words = encoding.word_ids
    same = [place > 0 and words[place] == words[place - 1] for place in range(len(words))]
    assert max(words) >= 1 and any(same)
    # a first piece may continue a word of the block before; the tokenizer's own words decide about all others
    assert [not start for start in starts[1:]] == same[1:]


THAI = "สวัสดี ชาวโลก"


# what one piece alone does not tell: brackets, digits, full stops and emoji in pieces of a byte each
CONTEXTS = {
    "punctuation": '(man) "the" stop!!! ... «мир» [a]! U.S.A. 3.14 -- e-mail',
    "digits": "a1b 22 33 x2019год 12:30",
    "Chinese": "我们在北京。今天，𠀀漢字（我）1我",
    "Japanese": "こんにちは世界、カタカナ。",
    "emoji": "😀🎉 man😀 😀man, 🚀.",
}


@pytest.mark.parametrize("text", [*ALPHABETS.values(), *CONTEXTS.values()], ids=[*ALPHABETS, *CONTEXTS])
def test_words_of_byte_level_pieces_are_those_of_the_tokenizer(byte_level, text):
    tokenizer, dictionary = byte_level
    encodings = [tokenizer.encode(line) for line in (text, f" {text}", text)]
    ids = [[dictionary.index(piece) for piece in encoding.tokens] for encoding in encodings]
    length = max(map(len, ids))
    rows = np.array([[0, *row, 2, *[1] * (length - len(row))] for row in ids])  # <s>, </s> and padding
    for encoding, starts in zip(encodings, WordStarts(dictionary)(rows), strict=True):
        words = encoding.word_ids
        differs = [place == 0 or words[place] != words[place - 1] for place in range(len(words))]
        assert starts[: len(words) + 2].tolist() == [True, *differs, True]


def test_words_after_tokens_without_text(byte_level):
    dictionary = byte_level[1]
    a, mark = dictionary.index("a"), dictionary.index("!")
    row = [0, a, dictionary.unk(), a, a, dictionary.index(MASK), a, mark, dictionary.unk(), mark, mark, 2]
    expected = [True, True, True, True, False, True, True, True, True, True, False, True]
    assert WordStarts(dictionary)(np.array([row])).tolist() == [expected]


def test_word_starts_of_other_vocabularies_are_their_pieces():
    dictionary = dictionary_of("mer", "##le", "##1", "dog", ".", "!")
    tokens = np.array([[0, 4, 5, 6, 8, 8, 9, 7, 3, 5, 2]])
    assert np.flatnonzero(~WordStarts(dictionary)(tokens)[0]).tolist() == [2, 3, 9]


def test_byte_level_pieces_of_a_language_without_spaces():
    pieces = [*bytes_to_unicode().values(), *(f"{number}x" for number in range(200))]
    assert surface_forms(dictionary_of(*pieces, "æĪĳ"))[-2] == "我"
    assert surface_forms(dictionary_of(*pieces[1:], "æĪĳ"))[-2] == " æĪĳ"  # not all bytes: words


def test_marks_belong_to_their_word(byte_level):
    # unlike GPT-2's pre-tokenizer, which splits at Thai vowels and tones
    encoding, starts = starts_of(byte_level, THAI)
    space = THAI.index(" ")
    assert [place for place, start in enumerate(starts) if place and start] == [
        next(place for place, (begin, _) in enumerate(encoding.offsets) if begin == space)
    ]


def test_a_word_that_a_part_of_a_character_continues():
    pieces = "Ġman Ð ¶ âĢ ĿĠ ð ðŁ Ã © Â ä ã ãĢ ĠÐ ï¿½ ÿ".split()
    assert continuing(*pieces) == set("Ð ¶ ĿĠ ð Ã © ä ã".split())


def test_bytes_of_sentencepiece():
    pieces = ["▁man", "s", *(f"<0x{byte:02X}>" for byte in range(256))]
    words = [f"▁word{number}" for number in range(9)]
    found = continuing(*pieces, *words)
    # U+0436 is D0 B6, and a quotation mark begins with E2
    assert {"<0xD0>", "<0xB6>", "<0xC3>", "<0xF0>", "<0x80>", "s"} <= found
    assert not {"<0xE2>", "<0x0A>", "<0x20>", "<0x2E>", "▁man", *words} & found
    forms = surface_forms(dictionary_of(*pieces, *words))
    assert set(forms[6:262]) == {""}
    assert "<0xD0>" not in continuing("▁man", "<0xD0>", *words)  # without all bytes, it is only a name


@pytest.mark.parametrize("function", [whole_words, surface_forms, continues_word])
def test_encoder_json_is_needed_for_numbers_and_only_for_numbers(function, tmp_path):
    assert "with --encoder-json" in refused(function, dictionary_of("13", "262", "11", "madeupword0000"))
    message = refused(function, dictionary_of("main", "chief"), tmp_path / "encoder.json")
    assert "--encoder-json is only for dictionaries of numbers" in message


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[1, 2]", "a JSON array, not an object"),
        ('{"a": "b"}', "does not map pieces to numbers"),
        ('{"a":\n', "line 2: not valid JSON"),
        ('{"a": 1}', "no piece 13"),
    ],
)
def test_an_invalid_encoder_json_gets_one_line(tmp_path, content, reason):
    path = write(tmp_path / "encoder.json", content)
    message = refused(words_of, "13", "262", encoder_json=path)
    assert str(path) in message and reason in message


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ("main 1980s 1980 東京", "lower"),
        ("Main I", "Capitalized"),
        ("USA 1980S", "UPPER"),
        ("McDonald iPod MAin", "mixed"),
    ],
)
def test_casing(words, pattern):
    assert {casing(word) for word in words.split()} == {pattern}


@pytest.mark.parametrize(
    ("words", "like", "expected"),
    [
        ("Main iPod", "chief", "main ipod"),
        ("main iPod USA", "Chief", "Main Ipod Usa"),
        ("main McDonald", "CHIEF", "MAIN MCDONALD"),
        ("iPod main", "McDonald", "iPod main"),
    ],
)
def test_casing_carries_over_to_every_letter(words, like, expected):
    assert [match_case(word, like) for word in words.split()] == expected.split()


def test_stop_words_are_closed_class():
    assert {"the", "of", "and", "she", "would", "not", "between", "what"} <= STOP_WORDS
    content = "system serious fire bill mill cry interest describe find full little main name part show top side empty"
    assert not STOP_WORDS & set(content.split())
    assert all(word == word.lower() for word in STOP_WORDS)
