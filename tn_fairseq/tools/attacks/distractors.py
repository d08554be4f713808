"""AddSentenceDiverse: sentences that look like the answer to a question, and are not.

Such a sentence is the statement of the altered question with a fake answer, and is added to the context. The idea and
the kinds of rules are those of AddSent (Jia and Liang 2017); the rules are our own.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from ...core.errors import InputError
from ..formats.squad import SquadExample
from .alterations import Names, altered, names_of
from .declarative import Statement, spelled, statement, tokens
from .fake_answers import FakeAnswers, answer_form, content_words, filled, fitting_form, inside_sentence
from .synonym_swaps import drawn
from .tagging import tag

POSITIONS = ("end", "start", "before-answer", "random")
NO_STATEMENT = "no rule makes a statement of them"
NO_ALTERATION = "no word of their statement can be altered"
NO_FAKE_ANSWER = "no answer of another article has the form of theirs"

_Item = TypeVar("_Item")


class Draw:
    """Draws that depend only on the seed and the id of a question, on any machine and in any version of Python."""

    def __init__(self, seed: int, id: str):
        self._seed, self._id, self._count = seed, id, 0

    def choice(self, items: Sequence[_Item]) -> _Item:
        """One of the items, all with the same probability."""
        self._count += 1
        return items[drawn(self._seed, self._id, self._count) % len(items)]


@dataclass(frozen=True)
class Question:
    """What a distractor needs to know of a question: its statement, and the form of its first answer.

    ``answer`` is the first answer as it would be inside a sentence. ``names`` are the names in the question, and
    ``words`` its words.
    """

    example: SquadExample
    article: str
    statement: Statement | None
    form: str
    answer: str
    names: tuple[str, ...]
    words: tuple[str, ...]


def read_question(labeled: tuple[SquadExample, str]) -> Question:
    """Tag a question and its first answer, for an example and what identifies its article."""
    example, article = labeled
    text = example.question.strip()
    question = tokens(text, tag(text))
    first, _ = example.answers[0]
    answer = tokens(first, tag(first))
    form = answer_form(answer)
    return Question(
        example=example,
        article=article,
        statement=statement(question),
        form=form,
        answer=inside_sentence(answer, form).strip(" ."),
        names=tuple(names_of(question)),
        words=tuple(token.text for token in question),
    )


class Distractors:
    """Makes the distractors of a file's questions, from all questions and answers of the file.

    Raises InputError if there are too few articles to draw fake answers from.
    """

    def __init__(self, questions: Sequence[Question]):
        if len({question.article for question in questions}) < 2:
            raise InputError(
                "all questions are about one article, but fake answers are the answers of other articles; "
                "give a file with at least 2 articles"
            )
        frequencies = Counter(word for question in questions for word in question.words)
        self._names = Names(Counter(name for question in questions for name in question.names), frequencies)
        self._fakes = FakeAnswers()
        for question in questions:
            asked = question.statement.asked if question.statement else ""
            self._fakes.add(asked, question.form, question.answer, question.article)

    def sentence(self, question: Question, seed: int) -> tuple[str | None, str]:
        """The distractor of a question, or None, and the reason why there is none."""
        if question.statement is None:
            return None, NO_STATEMENT
        example, draw = question.example, Draw(seed, question.example.id)
        used = frozenset(re.findall(r"\w+", f"{example.context} {example.question}".lower()))
        changed = altered(question.statement, self._names, used, draw.choice)
        if changed is None:
            return None, NO_ALTERATION
        form = fitting_form(changed, question.form)
        golds = frozenset().union(*(content_words(text) for text, _ in example.answers))
        excluded = golds | content_words(spelled([*changed.before, *changed.after]))
        context = example.context.lower()

        def is_fake(text: str) -> bool:
            words = content_words(text)
            return bool(words) and not words & excluded and text.lower() not in context

        candidates = self._fakes.candidates(changed.asked, form, question.article, is_fake)
        if not candidates:
            return None, NO_FAKE_ANSWER
        return filled(changed, form, draw.choice(candidates)), ""


def articles(examples: Sequence[SquadExample]) -> list[str]:
    """What identifies the article of each example: its title, or its context if all titles are the same."""
    is_titled = len({example.title for example in examples}) > 1
    return [example.title if is_titled else example.context for example in examples]


def with_sentence(example: SquadExample, sentence: str, position: str, draw: Draw) -> SquadExample:
    """The example with the sentence in its context, at one of POSITIONS, and its answers at their new offsets."""
    context = example.context
    place = _place(example, position, draw)
    before, after = context[:place], context[place:]
    added = (" " if before and not before[-1].isspace() else "") + sentence
    added += " " if after and not after[0].isspace() else ""
    answers = tuple((text, start + len(added) if start >= place else start) for text, start in example.answers)
    return replace(example, context=before + added + after, answers=answers)


def _place(example: SquadExample, position: str, draw: Draw) -> int:
    """Where the sentence is inserted in the context."""
    context, answers = example.context, example.answers
    if position == "end":
        return len(context)
    if position == "start":
        return 0
    places = sorted({0, *_sentence_starts(context)})
    outside = [place for place in places if not any(begin < place < begin + len(text) for text, begin in answers)]
    if position == "random":
        return draw.choice([*outside, len(context)])
    return max(place for place in outside if place <= answers[0][1])


@lru_cache(maxsize=64)  # the questions of a context follow each other
def _sentence_starts(context: str) -> list[int]:
    """The first character of each sentence, which may be a quotation mark; *Read & Co. (which* is one sentence."""
    firsts = [word.start for word in tag(context) if word.begins_sentence and not word.text[0].islower()]
    return [max(context.rfind(space, 0, start) for space in " \t\n") + 1 for start in firsts]
