import pytest

from tn_fairseq.synonyms.contrasts import is_contrast

CONTRASTS = {
    "names": "november april, monday tuesday, finland estonia, american british, americans germans, french german",
    "names that WordNet does not know": "joel greta",
    "numbers": "five six, fifth sixth, five hundred, 1990s 1980s",
    "antonyms": "large small, good bad, happy unhappy",
    "antonyms of their base forms": "bigger smaller, increased decreased",
}
OTHERS = {
    "synonyms": "primary main, stay remain, large huge, stone rock",
    "names of the same thing": "america usa, jan january",
    "numbers of the same value": "dozen twelve",
    "names, but not in their first senses": "man guy",  # the Isle of Man and Guy Fawkes
    "a name and another word": "finland country, joel name",
    "a number and another word": "five several",
    "an adjective that is also a number": "important cardinal",
}


@pytest.mark.parametrize("kind", [*CONTRASTS, *OTHERS])
def test_names_numbers_and_antonyms_are_contrasts(reader, kind):
    for pair in (CONTRASTS | OTHERS)[kind].split(", "):
        word, other = pair.split()
        for one, two in ((word, other), (other, word), (word.upper(), other.capitalize())):
            assert is_contrast(reader, one, two) == (kind in CONTRASTS), pair
