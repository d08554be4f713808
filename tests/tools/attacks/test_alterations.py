"""Other words in the place of words."""

from collections import Counter

import pytest

from tn_fairseq.tools.attacks.alterations import (
    Names,
    altered,
    antonyms,
    co_hyponyms,
    name_kind,
    names_of,
    near_numbers,
)
from tn_fairseq.tools.attacks.declarative import Statement, spelled, tokens
from tn_fairseq.tools.attacks.tagging import tag


@pytest.mark.parametrize(
    ("number", "near"),
    [
        ("1880", "1876 1877 1878 1879 1881 1882 1883 1884"),
        ("50", "46 47 48 49 51 52 53 54"),
        ("4", "2 3 5 6 7 8"),
        ("100", "110 120 130 140"),
        ("19th", "15th 16th 17th 18th 20th 21st 22nd 23rd"),
        ("12th", "10th 11th 13th 14th 15th 16th"),
        ("2nd-century", "1st-century 3rd-century 4th-century 5th-century 6th-century"),
        ("2011-2012", "2007-2008 2008-2009 2009-2010 2010-2011 2012-2013 2013-2014 2014-2015 2015-2016"),
        ("four", "two three five six seven eight"),
        ("Third", "Second Fourth Fifth Sixth Seventh"),
        ("May", "January February March April June July August September"),
        *((text, "") for text in ("CO2", "1980s", "1,234", "x", "F-16A", "1a", "may", "first")),
        pytest.param("1" * 5000, "", id="long"),
    ],
)
def test_near_numbers(number, near):
    assert " ".join(near_numbers(number)) == near


def test_antonyms_have_the_form_of_the_word():
    pairs = {("larger", "JJR"): "smaller", ("women", "NNS"): "men", ("public", "JJ"): "private"}
    assert {pair: antonyms(*pair) for pair in pairs} == {pair: (word,) for pair, word in pairs.items()}
    assert antonyms("other", "JJ") == ()


def test_nouns_with_the_same_hypernym():
    assert {"nitrogen", "carbon"} <= set(co_hyponyms("oxygen", "NN", 1)) and "pens" in co_hyponyms("pencils", "NNS", 1)
    assert "nitrogen" not in co_hyponyms("oxygen", "NNS", 1) and co_hyponyms("thing", "NN", 1) == ()
    assert "brook" in co_hyponyms("river", "NN", 1) and "river" not in co_hyponyms("river", "NN", 1)
    # several hyponyms have these names, and not all are their most frequent senses
    assert {"behavior", "occupation", "support"} <= set(co_hyponyms("game", "NN", 1))
    assert "lake" not in co_hyponyms("oxygen", "NN", 2) and "metal" not in co_hyponyms("oxygen", "NN", 1)


def test_kinds_of_names():
    kinds = {"France": "noun.location", "Warsaw": "noun.location", "Rhine": "noun.object", "BBC": "acronym"}
    kinds |= {"Albert Einstein": "noun.person", "Xyzzy Plughs": "2 words"}
    assert {name: name_kind(name).split(",")[0] for name in kinds} == kinds
    assert name_kind("the Rhine") not in (name_kind("Rhine"), name_kind("the Rhines"))


def test_names_in_a_text():
    text = "the Rhine and the Apollo program of Doctor Who, J.P. Morgan's son and Louis XIV"
    assert names_of(tokens(text, tag(text))) == ["the Rhine", "Apollo", "Doctor Who", "J.P. Morgan", "Louis XIV"]


def change(text: str, names: dict[str, int] | None = None, known: str = "", excluded: str = "") -> str | None:
    """The altered text, if the first candidate is always chosen."""
    frequencies = Counter(dict.fromkeys(f"{known} {' '.join(names or ())}".split(), 2))
    words = tuple(tokens(text, tag(text)))
    statement = Statement(words[:2], words[2:], "thing", "what")
    new = altered(statement, Names(names or {}, frequencies), frozenset(excluded.split()), lambda items: items[0])
    return new and spelled([*new.before, *new.after])


def test_names_become_names_of_their_kind():
    names = dict.fromkeys(["France", "Italy", "Spain", "Jesus", "A", "the Rhine", "the Nile"], 2)
    assert change("he left France and Jesus", names) == "he left Italy and Jesus"  # there is no other such name
    assert change("he left France", names, excluded="italy") == "he left Spain"
    assert change("he left the Rhine", names) == "he left the Nile"
    assert change("he left France", dict.fromkeys(names, 1)) is None
    assert change("he left France", names, known="france") is None  # more often a word
    assert change("he saw France and France", names) == "he saw Italy and Italy"


def test_months_and_weekdays():
    assert change("he left in May") == "he left in January"
    assert change("he left on Friday", excluded="monday") == "he left on Tuesday"


def test_other_nouns_and_rare_antonyms_are_the_last_resort():
    known = "private nitrogen carbon women cat cats mouse mice"
    assert change("he saw the public oxygen in 1880", known=known) == "he saw the private oxygen in 1876"
    assert change("he saw popular men", known=known) == "he saw popular women"
    assert change("he saw popular oxygen", known=known) == "he saw unpopular carbon"
    assert change("he saw the oxygen", known=known, excluded="carbon") == "he saw the nitrogen"
    assert change("he saw the oxygen") is None and change("it was there", known=known) is None
    nouns = "carbon nitrogen pen"
    assert (
        change("the oxygen has oxygen, hydrogen and pencil", known=nouns) == "the carbon has carbon, carbon and pencil"
    )
