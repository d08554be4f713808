"""Attacked sentences in the official files of GLUE's development data."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import InputError
from ...core.files import publish, read_text, write_folder, write_text
from ..formats.glue import GlueTask, read_rows
from ..formats.glue import choose_tasks as choose_among

# CoLA is left out because a synonym may change whether a sentence is acceptable, and STS-B because of its fine scale.
ATTACKED = ("SST-2", "MRPC", "QQP", "MNLI", "QNLI", "RTE")
RECORD = "attack.json"


@dataclass(frozen=True)
class DevFile:
    """A file of development data, such as ``MNLI/dev_matched.tsv``.

    ``numbers`` are the line number, from 1, and ``sentences`` the one or two sentences of each example. They are in
    the columns ``places``.
    """

    name: str
    content: str
    numbers: list[int]
    places: list[int]
    sentences: list[list[str]]


def read_dev_files(folder: Path, task: GlueTask) -> list[DevFile]:
    """Read the development data of a task in the GLUE download; raises InputError as ``read_examples`` does."""
    files = []
    for split, name in task.splits.items():
        if split.startswith("valid"):
            path = folder / task.name / name
            columns, rows, _ = read_rows(path, task, labeled=True)
            places = [columns.index(column) for column in task.sentences]
            sentences = [[cells[place] for place in places] for _, cells in rows]
            content = read_text(path, "use the file from the GLUE download")
            files.append(DevFile(f"{task.name}/{name}", content, [number for number, _ in rows], places, sentences))
    return files


def replace_sentences(file: DevFile, sentences: Sequence[Sequence[str]]) -> str:
    """The content of a file with other sentences, in the order of ``file.sentences``; all else stays."""
    lines = file.content.split("\n")
    for number, texts in zip(file.numbers, sentences):
        line = lines[number - 1]
        cells = line.removesuffix("\r").split("\t")
        for place, text in zip(file.places, texts):
            cells[place] = text
        lines[number - 1] = "\t".join(cells) + "\r" * line.endswith("\r")
    return "\n".join(lines)


def choose_tasks(names: str, folder: Path) -> list[GlueTask]:
    """The named tasks, or "all" that can be attacked in a GLUE download; raises InputError if one is missing."""
    there = {name for name in ATTACKED if (folder / name).is_dir()}
    return choose_among(names.split(","), there, f"--glue-dir {folder}", "give the GLUE download", ATTACKED)


def check_folder(source: Path, output: Path) -> None:
    """Raises InputError if the output is a file, or a folder that an attack did not write."""
    is_input = output.exists() and output.samefile(source)
    is_foreign = output.exists() and not (output / RECORD).is_file()
    if is_input or is_foreign and not (output.is_dir() and not any(output.iterdir())):
        what = "is the input" if is_input else "exists, and was not written by an attack"
        raise InputError(f"--output {output}: {what}; give a new folder")


def write_attacked_glue(
    folder: Path, files: Mapping[str, str], attack: Mapping[str, Any], changed: Mapping[str, Sequence[int]]
) -> None:
    """Write attacked files (name -> content) and ``attack.json``, which has the attack's settings and what changed.

    ``changed`` has for each file the numbers of the examples that changed, from 0. The files of an earlier attack in
    the folder are deleted. Raises InputError if the folder cannot be written.
    """
    with write_folder(folder, "--output") as staging:
        for name, content in files.items():
            (staging / name).parent.mkdir(exist_ok=True)
            (staging / name).write_text(content, encoding="utf-8", newline="")
        write_text(staging / RECORD, json.dumps({"attack": dict(attack), "changed": dict(changed)}) + "\n")
        publish(staging, folder, last=RECORD, old=[folder / name for name in ATTACKED])
