"""Attacked questions as a file in SQuAD 1.1's format."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from ...core.errors import InputError
from ...core.files import read_json_object, write_text
from ..formats.squad_json import SquadExample


@dataclass(frozen=True)
class Attacked:
    """An attacked question, and further members of its object in the file, such as what was changed."""

    example: SquadExample
    record: Mapping[str, Any] = field(default_factory=dict)


def check_output(source: Path, output: Path) -> None:
    """Raises InputError if the output would replace the input, or a file that no attack wrote."""
    if not output.exists():
        return
    if output.samefile(source):
        raise InputError(f"--output {output}: is the input; give another file")
    try:
        is_attacked = "attack" in read_json_object(output, "")
    except InputError:
        is_attacked = False
    if not is_attacked:
        raise InputError(f"--output {output}: exists, and no attack wrote it; give another file")


def write_attacked(path: Path, questions: Sequence[Attacked], attack: Mapping[str, Any]) -> None:
    """Write a file in SQuAD 1.1's format with one paragraph per question, completely or not at all.

    ``attack`` describes how the questions were made, and becomes a member of the file, which readers of SQuAD ignore.
    Raises InputError if there are no questions, an answer is not at its offset, or the file cannot be written.
    """
    if not questions:
        raise InputError("no question can be attacked, so nothing is written; see the reasons above")
    data = [
        {"title": title, "paragraphs": [_paragraph(question) for question in group]}
        for title, group in groupby(questions, key=lambda question: question.example.title)
    ]
    content = {"version": "1.1", "attack": dict(attack), "data": data}
    write_text(path, json.dumps(content, ensure_ascii=False) + "\n")


def summary(written: int, skipped: Mapping[str, str]) -> list[str]:
    """Lines that say how many questions were written, and how many were left out for which reason (id -> reason)."""
    left_out = Counter(skipped.values())
    lines = [f"questions: {written + len(skipped):,}, attacked: {written:,}, left out: {len(skipped):,}"]
    return lines + [f"left out because {reason}: {count:,}" for reason, count in left_out.most_common()]


def _paragraph(question: Attacked) -> dict[str, Any]:
    example = question.example
    for text, start in example.answers:
        if not example.context.startswith(text, start):
            raise InputError(f"question {example.id!r}: the answer {text!r} is not at {start} after the attack")
    answers = [{"text": text, "answer_start": start} for text, start in example.answers]
    entry = {"id": example.id, "question": example.question, "answers": answers, **question.record}
    return {"context": example.context, "qas": [entry]}
