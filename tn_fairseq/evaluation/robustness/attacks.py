"""Attacked data, paired with what it was before the attack."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import InputError
from ...files import read_json, read_json_object
from ...formats.glue import TASKS, Examples, GlueTask, read_examples
from ...formats.squad import SquadExample, read_labeled_squad
from .runs import SQUAD

ATTACK = "attack.json"  # in an attacked GLUE folder
# what each key of AdvGLUE's dev.json holds: a task and a split
ADVGLUE = {
    "sst2": ("SST-2", "valid"),
    "qqp": ("QQP", "valid"),
    "mnli": ("MNLI", "valid"),
    "mnli-mm": ("MNLI", "valid1"),
    "qnli": ("QNLI", "valid"),
    "rte": ("RTE", "valid"),
}
# in the order of the Hugging Face Hub's numbers, where it is not ours
_ADVGLUE_LABELS = {"MNLI": ("entailment", "neutral", "contradiction")}
_GLUE_REMEDY = "give a folder of attacked GLUE files, or AdvGLUE's dev.json"


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
    names = [path.resolve().stem for path in attacked]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--attacked: two are named {name}; rename one, because results have these names")
    if original is not None and not original.is_dir():
        return _squad_attacks(original, dict(zip(names, attacked)))
    found = []
    for name, path in zip(names, attacked):
        found += _glue_attacks(name, original, path) if path.is_dir() else _advglue(name, path)
    return found


def _squad_attacks(original: Path, attacked: dict[str, Path]) -> list[Attack]:
    before = {example.id: example for example in read_labeled_squad(original)}
    found = []
    for name, path in attacked.items():
        after = read_labeled_squad(path)
        for example in after:
            if example.id not in before:
                raise InputError(
                    f"{path}: question {example.id!r} is not in {original}; give the file that was attacked as "
                    "--original"
                )
        settings = read_json(path, "", "utf-8-sig").get("attack")
        pairs = [_squad_example(before[example.id]) for example in after], list(map(_squad_example, after))
        found.append(Attack(name, path, SQUAD, SQUAD, *pairs, len(before), settings))
    return found


def _squad_example(example: SquadExample) -> Example:
    return Example((example.question, example.context), tuple(text for text, _ in example.answers))


def _glue_attacks(name: str, original: Path | None, folder: Path) -> Iterator[Attack]:
    if original is None:
        raise InputError(f"{folder}: give the folder that was attacked as --original")
    description = read_json_object(folder / ATTACK, _GLUE_REMEDY)
    changed = description.get("changed")
    if not isinstance(changed, dict) or not any(changed.values()):
        raise InputError(
            f'{folder / ATTACK}: must have the changed rows of at least one file in "changed"; attack again'
        )
    for file, rows in changed.items():
        task, split = _task_and_split(file, folder / ATTACK)
        before, after = (read_examples(root / task.name, task, split) for root in (original, folder))
        _check_rows(rows, before, after, original / file, folder / file)
        if rows:
            pairs = [[_glue_example(examples, row) for row in rows] for examples in (before, after)]
            data = _data_name(task, split)
            yield Attack(name, folder, task.name, data, *pairs, len(before.labels), description.get("attack"))


def _task_and_split(file: str, place: Path) -> tuple[GlueTask, str]:
    name, _, file_name = file.partition("/")
    if name in TASKS and TASKS[name].metrics[0] == "accuracy":
        for split, split_name in TASKS[name].splits.items():
            if split_name == file_name and split.startswith("valid"):
                return TASKS[name], split
    raise InputError(f"{place}: {file!r} is not a dev file of a task that is scored by accuracy; attack again")


def _check_rows(rows: Any, before: Examples, after: Examples, original: Path, attacked: Path) -> None:
    """Raises InputError unless the files have the same rows with the same labels, except for the changed sentences."""
    if len(before.labels) != len(after.labels):
        raise InputError(
            f"{attacked}: {len(after.labels):,} rows, but {original} has {len(before.labels):,}; give the folder that "
            "was attacked as --original"
        )
    numbers = range(len(before.labels))
    if not isinstance(rows, list) or len(set(map(str, rows))) < len(rows) or any(row not in numbers for row in rows):
        raise InputError(
            f"{attacked.parent.parent / ATTACK}: the changed rows of {attacked.name} must be different numbers from 0 "
            f"to {len(numbers) - 1}; attack again"
        )
    changed = set(rows)
    for row, one, other in zip(numbers, zip(*before.sentences), zip(*after.sentences)):
        if before.labels[row] != after.labels[row] or (one != other and row not in changed):
            raise InputError(
                f"{attacked}: row {row} (from 0) is not that of {original}; give the folder that was attacked as "
                "--original"
            )


def _glue_example(examples: Examples, row: int) -> Example:
    return Example(tuple(column[row] for column in examples.sentences), (examples.labels[row],))


def _advglue(name: str, path: Path) -> Iterator[Attack]:
    content = read_json_object(path, _GLUE_REMEDY, "utf-8-sig")
    if not content or not content.keys() <= ADVGLUE.keys():
        raise InputError(
            f"{path}: its keys must be among {', '.join(ADVGLUE)}; {_GLUE_REMEDY}; for SQuAD, give the file that was "
            "attacked as --original"
        )
    for key, rows in content.items():
        task_name, split = ADVGLUE[key]
        task = TASKS[task_name]
        if not isinstance(rows, list) or not rows:
            raise InputError(f"{path}: {key}: must be a list of examples; {_GLUE_REMEDY}")
        examples = [_advglue_example(row, task, f"{path}: {key}[{number}]") for number, row in enumerate(rows)]
        yield Attack(name, path, task_name, _data_name(task, split), None, examples, len(examples), None)


def _advglue_example(row: Any, task: GlueTask, place: str) -> Example:
    columns = task.hub_sentences or task.sentences
    if not isinstance(row, dict) or not all(isinstance(row.get(column), str) for column in columns):
        raise InputError(f"{place}: must have the texts {', '.join(columns)}; {_GLUE_REMEDY}")
    labels, label = _ADVGLUE_LABELS.get(task.name, task.labels), row.get("label")
    if type(label) is not int or label not in range(len(labels)):
        raise InputError(f"{place}.label: must be a number from 0 to {len(labels) - 1}, not {label!r}; correct it")
    return Example(tuple(row[column] for column in columns), (labels[label],))


def _data_name(task: GlueTask, split: str) -> str:
    return f"{task.name} mismatched" if split == "valid1" else task.name
