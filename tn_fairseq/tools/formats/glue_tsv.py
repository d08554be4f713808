"""GLUE: its tasks, and its official files."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...core.errors import InputError
from ...core.files import read_text
from . import load_from_hub

HUB_DATASET = "nyu-mll/glue"
REMEDY = "use the file from the GLUE download"
HIGHEST_SCORE = 5.0  # of a regression; targets are scores divided by it, as in Google's code
SINGLE, PAIR = ("sentence",), ("sentence1", "sentence2")
ENTAILMENT = ("entailment", "not_entailment")
COLA_COLUMNS = ("source", "label", "star", "sentence")
FILES = {"train": "train.tsv", "valid": "dev.tsv", "test": "test.tsv"}
MNLI_FILES = {
    "train": "train.tsv",
    "valid": "dev_matched.tsv",
    "valid1": "dev_mismatched.tsv",
    "test": "test_matched.tsv",
    "test1": "test_mismatched.tsv",
}


@dataclass(frozen=True)
class GlueTask:
    """A task: the format of its files, how long it is trained and how it is measured.

    ``labels`` are in the order of the classes, empty for a regression. ``sentences`` and ``label`` are names of
    columns; ``columns`` are all columns of train and dev if these have no header. The first of ``metrics`` is the one
    that is usually reported. ``splits`` maps our names to file names. The ``hub_`` names are in the order of ours, and
    empty if they are the same.
    """

    name: str
    sentences: tuple[str, ...]
    label: str = "label"
    labels: tuple[str, ...] = ("0", "1")
    metrics: tuple[str, ...] = ("accuracy",)
    epochs: int = 3
    both_orders: bool = False
    has_broken_rows: bool = False
    columns: tuple[str, ...] = ()
    splits: dict[str, str] = field(default_factory=lambda: FILES)
    hub_sentences: tuple[str, ...] = ()
    hub_labels: tuple[str, ...] = ()


F1 = ("accuracy", "f1")
_ALL = [
    GlueTask("CoLA", SINGLE, metrics=("matthews",), columns=COLA_COLUMNS, hub_labels=("unacceptable", "acceptable")),
    GlueTask("SST-2", SINGLE, hub_labels=("negative", "positive")),
    GlueTask(
        "MRPC",
        ("#1 String", "#2 String"),
        "Quality",
        metrics=F1,
        both_orders=True,
        hub_sentences=PAIR,
        hub_labels=("not_equivalent", "equivalent"),
    ),
    GlueTask("STS-B", PAIR, "score", (), ("spearman", "pearson"), epochs=10, both_orders=True),
    # some of QQP's questions contain a line break
    GlueTask(
        "QQP",
        ("question1", "question2"),
        "is_duplicate",
        metrics=F1,
        has_broken_rows=True,
        hub_labels=("not_duplicate", "duplicate"),
    ),
    GlueTask(
        "MNLI",
        PAIR,
        "gold_label",
        ("contradiction", "entailment", "neutral"),
        splits=MNLI_FILES,
        hub_sentences=("premise", "hypothesis"),
    ),
    GlueTask("QNLI", ("question", "sentence"), labels=ENTAILMENT),
    GlueTask("RTE", PAIR, labels=ENTAILMENT, epochs=10),
]
TASKS = {task.name: task for task in _ALL}


@dataclass(frozen=True)
class Examples:
    """One or two lists of sentences and a list of labels, all of the same length; the test splits have no labels.

    ``broken_rows`` counts the rows that were skipped because of a wrong number of columns.
    """

    sentences: list[list[str]]
    labels: list[str] | None
    broken_rows: int = 0


def choose_tasks(names: Sequence[str], there: Container[str], place: str, remedy: str) -> list[GlueTask]:
    """The named tasks, each once, or all that are ``there`` if "all" is named.

    Raises InputError, with the ``place`` and the ``remedy``, if one is not a task, or if one or all are missing.
    """
    if "all" in names:
        names = [name for name in TASKS if name in there]
        if not names:
            raise InputError(f"{place}: contains none of {', '.join(TASKS)}; {remedy}")
    for name in names:
        if name not in TASKS:
            raise InputError(f"--tasks {name}: not one of the possible tasks; give some of {', '.join(TASKS)}")
        if name not in there:
            raise InputError(f"{place}: has no {name}; omit it, or {remedy}")
    return [TASKS[name] for name in dict.fromkeys(names)]


def check_files(folder: Path, task: GlueTask) -> None:
    """Raises InputError if a split is missing that is not a test split."""
    for split, name in task.splits.items():
        if not _is_test(split) and not (folder / name).is_file():
            if folder.parent.is_file():
                raise InputError(f"{folder.parent}: a file, not a folder; unpack it, and give its folder")
            if not folder.is_dir() and (folder.parent / name).is_file():
                raise InputError(f"{folder.parent}: a folder of one task; give the folder that contains {task.name}")
            raise InputError(f"{folder / name}: does not exist; {REMEDY}, or name other tasks with --task")


def read_task(folder: str | Path, task: GlueTask) -> dict[str, Examples]:
    """Read all splits of a task; only test splits may be missing. Raises InputError as ``read_examples`` does."""
    folder = Path(folder)
    return {
        split: read_examples(folder, task, split)
        for split, name in task.splits.items()
        if not _is_test(split) or (folder / name).exists()
    }


def read_examples(folder: str | Path, task: GlueTask, split: str) -> Examples:
    """Read a split from its official file.

    Raises InputError with the file and the line if the format is wrong. In QQP's train and dev, rows with a wrong
    number of columns are skipped, because the published files contain some.
    """
    labeled = not _is_test(split)
    columns, rows, broken_rows = read_rows(Path(folder) / task.splits[split], task, labeled)
    texts = {column: [row[place] for _, row in rows] for place, column in enumerate(columns)}
    return Examples([texts[name] for name in task.sentences], texts[task.label] if labeled else None, broken_rows)


def read_rows(path: Path, task: GlueTask, labeled: bool) -> tuple[Sequence[str], list[tuple[int, list[str]]], int]:
    """The columns of an official file, the line number and the cells of each example, and the number of broken rows.

    Raises InputError as ``read_examples`` does.
    """
    text = read_text(path, REMEDY, "utf-8-sig")
    if not text:
        raise InputError(f"{path}: empty; {REMEDY}")
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    rows = enumerate((line.split("\t") for line in lines), start=1)  # no csv module: quotes are text
    columns = task.columns if labeled and task.columns else next(rows)[1]
    for column in [*task.sentences, *([task.label] if labeled else [])]:
        if column not in columns:
            raise InputError(f"{path}, line 1: no column {column!r}; use {task.name}'s file from the GLUE download")
    examples, broken_rows = [], 0
    for number, row in rows:
        if len(row) == len(columns):
            if labeled:
                _check_label(row[columns.index(task.label)], task, f"{path}, line {number}")
            examples.append((number, row))
        elif labeled and task.has_broken_rows:
            broken_rows += 1
        else:
            raise InputError(f"{path}, line {number}: {len(row)} columns, not {len(columns)}; download the file again")
    if not examples:
        raise InputError(f"{path}: contains no examples; use {task.name}'s file from the GLUE download")
    return columns, examples, broken_rows


def examples_from_hub(task: GlueTask, split: str) -> Examples:
    """Load a split from the Hugging Face Hub.

    Raises InputError if the datasets library is not installed, the Hub does not answer, or the dataset has unexpected
    columns or labels.
    """
    config = task.name.lower().replace("-", "")
    hub_split = Path(task.splits[split]).stem.replace("dev", "validation")
    place, local = f"{HUB_DATASET}, {config}, {hub_split}", "use local files with --glue-dir"
    rows = load_from_hub(place, f"try again, or {local}", HUB_DATASET, config, split=hub_split)
    columns = (*(task.hub_sentences or task.sentences), "label")
    for column in columns:
        if column not in rows.features:
            raise InputError(f"{place}: no column {column!r}; {local}")
    *sentences, labels = ([row[column] for row in rows] for column in columns)
    if _is_test(split):
        return Examples(sentences, None)
    if task.labels:
        names = rows.features["label"].names
        ours = dict(zip(task.hub_labels or task.labels, task.labels))
        if sorted(names) != sorted(ours):
            raise InputError(f"{place}: the labels are {names}, not {list(ours)}; {local}")
        labels = [ours[names[index]] if 0 <= index < len(names) else index for index in labels]
    labels = [str(label) for label in labels]
    for number, label in enumerate(labels):
        _check_label(label, task, f"{place}, example {number}")
    return Examples(sentences, labels)


def _is_test(split: str) -> bool:
    return split.startswith("test")


def _check_label(label: str, task: GlueTask, place: str) -> None:
    if task.labels:
        if label not in task.labels:
            labels = ", ".join(task.labels)
            raise InputError(f"{place}: the label must be one of {labels}, not {label!r}; correct it, or {REMEDY}")
        return
    try:
        is_score = 0 <= float(label) <= HIGHEST_SCORE
    except ValueError:
        is_score = False
    if not is_score:
        raise InputError(f"{place}: the score must be a number from 0 to {HIGHEST_SCORE:g}, not {label!r}; correct it")
