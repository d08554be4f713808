"""Attacked data, paired with what it was before the attack."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ....core.errors import InputError
from ....core.files import read_json, read_json_object
from ...attacks.glue_files import RECORD
from ...formats.glue import TASKS, GlueTask, read_examples
from ...formats.squad import SquadExample, read_labeled_squad
from ..squad import SQUAD

# dev files of the tasks with classes: the task and the split
_DEV_FILES = {
    f"{task.name}/{file}": (task, split)
    for task in TASKS.values()
    for split, file in task.splits.items()
    if task.labels and split.startswith("valid")
}
# what each key of AdvGLUE's dev.json holds
_ADVGLUE = {
    "sst2": "SST-2/dev.tsv",
    "qqp": "QQP/dev.tsv",
    "mnli": "MNLI/dev_matched.tsv",
    "mnli-mm": "MNLI/dev_mismatched.tsv",
    "qnli": "QNLI/dev.tsv",
    "rte": "RTE/dev.tsv",
}
# in the order of the Hugging Face Hub's numbers, where it is not ours
_ADVGLUE_LABELS = {"MNLI": ("entailment", "neutral", "contradiction")}
_GIVE_ORIGINAL = "give what was attacked as --original"
_GIVE_GLUE = "give a folder of attacked GLUE files, or AdvGLUE's dev.json"


class Example(NamedTuple):
    """What a model reads, a question and its context or one or two sentences, and the correct answers."""

    texts: tuple[str, ...]
    golds: tuple[str, ...]


@dataclass(frozen=True)
class Attack:
    """One attack on one set of data: the attacked examples and, in the same order, the original ones.

    ``data`` is the task or a part of it, such as "MNLI mismatched". ``originals`` is None for data without. ``total``
    is the number of examples that the attack could have changed. ``settings`` are the attack's own.
    """

    name: str
    path: Path
    task: str
    data: str
    originals: Sequence[Example] | None
    attacked: Sequence[Example]
    total: int
    settings: Any


def read_attacks(original: Path | None, attacked: Sequence[Path]) -> list[Attack]:
    """Read attacked files of SQuAD if ``original`` is a file, otherwise attacked folders of GLUE and AdvGLUE's file.

    Raises InputError for files of another format, attacked examples that are not in the original, and equal names.
    """
    names = [path.resolve().name if path.is_dir() else path.resolve().stem for path in attacked]
    attacks: list[Attack] = []
    for name, path in zip(names, attacked):
        if names.count(name) > 1:
            raise InputError(f"--attacked: two are named {name}; rename one, because results have these names")
        if original is not None and not original.is_dir():
            attacks.append(_squad_attack(name, original, path))
        else:
            attacks += _glue_attacks(name, original, path) if path.is_dir() else _advglue(name, path)
    return attacks


def _squad_attack(name: str, original: Path, attacked: Path) -> Attack:
    before = {example.id: _squad_example(example) for example in read_labeled_squad(original)}
    after = {example.id: _squad_example(example) for example in read_labeled_squad(attacked)}
    for id in after:
        if id not in before:
            raise InputError(f"{attacked}: question {id!r} is not in {original}; {_GIVE_ORIGINAL}")
    settings = read_json(attacked, "", "utf-8-sig").get("attack")
    originals = [before[id] for id in after]
    return Attack(name, attacked, SQUAD, SQUAD, originals, list(after.values()), len(before), settings)


def _squad_example(example: SquadExample) -> Example:
    return Example((example.question, example.context), tuple(text for text, _ in example.answers))


def _glue_attacks(name: str, original: Path | None, folder: Path) -> Iterator[Attack]:
    if original is None:
        raise InputError(f"{folder}: {_GIVE_ORIGINAL}")
    place = folder / RECORD
    description = read_json_object(place, _GIVE_GLUE)
    changed = description.get("changed")
    if not isinstance(changed, dict) or not any(changed.values()):
        raise InputError(f'{place}: must have the changed rows of at least one file in "changed"; attack again')
    for file, rows in changed.items():
        if file not in _DEV_FILES:
            raise InputError(f"{place}: {file!r} is not a dev file of a task with classes; attack again")
        task, split = _DEV_FILES[file]
        before, after = (_glue_examples(root, task, split) for root in (original, folder))
        numbers = range(len(before))
        if len(after) != len(before):
            raise InputError(
                f"{folder / file}: {len(after):,} rows, but {original / file} has {len(before):,}; {_GIVE_ORIGINAL}"
            )
        are_rows = isinstance(rows, list) and all(type(row) is int and row in numbers for row in rows)
        if not are_rows or len(changed_rows := set(rows)) < len(rows):
            raise InputError(
                f"{place}: the changed rows of {file} must be different numbers from 0 to {len(before) - 1}; attack "
                "again"
            )
        for row, one, other in zip(numbers, before, after):
            if one.golds != other.golds or (one != other and row not in changed_rows):
                raise InputError(
                    f"{folder / file}: row {row} (from 0) is not that of {original / file}; {_GIVE_ORIGINAL}"
                )
        if rows:
            sides = [before[row] for row in rows], [after[row] for row in rows]
            settings = description.get("attack")
            yield Attack(name, folder, task.name, _data_name(task, split), *sides, len(before), settings)


def _glue_examples(root: Path, task: GlueTask, split: str) -> list[Example]:
    examples = read_examples(root / task.name, task, split)
    return [Example(texts, (label,)) for texts, label in zip(zip(*examples.sentences), examples.labels or ())]


def _advglue(name: str, path: Path) -> Iterator[Attack]:
    content = read_json_object(path, _GIVE_GLUE, "utf-8-sig")
    if not content or not content.keys() <= _ADVGLUE.keys():
        raise InputError(
            f"{path}: its keys must be among {', '.join(_ADVGLUE)}; {_GIVE_GLUE}; for SQuAD, {_GIVE_ORIGINAL}"
        )
    for key, rows in content.items():
        task, split = _DEV_FILES[_ADVGLUE[key]]
        if not isinstance(rows, list) or not rows:
            raise InputError(f"{path}: {key}: must be a list of examples; {_GIVE_GLUE}")
        examples = [_advglue_example(row, task, f"{path}: {key}[{number}]") for number, row in enumerate(rows)]
        yield Attack(name, path, task.name, _data_name(task, split), None, examples, len(examples), None)


def _advglue_example(row: Any, task: GlueTask, place: str) -> Example:
    columns = task.hub_sentences or task.sentences
    if not isinstance(row, dict) or not all(isinstance(row.get(column), str) for column in columns):
        raise InputError(f"{place}: must have the texts {', '.join(columns)}; {_GIVE_GLUE}")
    labels, label = _ADVGLUE_LABELS.get(task.name, task.labels), row.get("label")
    if type(label) is not int or label not in range(len(labels)):
        raise InputError(f"{place}.label: must be a number from 0 to {len(labels) - 1}, not {label!r}; correct it")
    return Example(tuple(row[column] for column in columns), (labels[label],))


def _data_name(task: GlueTask, split: str) -> str:
    return f"{task.name} mismatched" if split == "valid1" else task.name
