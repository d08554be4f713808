"""The forms of answers, the draws from other articles, and sentences from statements."""

import pickle

import pytest

from tn_fairseq.tools.attacks.declarative import Statement, tokens
from tn_fairseq.tools.attacks.fake_answers import FakeAnswers, answer_form, filled, fitting_form, inside_sentence
from tn_fairseq.tools.attacks.tagging import tag


@pytest.mark.parametrize(
    ("form", "texts"),
    {
        "year": ["1850", "1066 AD"],
        "date": ["May 3, 1999", "6 June 1850", "the 4th of July"],
        "month": ["May 1850"],
        "decade": ["the 1950s", "the late 1950s"],
        "century": ["the 19th century"],
        "percent": ["26.7%", "60 percent"],
        "money": ["$4 million", "£15"],
        "number": ["14,000", "three", "fifty-two thousand"],
        "quantity": ["six weeks", "30 miles"],
        "name": ["Denver Broncos", "Chicago", "University of Chicago"],
        "names": ["John and Mary"],
        "the noun": ["a private member", "the red book of the king"],
        "the nouns": ["the red books of the king"],
        "nouns": ["red books", "cause and effect"],
        "noun": ["red book"],
        "adjective": ["magnetic"],
        "adverb": ["slowly"],
        "gerund": ["taking a bus"],
        "prepositional": ["by taking a bus"],
        "other": ["", "1950s", "he won"],
    }.items(),
)
def test_forms(form, texts):
    assert {text: answer_form(tokens(text, tag(text))) for text in texts} == dict.fromkeys(texts, form)


def test_the_most_specific_kind_with_enough_answers_comes_first():
    fakes = FakeAnswers()
    for number in range(5):
        fakes.add("what city", "name", f"City{number}", "a")
        fakes.add("who", "name", f"Person{number}", "b")
    fakes.add("where", "name", "Place", "c")
    cities = [f"City{number}" for number in range(5)]

    def candidates(asked: str, article: str, allowed=lambda text: True) -> list[str]:
        return fakes.candidates(asked, "name", article, allowed)

    assert candidates("what city", "x") == cities
    assert candidates("where", "x") == [*cities, "Place"]  # a city is a place
    assert candidates("who", "x") == candidates("what king", "x") == [f"Person{number}" for number in range(5)]
    # too few cities in other articles or allowed: places, and at last all names
    assert len(candidates("what city", "a")) == 6 and "Person0" in candidates("what city", "a")
    assert len(candidates("what city", "x", lambda text: text != "City0")) == 5
    assert candidates("what city", "x", lambda text: False) == []
    assert fakes.candidates("what city", "year", "x", lambda text: True) == []
    # processes get a copy, on some systems by pickling
    assert pickle.loads(pickle.dumps(fakes)).candidates("what city", "name", "x", lambda text: True) == cities


def test_answers_that_say_nothing_without_their_text_are_not_drawn():
    fakes = FakeAnswers()
    for text in ("his army", "one two three four five six seven", "war (1850)", "king of", "the one who ran", ""):
        fakes.add("what", "the noun", text, "a")
    assert fakes.candidates("what", "the noun", "b", lambda text: True) == []


def made(role: str, before: str = "it lasted", after: str = "") -> Statement:
    sides = [tuple(token._replace(space=True) for token in tokens(side, tag(side))) for side in (before, after)]
    return Statement(*sides, role, "what")


@pytest.mark.parametrize(
    ("statement", "form", "answer", "expected"),
    [
        (made("time"), "year", "1850", "It lasted in 1850."),
        (made("time"), "date", "May 3, 1850", "It lasted on May 3, 1850."),
        (made("time", "it lasted until"), "year", "1850", "It lasted until 1850."),
        (made("place"), "name", "Rome", "It lasted in Rome."),
        (made("place"), "prepositional", "On the hill", "It lasted on the hill."),
        (made("reason"), "the noun", "the war", "It lasted because of the war."),
        (made("manner"), "gerund", "using a car", "It lasted by using a car."),
        (made("manner"), "the noun", "a war", "It lasted through a war."),
        (made("manner"), "adverb", "slowly", "It lasted slowly."),
        (made("thing", "", "ran"), "the noun", "the cat", "The cat ran."),
        (made("thing", "it is a"), "name", "Irish city", "It is an Irish city."),
        (made("thing", "it is an"), "name", "Roman city", "It is a Roman city."),
        (made("thing", "", "is an FCC rule, they say"), "the noun", "A cat", "A cat is an FCC rule, they say."),
        (made("thing", "it is"), "name", "Star Inc.", "It is Star Inc."),
    ],
)
def test_sentences(statement, form, answer, expected):
    assert filled(statement, form, answer) == expected


@pytest.mark.parametrize(
    ("statement", "form", "expected"),
    [
        (made("time"), "the noun", "year"),
        (made("time"), "date", "date"),
        (made("amount"), "other", "percent"),
        (made("thing", "it used"), "noun", "the noun"),
        (made("thing", "it was"), "adjective", "adjective"),
        (made("thing", "it used"), "adjective", "the noun"),
        (made("manner", "it was"), "adjective", "gerund"),
    ],
)
def test_the_form_fits_the_statement(statement, form, expected):
    assert fitting_form(statement, form) == expected


def test_answers_inside_a_sentence():
    texts = {"Red books": "red books", "The king": "the king", "Chicago": "Chicago", "DNA strands": "DNA strands"}
    texts |= {"A king": "a king", "": "", "May 3": "May 3"}
    words = {text: tokens(text, tag(text)) for text in texts}
    assert {text: inside_sentence(words[text], answer_form(words[text])) for text in texts} == texts
