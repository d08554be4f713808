"""Other words in the place of words."""

from collections import Counter

import pytest

from tn_fairseq.attacks.alterations import (
    Names,
    altered,
    antonyms,
    co_hyponyms,
    name_kinds,
    names_of,
    near_numbers,
    near_roman_numbers,
)
from tn_fairseq.attacks.declarative import spelled, tokens
from tn_fairseq.attacks.tagging import tag


@pytest.mark.parametrize(
    ("number", "near", "count"),
    [
        ("1880", ["1871", "1889"], 18),
        ("50", ["41", "59"], 18),
        ("4", ["2", "7"], 5),
        ("100", ["110", "190"], 9),
        ("1,234", ["1,034", "2,134"], 10),
        ("4.5", ["2.5", "7.5"], 5),
        ("19th", ["15th", "23rd"], 8),
        ("1980s", ["1950s", "2010s"], 6),
        ("16th-century", ["12th-century", "20th-century"], 8),
        ("2011-2012", ["2002-2003", "2020-2021"], 18),
        ("four", ["two", "seven"], 5),
        ("Third", ["Second", "Sixth"], 4),
    ],
)
def test_near_numbers(number, near, count):
    found = near_numbers(number)
    assert [found[0], found[-1]] == near and len(found) == len(set(found)) == count and number not in found


def test_what_is_no_number():
    assert [near_numbers(text) for text in ("CO2", "x", "F-16A", "1a")] == [[]] * 4
    assert near_roman_numbers("XLIX") == ["XLVI", "XLVII", "XLVIII", "L", "LI", "LII"]
    assert near_roman_numbers("II") == ["I", "III", "IV", "V"]
    assert near_roman_numbers("I") == near_roman_numbers("IIII") == []


def test_antonyms_have_the_form_of_the_word():
    pairs = {("larger", "JJR"): "smaller", ("women", "NNS"): "men", ("won", "VBD"): "lost", ("public", "JJ"): "private"}
    assert {pair: antonyms(*pair) for pair in pairs} == {pair: (word,) for pair, word in pairs.items()}
    assert antonyms("was", "VBD") == antonyms("the", "DT") == ()


def test_antonyms_that_negate_are_the_last_resort():
    known = "unpopular women small"
    assert change("he saw large popular men", known=known) == "he saw small popular women"
    assert change("he saw popular cats") == "he saw unpopular cats"


def test_nouns_with_the_same_hypernym():
    assert {"nitrogen", "carbon"} <= set(co_hyponyms("oxygen", "NN", 1))
    assert "nitrogen" not in co_hyponyms("oxygen", "NNS", 1) and co_hyponyms("thing", "NN", 1) == ()
    assert "brook" in co_hyponyms("river", "NN", 1)
    assert "lake" not in co_hyponyms("oxygen", "NN", 2) and "metal" not in co_hyponyms("oxygen", "NN", 1)


def test_kinds_of_names():
    assert name_kinds("France") == ("country.n.02",) and name_kinds("the Rhine")[0].endswith(", the")
    assert name_kinds("Warsaw") == name_kinds("Newcastle") == ("city.n.01",)
    assert name_kinds("Harvard University")[:2] == ("2 words, university", "university")
    assert name_kinds("Albert Speer")[0] == "person, 2 words"
    assert name_kinds("BBC") == ("acronym",)
    assert name_kinds("Xyzzy Plugh") == ("unknown, 2 words, singular",)


def test_names_in_a_text():
    text = "the Rhine and the Apollo program of Doctor Who, Charles de Gaulle and Louis XIV"
    assert names_of(tokens(text, tag(text))) == ["the Rhine", "Apollo", "Doctor Who", "Charles de Gaulle", "Louis"]


def change(text: str, names: dict[str, int] | None = None, known: str = "", excluded: str = "") -> str | None:
    """The altered text, if the first candidate is always chosen."""
    frequencies = Counter(dict.fromkeys(f"{known} {' '.join(names or ())}".split(), 2))
    words = tokens(text, tag(text))
    every = Names(names or {}, frequencies)
    sides = altered(words, 2, every, frequencies, frozenset(excluded.split()), lambda items: items[0])
    return None if sides is None else spelled([*sides[0], *sides[1]])


def test_names_become_names_of_their_kind():
    names = dict.fromkeys(["France", "Italy", "Spain", "Poland", "Paris", "Rome", "the Rhine"], 2)
    assert change("he left France and Paris", names) == "he left Italy and Paris"  # there is one other city
    assert change("he left France", names, excluded="italy poland") == "he left Spain"
    assert change("he left France", dict.fromkeys(names, 1)) is None
    assert change("he saw France and France", names) == "he saw Italy and Italy"


def test_months_and_weekdays():
    assert change("he left in May") == "he left in January"
    assert change("he left on Friday", excluded="monday") == "he left on Tuesday"


def test_verbs_and_nouns_change_only_if_nothing_else_can():
    known = "lost losses private nitrogen carbon"
    assert change("they won the public oxygen in 1880", known=known) == "they won the private oxygen in 1871"
    assert change("they won the oxygen", known=known) == "they lost the oxygen"
    assert change("they saw the oxygen", known=known) == "they saw the carbon"
    assert change("they saw the oxygen", known=known, excluded="carbon") == "they saw the nitrogen"
    assert change("they saw the oxygen") is None
    assert change("it was there", known=known) is None
