"""Distractors: fake statements, and where they are in the context."""

from dataclasses import replace

import pytest

from tn_fairseq.core.errors import InputError
from tn_fairseq.tools.attacks.distractors import (
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
from tn_fairseq.tools.formats.squad import SquadExample

# words that occur twice in the data may replace others
WORDS = "Are private old small women nitrogen losers private old small women nitrogen losers lost lost known?"


def read(question: str, answer: str, others: list[tuple[str, str]], context: str = "It is said that") -> list:
    """A question of one article, and questions of another article."""
    own = SquadExample("own", question, f"{context} {answer}.", ((answer, len(context) + 1),), "Own")
    rows = [*others, (WORDS, "yes it is")]
    other = [SquadExample(str(n), text, fake, ((fake, 0),), "Other") for n, (text, fake) in enumerate(rows)]
    return [read_question((example, example.title)) for example in (own, *other)]


def attack(question: str, answer: str, *others: tuple[str, str], **options) -> tuple[str | None, str]:
    questions = read(question, answer, list(others), **options)
    return Distractors(questions).sentence(questions[0], seed=1)


@pytest.fixture
def first(monkeypatch):
    """Draw always the first candidate."""
    monkeypatch.setattr(Draw, "choice", lambda self, items: items[0])


@pytest.mark.parametrize(
    ("question", "answer", "other", "fake", "expected"),
    [
        ("What city won in 1880?", "Prague", "What city?", "Chicago", "The city that won in 1876 was Chicago."),
        ("Who won in 1563?", "John", "Who ran?", "Ada King", "Ada King won in 1559."),
        ("When did the public museum open?", "1999", "When?", "1850", "The private museum opened in 1850."),
        ("When was the new law made?", "May 3", "When?", "6 June 1850", "The old law was made on 6 June 1850."),
        ("Where is the large library?", "Rome", "Where is he?", "Paris", "The small library is in Paris."),
        ("Where did the 12 women go?", "Rome", "Where is he?", "Paris", "The 10 women went in Paris."),
        ("How many men died?", "100", "How many?", "38", "The number of women that died was 38."),
        ("How much did the 3 clubs pay?", "$4 million", "How much?", "$7", "What the 2 clubs paid was $7."),
        ("Why did the men leave?", "the rain", "Why?", "the war", "The women left because of the war."),
        ("How did the 4 men go?", "taking a bus", "How?", "using a car", "The 2 women went by using a car."),
        ("What causes oxygen?", "the heat", "What?", "the winter", "The winter causes nitrogen."),
        ("The ship of 1963 sank when?", "1999", "When?", "1950", "The ship of 1959 sank in 1950."),
        ("What was the name of the 1st ship?", "Tiber", "What?", "Rhine", "The name of the 2nd ship was Rhine."),
    ],
)
def test_distractors(first, question, answer, other, fake, expected):
    assert attack(question, answer, (other, fake)) == (expected, "")


def test_the_reasons_for_no_distractor():
    assert attack("Was it good?", "yes", ("Who?", "John")) == (None, NO_STATEMENT)
    assert attack("Who is he?", "John", ("Who?", "Ada")) == (None, NO_ALTERATION)
    assert attack("Who won in 1990?", "John", ("How many?", "3")) == (None, NO_FAKE_ANSWER)


def test_a_fake_answer_is_neither_in_the_context_nor_like_an_answer():
    question = ("Who won in 1990?", "John Smith")
    assert attack(*question, ("Who?", "Ann Smith"), context="He is") == (None, NO_FAKE_ANSWER)
    assert attack(*question, ("Who?", "Ada King"), context="Ada King is not") == (None, NO_FAKE_ANSWER)
    sentence, _ = attack(*question, ("Who?", "Ann Smith"), ("Who?", "Ada King"), ("Who?", "Ida Lee"), context="Ida Lee")
    assert sentence.startswith("Ada King won in ") and "1990" not in sentence


def test_new_words_are_not_in_the_context():
    numbers = {n for n in range(1980, 2000) if n not in (1990, 1987)}
    context = " ".join(map(str, sorted(numbers)))
    assert attack("Who won in 1990?", "John", ("Who?", "Ada"), context=context) == ("Ada won in 1987.", "")


def test_draws_depend_on_the_seed_and_the_question_only():
    first = {key: Draw(*key).choice(range(1000)) for key in ((1, "a"), (2, "a"), (1, "b"))}
    assert first[1, "a"] == 714 and len(set(first.values())) == 3  # on any machine
    draw = Draw(1, "a")
    assert len({draw.choice(range(1000)) for _ in range(5)}) == 5


CONTEXT = "Cats sleep. Dogs ran to St. Ives. Birds fly."
EXAMPLE = SquadExample("1", "Who?", CONTEXT, (("Dogs", 12), ("Ives. Birds", 28), ("Cats", 0)), "Pets")
QUOTED = SquadExample("1", "Who?", 'Read & Co. (which ran) won. "Cats sleep."', (("Cats", 29),))


@pytest.mark.parametrize(
    ("example", "position", "expected"),
    [
        (EXAMPLE, "end", f"{CONTEXT} Mice ran."),
        (EXAMPLE, "start", f"Mice ran. {CONTEXT}"),
        (EXAMPLE, "before-answer", "Cats sleep. Mice ran. Dogs ran to St. Ives. Birds fly."),
        (replace(EXAMPLE, answers=(("Cats", 0),)), "before-answer", f"Mice ran. {CONTEXT}"),
        (QUOTED, "before-answer", 'Read & Co. (which ran) won. Mice ran. "Cats sleep."'),
        (replace(EXAMPLE, context="", answers=()), "end", "Mice ran."),
    ],
)
def test_positions(example, position, expected):
    moved = with_sentence(example, "Mice ran.", position, Draw(1, "1"))
    assert moved.context == expected
    assert all(moved.context.startswith(text, start) for text, start in moved.answers)
    assert replace(moved, context=example.context, answers=example.answers) == example
    assert [text for text, _ in moved.answers] == [text for text, _ in example.answers]


def test_random_positions_are_between_sentences_and_outside_of_answers():
    found = {with_sentence(EXAMPLE, "Mice ran.", "random", Draw(seed, "1")).context for seed in range(50)}
    assert found == {with_sentence(EXAMPLE, "Mice ran.", position, Draw(1, "1")).context for position in POSITIONS[:3]}


def test_articles_are_known_by_title_or_else_by_context():
    one, other = replace(EXAMPLE, title=""), replace(EXAMPLE, title="", context="Cats.")
    assert articles([one, other]) == [CONTEXT, "Cats."]
    assert articles([EXAMPLE, replace(other, title="Cats")]) == ["Pets", "Cats"]


def test_fake_answers_need_two_articles():
    questions = read("Who won in 1990?", "John", [])
    with pytest.raises(InputError, match="at least 2 articles"):
        Distractors(questions[:1])
