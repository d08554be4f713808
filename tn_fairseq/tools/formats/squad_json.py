"""SQuAD 1.1: its files."""

import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from ...core.errors import InputError
from ...core.files import member, read_json
from . import load_from_hub

logger = logging.getLogger(__name__)
SPLITS = ("train", "valid", "test")
HUB_DATASET = "rajpurkar/squad"
_REMEDY = "give a file in SQuAD 1.1's JSON format"
_FLAT = f"{_REMEDY}, not an export of Hugging Face's library datasets"
_member = partial(member, remedy=_REMEDY)


@dataclass(frozen=True)
class SquadExample:
    """A question, its context, and its answers: the text and the first character in the context of each.

    ``title`` is that of its article; "" if the file has none.
    """

    id: str
    question: str
    context: str
    answers: tuple[tuple[str, int], ...]
    title: str = ""


def read_squad(path: str | Path) -> list[SquadExample]:
    """Read a file in SQuAD 1.1's format; answers may be missing.

    An answer whose text does not start where the file says is moved to the nearest occurrence; a warning says how many
    were moved. Answers that are not in their context, and questions that have no others, are left out, also with a
    warning. Raises InputError, with the place in the file, for another format, SQuAD 2.0, duplicate ids, or if most
    answers are not in their contexts.
    """
    examples = _examples(_questions(read_json(path, _FLAT, "utf-8-sig"), f"{path}: "), str(path))
    if not examples:
        raise InputError(f"{path}: contains no questions; {_REMEDY}")
    return examples


def read_labeled_squad(path: str | Path) -> list[SquadExample]:
    """Read a file to score; raises InputError as ``read_squad`` does, and if a question has no answers."""
    examples = read_squad(path)
    for example in examples:
        if not example.answers:
            raise InputError(f"{path}: question {example.id} has no answers to compare with; give a labeled file")
    return examples


def examples_from_hub(split: str) -> list[SquadExample]:
    """Load ``train`` or ``validation`` of SQuAD 1.1 from the Hugging Face Hub.

    Raises InputError if the datasets library is not installed or the Hub does not answer.
    """
    remedy = "use local files with --train and --valid"
    rows = load_from_hub(f"{HUB_DATASET} on the Hugging Face Hub", remedy, HUB_DATASET, split=split)
    source = f"{HUB_DATASET}, {split}"
    questions = []
    for number, row in enumerate(rows):
        marked = zip(row["answers"]["text"], row["answers"]["answer_start"])
        answers = [{"text": text, "answer_start": start} for text, start in marked]
        questions.append((f"{source}[{number}].", "", row["context"], row | {"answers": answers}))
    return _examples(questions, source)


def squad_json(examples: Iterable[SquadExample]) -> dict[str, Any]:
    """The examples in SQuAD 1.1's format, as one article."""
    paragraphs = []
    for context, group in groupby(examples, key=lambda example: example.context):
        questions = []
        for example in group:
            answers = [{"text": text, "answer_start": start} for text, start in example.answers]
            questions.append({"id": example.id, "question": example.question, "answers": answers})
        paragraphs.append({"context": context, "qas": questions})
    return {"version": "1.1", "data": [{"title": "", "paragraphs": paragraphs}]}


def _questions(content: object, place: str) -> Iterator[tuple[str, str, str, Any]]:
    """The place in the file, the article's title, the context, and the content of each question."""
    for i, article in enumerate(member(content, "data", list, place, _FLAT)):
        paragraphs = member(article, "paragraphs", list, f"{place}data[{i}].", _FLAT)
        has_title = article.get("title") is not None
        title = _member(article, "title", str, f"{place}data[{i}].") if has_title else ""
        for j, paragraph in enumerate(paragraphs):
            inside = f"{place}data[{i}].paragraphs[{j}]."
            context = _member(paragraph, "context", str, inside)
            for k, question in enumerate(_member(paragraph, "qas", list, inside)):
                yield f"{inside}qas[{k}].", title, context, question


def _examples(questions: Iterable[tuple[str, str, str, Any]], source: str) -> list[SquadExample]:
    """Check the questions, of which ``source`` is the place, and move answers or leave them out."""
    examples, moved, lost = [], 0, []
    places: dict[str, str] = {}
    for place, title, context, question in questions:
        if isinstance(question, dict) and type(question.get("id")) is int:  # as in GermanQuAD
            question = question | {"id": str(question["id"])}
        name = _member(question, "id", str, place)
        if question.get("is_impossible"):
            raise InputError(f"{place}is_impossible: SQuAD 2.0 is not supported; give a SQuAD 1.1 file")
        if name in places:
            raise InputError(f"{place}id: {name!r} is already {places[name]}id; give each question a unique id")
        places[name] = place.removeprefix(f"{source}: ")
        answers = []
        for number, answer in enumerate(_member(question, "answers", list, place) if "answers" in question else ()):
            inside = f"{place}answers[{number}]"
            text, start = _member(answer, "text", str, f"{inside}."), _member(answer, "answer_start", int, f"{inside}.")
            if not text.strip():
                raise InputError(f"{inside}: blank; delete it")
            found = _locate(context, text, start)
            if found is None:
                lost.append(f"{inside}: {text[:60]!r} is not in the context")
            else:
                answers.append((text, found))
                moved += found != start
        text = _member(question, "question", str, place)
        if answers or not question.get("answers"):
            examples.append(SquadExample(name, text, context, tuple(answers), title))
    if len(lost) > sum(len(example.answers) for example in examples):
        raise InputError(f"{lost[0]}, nor are {len(lost) - 1:,} other answers; correct them")
    if lost:
        unanswered = len(places) - len(examples)
        logger.warning(
            f"{source}: {len(lost):,} answers are not in their context and are left out, with {unanswered:,} questions "
            f"that have no others: {lost[0].removeprefix(f'{source}: ')}"
        )
    if moved:
        logger.warning(f"{source}: {moved:,} answers do not start at answer_start; moved to the nearest match")
    return examples


def _locate(context: str, answer: str, start: int) -> int | None:
    """Where the answer starts: at ``start``, or at the nearest occurrence of its text, if there is one."""
    if start >= 0 and context.startswith(answer, start):
        return start
    starts = [match.start() for match in re.finditer(f"(?={re.escape(answer)})", context)]
    return min(starts, key=lambda candidate: abs(candidate - start), default=None)
