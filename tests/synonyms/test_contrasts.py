import pytest

from tn_fairseq.synonyms.contrasts import is_contrast


@pytest.mark.parametrize(
    "pair",
    [
        "november april",
        "monday tuesday",
        "finland estonia",
        "american british",
        "americans germans",
        "french german",
        "joel greta",  # not in WordNet
        "five six",
        "fifth sixth",
        "five hundred",
        "1990s 1980s",
        "large small",
        "good bad",
        "bigger smaller",
        "increased decreased",  # antonyms of their base forms
        "happy unhappy",
    ],
)
def test_names_numbers_and_antonyms_are_contrasts(reader, pair):
    word, other = pair.split()
    assert is_contrast(reader, word, other) and is_contrast(reader, other, word)
    assert is_contrast(reader, word.upper(), other.capitalize())


@pytest.mark.parametrize(
    "pair",
    [
        "primary main",
        "stay remain",
        "large huge",
        "america usa",  # names of one country
        "jan january",
        "dozen twelve",
        "man guy",  # WordNet also knows the Isle of Man and Guy Fawkes, but not as first senses
        "stone rock",
        "finland country",  # a name and another word
        "joel name",
        "five several",
        "important cardinal",  # cardinal is an adjective like important, not a number
    ],
)
def test_other_pairs_are_not(reader, pair):
    word, other = pair.split()
    assert not is_contrast(reader, word, other) and not is_contrast(reader, other, word)
