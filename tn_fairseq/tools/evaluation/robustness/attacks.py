"""Attacked questions of SQuAD, paired with what they were before the attack."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ....core.errors import InputError
from ....core.files import read_json
from ...formats.squad import read_labeled_squad


class Example(NamedTuple):
    """What a model reads, a question and its context, and the correct answers."""

    texts: tuple[str, str]
    golds: tuple[str, ...]


@dataclass(frozen=True)
class Attack:
    """An attacked file: its questions and, in the same order, the original ones.

    ``total`` is the number of questions that the attack could have changed. ``settings`` are the attack's own.
    """

    name: str
    path: Path
    originals: Sequence[Example]
    attacked: Sequence[Example]
    total: int
    settings: Any


def read_attacks(original: Path, attacked: Sequence[Path]) -> list[Attack]:
    """Read attacked files in the format of SQuAD.

    Raises InputError for files of another format, attacked questions that are not in the original, and equal names.
    """
    names = [path.resolve().stem for path in attacked]
    before = _read(original)
    attacks: list[Attack] = []
    for name, path in zip(names, attacked):
        if names.count(name) > 1:
            raise InputError(f"--attacked: two are named {name}; rename one, because results have these names")
        after = _read(path)
        for id in after:
            if id not in before:
                raise InputError(f"{path}: question {id!r} is not in {original}; give what was attacked as --original")
        settings = read_json(path, "", "utf-8-sig").get("attack")
        originals = [before[id] for id in after]
        attacks.append(Attack(name, path, originals, list(after.values()), len(before), settings))
    return attacks


def _read(path: Path) -> dict[str, Example]:
    return {
        example.id: Example((example.question, example.context), tuple(text for text, _ in example.answers))
        for example in read_labeled_squad(path)
    }
