"""Distractors: altered statements, and fake answers of the form of the question's own."""

import pickle

import pytest
from files import refused

from tn_fairseq.tools.attacks import distractors
from tn_fairseq.tools.attacks.declarative import tokens
from tn_fairseq.tools.attacks.distractors import (
    Distractors,
    answer_form,
    antonyms,
    name_kind,
    near_numbers,
    read_question,
)
from tn_fairseq.tools.attacks.tagging import tag
from tn_fairseq.tools.formats.squad_json import SquadExample

# words that occur twice in the data may replace others
WORDS = "Are private old small women losers private old small women losers lost lost known?"
NAMES = "Did Italy and Spain and Italy and Spain see France and France?"


def attack(question: str, answer: str, *others: tuple[str, str], context: str = "It is said that"):
    """The distractor of a question, and the reason if there is none, if always the first candidate is chosen."""
    own = SquadExample("own", question, f"{context} {answer}.", ((answer, len(context) + 1),), "Own")
    rows = [*others, (WORDS, "yes it is"), (NAMES, "no it is not")]
    other = [SquadExample(str(n), text, fake, ((fake, 0),), "Other") for n, (text, fake) in enumerate(rows)]
    questions = list(map(read_question, (own, *other)))
    made = pickle.loads(pickle.dumps(Distractors(questions)))  # processes get a copy
    return made.sentence(questions[0], lambda items: items[0])


@pytest.mark.parametrize(
    ("question", "answer", "other", "fake", "expected"),
    [
        ("What city won in 1880?", "Prague", "What city?", "Chicago", "The city that won in 1876 was Chicago."),
        ("Who won in 1563?", "John", "Who ran?", "Ada King", "Ada King won in 1559."),
        ("Who left France?", "John", "Who ran?", "Ada King", "Ada King left Italy."),
        ("When did the public museum open?", "1999", "When?", "1850", "The private museum opened in 1850."),
        ("When was the new law made?", "May 3", "When?", "6 June 1850", "The old law was made on 6 June 1850."),
        ("Where did the 12 women go?", "Rome", "Where is he?", "Paris", "The 10 women went in Paris."),
        ("How many men died?", "100", "How many?", "38", "The number of women that died was 38."),
        ("How much did the 3 clubs pay?", "$4 million", "How much?", "$7", "What the 2 clubs paid was $7."),
        ("Why did the men leave?", "the rain", "Why?", "the war", "The women left because of the war."),
        ("How did the 40 men go?", "a bus", "How?", "a car", "The 36 women went through a car."),
        ("What was the name of the 10 men?", "a ship", "What?", "the cat", "The name of the 11 women was the cat."),
        ("In what year did an old ship sink?", "1999", "When?", "1950", "A small ship sank in 1950."),
    ],
)
def test_distractors(question, answer, other, fake, expected, monkeypatch):
    if "an old ship" in question:
        monkeypatch.setattr(distractors, "antonyms", lambda word, penn: ["small"] if word == "old" else [])
    assert attack(question, answer, (other, fake)) == (expected, "")


def test_the_reasons_for_no_distractor():
    assert attack("Was it good?", "yes", ("Who?", "John")) == (None, "no rule makes a statement of them")
    assert attack("Who is he?", "John", ("Who?", "Ada")) == (None, "no word of their statement can be altered")
    no_fake = (None, "no answer of another article has the form of theirs")
    assert attack("Who won in 1990?", "John", ("How many?", "3")) == no_fake
    # neither in the context nor like an answer, and with a meaning of its own
    for other, context in (("Ann Smith", "He is"), ("Ada King", "Ada King is not"), ("She Ada", "He is")):
        assert attack("Who won in 1990?", "John Smith", ("Who?", other), context=context) == no_fake


def test_no_new_word_is_in_the_context_and_the_kind_of_question_decides():
    numbers = " ".join(str(n) for n in range(1980, 2000) if n not in (1990, 1987))
    assert attack("Who won in 1990?", "John", ("Who?", "Ada"), context=numbers) == ("Ada won in 1987.", "")
    others = [("What city?", "Chicago"), ("Who ran?", "Ida"), ("What city is it?", "Bonn")]
    assert attack("Who won in 1990?", "John", *others)[0].startswith("Ida won ")
    assert attack("What king won in 1990?", "John", *others)[0].endswith(" was Bonn.")


def test_fake_answers_need_two_articles():
    example = SquadExample("1", "Who won in 1990?", "John", (("John", 0),), "Own")
    assert "give a file with at least 2 articles" in refused(Distractors, [read_question(example)] * 2)


@pytest.mark.parametrize(
    ("number", "near"),
    [
        ("1880", "1876 1877 1878 1879 1881 1882 1883 1884"),
        ("4", "2 3 5 6 7 8"),
        ("100", "110 120 130 140"),
        ("four", "two three five six seven eight"),
        ("May", "January February March April June July August September"),
        *((text, "") for text in ("CO2", "1980s", "1,234", "x", "may", "first")),
        pytest.param("1" * 5000, "", id="long"),
    ],
)
def test_near_numbers(number, near):
    # 4 months or numbers before and after
    assert [one for one in near_numbers(number) if one in near.split()] == near_numbers(number) != [number]
    assert bool(near_numbers(number)) == bool(near)


def test_antonyms_have_the_form_of_the_word_and_names_a_kind():
    pairs = {("larger", "JJR"): "smaller", ("women", "NNS"): "men", ("public", "JJ"): "private"}
    assert {pair: antonyms(*pair) for pair in pairs} == {pair: [word] for pair, word in pairs.items()}
    kinds = {"France": "noun.location", "the Rhine": "noun.object", "Albert Einstein": "noun.person"}
    assert {name: name_kind(name) for name in kinds} == kinds and name_kind("Xyzzy Plughs") == "2 words"


@pytest.mark.parametrize(
    ("form", "texts"),
    {
        "year": ["1850"],
        "date": ["May 3, 1999", "6 June 1850", "May 1850"],
        "percent": ["26.7%", "60 percent"],
        "money": ["$4 million", "£15"],
        "number": ["14,000", "three", "2 million"],
        "name": ["Denver Broncos", "Chicago", "University of Chicago", "John and Mary"],
        "noun": ["a private member", "the red book of the king"],
        "nouns": ["the red books of the king", "red books"],
        "other": ["", "he won", "slowly", "by taking a bus"],
    }.items(),
)
def test_forms(form, texts):
    assert {text: answer_form(tokens(text, tag(text))) for text in texts} == dict.fromkeys(texts, form)
