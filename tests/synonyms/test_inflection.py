from itertools import product

import pytest

from tn_fairseq.synonyms.inflection import Reading, Relation, inflect, lemmas, readings, relation


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("elections", "election NOUN NNS"),
        ("went", "go VERB VBD"),  # the participle is gone
        ("move", "move NOUN NN, move VERB VB"),
        ("bigger", "big ADJ JJR"),
        ("series", "series NOUN NN, series NOUN NNS"),
        ("poll", "poll NOUN NN, poll VERB VB"),  # LemmInflect also lists it as a plural
        ("terrorism", "terrorism NOUN NN"),  # and this
        ("found", "find VERB VBD, find VERB VBN, found VERB VB"),
        ("were", "be VERB VBD"),
        # not in LemmInflect's dictionary
        ("counties", "county NOUN NNS"),
        ("themed", "theme VERB VBD, theme VERB VBN, themed NOUN NN, themed ADJ JJ, themed ADV RB"),
        ("filmmaking", "filmmake VERB VBG, filmmaking NOUN NN, filmmaking ADJ JJ, filmmaking ADV RB"),
        ("sitcom", "sitcom NOUN NN, sitcom ADJ JJ, sitcom ADV RB"),
        ("汉", "汉 NOUN NN, 汉 ADJ JJ, 汉 ADV RB"),
    ],
)
def test_readings(word, expected):
    assert readings(word) == {tuple(reading.split()) for reading in expected.split(", ")}


RELATIONS = {
    Relation.OWN_WORD: "elections election, went go, left leaves, better good, traveled travelled, stay stay",
    # cut is a past like reduced, and a base form like reduce
    Relation.SAME_FORM: "elections polls, requires needs, cut reduced, cut reduce, large small",
    Relation.OTHER_WORD: "elections poll, requires need, went gives, large smaller, quickly rapid",
}


@pytest.mark.parametrize("expected", RELATIONS)
def test_the_relation_of_two_words_is_symmetric_and_ignores_case(expected):
    for pair in RELATIONS[expected].split(", "):
        word, other = pair.split()
        for one, two in ((word, other), (other, word), (word.upper(), other.capitalize())):
            assert relation(one, two) == expected, pair


@pytest.mark.parametrize(
    ("lemmas", "part_of_speech", "forms"),
    [
        ("travel go", "VERB", "VB VBZ VBG VBD VBN"),
        ("leaf sitcom", "NOUN", "NN NNS"),
        ("good", "ADJ", "JJ JJR JJS"),
        ("well", "ADV", "RB RBR RBS"),
    ],
)
def test_readings_and_inflections_are_inverse(lemmas, part_of_speech, forms):
    for lemma, form in product(lemmas.split(), forms.split()):
        spellings = inflect(lemma, part_of_speech, form)
        assert spellings
        for spelling in spellings:
            assert (lemma, part_of_speech, form) in readings(spelling)
            assert relation(lemma, spelling) == Relation.OWN_WORD


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        (("travel", "VERB", "VBD"), ("traveled", "travelled")),
        (("series", "NOUN", "NNS"), ("series",)),
        (("terrorism", "NOUN", "NNS"), ()),
        (("sitcom", "NOUN", "NNS"), ("sitcoms",)),
        (("sitcom", "VERB", "VB"), ("sitcom",)),
        (("quickly", "ADV", "RBR"), ()),
    ],
)
def test_inflect(reading, expected):
    assert inflect(*reading) == expected


def test_lemmas():
    assert lemmas("Left") == {"left", "leave"} and lemmas("counties") == {"county"}
    for word in ("ctg", "cx中", "ipg", "cb'"):  # of which the rules leave no verb
        assert Reading(word, "NOUN", "NN") in readings(word) and "" not in lemmas(word)
