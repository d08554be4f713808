"""Distractors: fake statements, and where they are in the context."""

from dataclasses import replace

import pytest

from tn_fairseq.attacks.distractors import (
    NO_ALTERATION,
    NO_FAKE_ANSWER,
    NO_STATEMENT,
    POSITIONS,
    Distractors,
    Draw,
    articles,
    read_question,
    with_sentence,
)
from tn_fairseq.errors import InputError
from tn_fairseq.preprocessing.squad_data import SquadExample

# words that occur twice in the data may replace others
WORDS = "Are private old small women nitrogen losers private old small women nitrogen losers lost lost known?"


def read(question: str, answer: str, others: list[tuple[str, str]], context: str = "It is said that") -> list:
    """A question of one article, and questions of another article."""
    own = SquadExample("own", question, f"{context} {answer}.", ((answer, len(context) + 1),), "Own")
    rows = [*others, (WORDS, "yes it is")]
    other = [SquadExample(str(n), text, fake, ((fake, 0),), "Other") for n, (text, fake) in enumerate(rows)]
    return [read_question(example, example.title) for example in (own, *other)]


def attack(question: str, answer: str, *others: tuple[str, str], **options) -> tuple[str | None, str]:
    questions = read(question, answer, list(others), **options)
    return Distractors(questions).sentence(questions[0], seed=1)


@pytest.fixture
def first(monkeypatch):
    """Draw always the first candidate."""
    monkeypatch.setattr(Draw, "choice", lambda self, items: items[0])


@pytest.mark.parametrize(
    ("question", "answer", "other", "expected"),
    [
        (
            "What city did Tesla move to in 1880?",
            "Prague",
            ("What city won?", "Chicago"),
            "Tesla moved to Chicago in 1871.",
        ),
        ("Who designed the garden in 1563?", "John", ("Who ran?", "Ada King"), "Ada King designed the garden in 1554."),
        ("When did the public museum open?", "1999", ("When?", "1850"), "The private museum opened in 1850."),
        (
            "When was the new museum opened?",
            "May 3, 1999",
            ("When?", "4 May 1850"),
            "The old museum was opened on 4 May 1850.",
        ),
        ("Where is the large library?", "Rome", ("Where is he?", "Paris"), "The small library is in Paris."),
        ("Where did the 12 women go?", "Rome", ("Where is he?", "Paris"), "The 11 women went to Paris."),
        ("How many men died in the riot?", "100", ("How many?", "38"), "38 women died in the riot."),
        ("How much did the 3 clubs pay?", "$4 million", ("How much?", "$7"), "The 1 clubs paid $7."),
        (
            "Why did the men leave in May?",
            "the rain",
            ("Why?", "the war"),
            "The women left in April because of the war.",
        ),
        (
            "How did the 4 men travel?",
            "by taking a bus",
            ("How?", "using gas"),
            "The two women travelled by using gas.",
        ),
        (
            "How long did the 2nd war last?",
            "five days",
            ("How long?", "six weeks"),
            "The 1st war lasted for six weeks.",
        ),
        ("How old was the 5th king?", "20 years", ("How old?", "three months"), "The 1st king was three months old."),
        ("What does oxygen cause in fires?", "the heat", ("What?", "the cold"), "Nitrogen causes the cold in fires."),
        ("The team won when?", "1999", ("When?", "the 1950s"), "The team lost in 1950s."),
        ("What was the name of the 1st ship?", "Ajax", ("What?", "Nile"), "The name of the 2nd ship was Nile."),
    ],
)
def test_distractors(first, question, answer, other, expected):
    assert attack(question, answer, other) == (expected, "")
