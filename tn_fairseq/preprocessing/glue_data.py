"""GLUE: its tasks, its official files, and the folders that fairseq's ``sentence_prediction`` task reads.

A task's folder contains ``input0/`` and, for pairs, ``input1/``, each with ``dict.txt`` and the ``.bin`` and ``.idx``
of each split, ``label/``, and ``lengths.json`` with the ``max_length``. A row is a sentence with its ``</s>``. With
``--init-token 0`` the model's input is ``<s> a </s>`` or ``<s> a </s> b </s>``.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary
from tqdm import tqdm

from ..errors import InputError, first_line
from ..files import publish, read_text, write_folder
from ..tokenizers.base import Tokenizer
from .binarization import LENGTHS, dict_txt, released_dictionary
from .writers import BinaryWriter

HUB_DATASET = "nyu-mll/glue"
HIGHEST_SCORE = 5.0  # of a regression; targets are scores divided by it, as in Google's code
BATCH = 10_000  # sentences encoded at a time
PAIR = ("sentence1", "sentence2")
ENTAILMENT = ("entailment", "not_entailment")


@dataclass(frozen=True)
class GlueTask:
    """A task: the format of its files, how long it is trained and how it is measured.

    ``labels`` are in the order of the classes, empty for a regression. ``sentences`` and ``label`` are names of
    columns; ``columns`` are all columns of train and dev if these have no header. The first of ``metrics`` is the one
    that is usually reported. ``splits`` maps our names to file names. The ``hub_`` names are in the order of ours, and
    empty if they are the same.
    """

    name: str
    labels: tuple[str, ...]
    sentences: tuple[str, ...]
    label: str
    metrics: tuple[str, ...]
    epochs: int = 3
    both_orders: bool = False
    has_broken_rows: bool = False
    columns: tuple[str, ...] = ()
    splits: dict[str, str] = field(
        default_factory=lambda: {"train": "train.tsv", "valid": "dev.tsv", "test": "test.tsv"}
    )
    hub_sentences: tuple[str, ...] = ()
    hub_labels: tuple[str, ...] = ()


TASKS = {
    task.name: task
    for task in (
        GlueTask(
            "CoLA",
            ("0", "1"),
            ("sentence",),
            "label",
            ("matthews",),
            columns=("source", "label", "star", "sentence"),
            hub_labels=("unacceptable", "acceptable"),
        ),
        GlueTask("SST-2", ("0", "1"), ("sentence",), "label", ("accuracy",), hub_labels=("negative", "positive")),
        GlueTask(
            "MRPC",
            ("0", "1"),
            ("#1 String", "#2 String"),
            "Quality",
            ("accuracy", "f1"),
            both_orders=True,
            hub_sentences=PAIR,
            hub_labels=("not_equivalent", "equivalent"),
        ),
        GlueTask("STS-B", (), PAIR, "score", ("spearman", "pearson"), epochs=10, both_orders=True),
        GlueTask(
            "QQP",
            ("0", "1"),
            ("question1", "question2"),
            "is_duplicate",
            ("accuracy", "f1"),
            has_broken_rows=True,  # some questions contain a line break
            hub_labels=("not_duplicate", "duplicate"),
        ),
        GlueTask(
            "MNLI",
            ("contradiction", "entailment", "neutral"),
            PAIR,
            "gold_label",
            ("accuracy",),
            splits={
                "train": "train.tsv",
                "valid": "dev_matched.tsv",
                "valid1": "dev_mismatched.tsv",
                "test": "test_matched.tsv",
                "test1": "test_mismatched.tsv",
            },
            hub_sentences=("premise", "hypothesis"),
        ),
        GlueTask("QNLI", ENTAILMENT, ("question", "sentence"), "label", ("accuracy",)),
        GlueTask("RTE", ENTAILMENT, PAIR, "label", ("accuracy",), epochs=10),
    )
}


@dataclass(frozen=True)
class Examples:
    """One or two lists of sentences and a list of labels, all of the same length; the test splits have no labels.

    ``broken_rows`` counts the rows that were skipped because of a wrong number of columns.
    """

    sentences: list[list[str]]
    labels: list[str] | None
    broken_rows: int = 0


@dataclass
class SplitCounts:
    """Statistics of a split: ``tokens`` includes every ``</s>``, ``pieces`` none; ``empty`` counts sentences."""

    examples: int = 0
    tokens: int = 0
    pieces: int = 0
    unknown: int = 0
    truncated: int = 0
    empty: int = 0


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
    path = Path(folder) / task.splits[split]
    labeled = not _is_test(split)
    columns, rows, broken_rows = read_rows(path, task, labeled)
    wanted = [*task.sentences, task.label] if labeled else list(task.sentences)
    places = [columns.index(column) for column in wanted]
    *sentences, last = ([row[place] for _, row in rows] for place in places)
    return Examples(sentences, last, broken_rows) if labeled else Examples([*sentences, last], None, broken_rows)


def read_rows(path: Path, task: GlueTask, labeled: bool) -> tuple[Sequence[str], list[tuple[int, list[str]]], int]:
    """The columns of an official file, the line number and the cells of each example, and the number of broken rows.

    Raises InputError as ``read_examples`` does.
    """
    rows = enumerate((line.split("\t") for line in _lines(path)), start=1)  # no csv module: quotes are text
    columns = task.columns if labeled and task.columns else next(rows)[1]
    for column in [*task.sentences, *([task.label] if labeled else [])]:
        if column not in columns:
            raise InputError(f"{path}, line 1: no column {column!r}; use {task.name}'s file from the GLUE download")
    found, broken_rows = [], 0
    for number, row in rows:
        if len(row) != len(columns):
            if labeled and task.has_broken_rows:
                broken_rows += 1
                continue
            raise InputError(f"{path}, line {number}: {len(row)} columns, not {len(columns)}; download the file again")
        if labeled:
            _check_label(row[columns.index(task.label)], task, f"{path}, line {number}")
        found.append((number, row))
    if not found:
        raise InputError(f"{path}: contains no examples; use {task.name}'s file from the GLUE download")
    return columns, found, broken_rows


def examples_from_hub(task: GlueTask, split: str) -> Examples:
    """Load a split from the Hugging Face Hub.

    Raises InputError if the datasets library is not installed, the Hub does not answer, or the dataset has unexpected
    columns or labels.
    """
    try:
        from datasets import load_dataset
    except ImportError:
        raise InputError("--from-hub needs the datasets library: pip install 'tn_fairseq[hub]'") from None
    config = task.name.lower().replace("-", "")
    hub_split = Path(task.splits[split]).stem.replace("dev", "validation")
    place = f"{HUB_DATASET}, {config}, {hub_split}"
    try:
        rows = load_dataset(HUB_DATASET, config, split=hub_split)
    except (OSError, ValueError) as error:
        raise InputError(f"{place}: {first_line(error)}; try again, or use local files with --glue-dir") from None
    columns = task.hub_sentences or task.sentences
    for column in (*columns, "label"):
        if column not in rows.features:
            raise InputError(f"{place}: no column {column!r}; use local files with --glue-dir")
    found = [[row[column] for column in (*columns, "label")] for row in rows]
    *sentences, label_ids = map(list, zip(*found))
    if _is_test(split):
        return Examples(sentences, None)
    if not task.labels:
        labels = [str(score) for score in label_ids]
    else:
        names = rows.features["label"].names
        ours = dict(zip(task.hub_labels or task.labels, task.labels))
        if sorted(names) != sorted(ours):
            raise InputError(f"{place}: the labels are {names}, not {list(ours)}; use local files with --glue-dir")
        labels = [ours[names[index]] if 0 <= index < len(names) else str(index) for index in label_ids]
    for number, label in enumerate(labels):
        _check_label(label, task, f"{place}, example {number}")
    return Examples(sentences, labels)


def in_both_orders(examples: Examples) -> Examples:
    """All pairs, followed by the same pairs with the sentences swapped."""
    first, second = examples.sentences
    return Examples([first + second, second + first], examples.labels * 2, examples.broken_rows)


def truncate(lengths: Sequence[np.ndarray], room: int) -> list[np.ndarray]:
    """For the one or two sentences of an example: how many tokens to keep, (examples,) each, so that they fit.

    The longer sentence of a pair loses its last token until both fit into ``room``; at equal length, the second does.
    """
    if len(lengths) == 1:
        return [np.minimum(lengths[0], room)]
    first, second = lengths
    first = np.minimum(first, np.maximum(room - second, (room + 1) // 2))
    return [first, np.minimum(second, room - first)]


def binarize_task(
    task: GlueTask,
    splits: dict[str, Examples],
    tokenizer: Tokenizer,
    destdir: str | Path,
    max_length: int = 128,
    dict_path: str | Path | None = None,
) -> dict[str, SplitCounts]:
    """Write the task's folder and the tokenizer to ``destdir``; return statistics of each split.

    ``max_length`` limits the model's input, including ``<s>`` and every ``</s>``. ``dict_path`` is a released
    ``dict.txt`` to use instead of the tokenizer's own. The training pairs of tasks with ``both_orders`` are written in
    both orders. The folder is created or replaced when all splits are done. Raises InputError for a ``max_length``
    without room for the sentences, a dictionary of another tokenizer, and a ``destdir`` that cannot be written or
    was made with another tokenizer.
    """
    count = len(task.sentences)
    room = max_length - 1 - count
    if room < count:
        raise InputError(f"--max-length {max_length}: too short for {task.name}; must be at least {2 * count + 1}")
    destdir = Path(destdir)
    dictionary = tokenizer.dictionary() if dict_path is None else released_dictionary(dict_path)
    table = tokenizer.lookup_table(dictionary)
    inputs = [f"input{number}" for number in range(count)]
    with write_folder(destdir, "--destdir") as staging:
        _check_vocabulary(destdir, tokenizer, dict_txt(dictionary))
        folder = staging / task.name
        for path in (folder / "label", *(folder / name for name in inputs)):
            path.mkdir(parents=True)
        (folder / LENGTHS).write_text(json.dumps({"max_length": max_length}) + "\n", encoding="utf-8")
        counts = {}
        for split, examples in splits.items():
            if split == "train" and task.both_orders:
                examples = in_both_orders(examples)
            prefixes = [folder / name / split for name in inputs]
            counts[split] = _write_sentences(prefixes, examples.sentences, tokenizer, table, dictionary, room)
            if examples.labels is not None:
                _write_labels(folder / "label" / split, examples.labels, task)
        for name in inputs:
            (folder / name / "dict.txt").write_bytes(dict_txt(dictionary))
        if task.labels:
            (folder / "label" / "dict.txt").write_bytes(dict_txt(_label_dictionary(task)))
        if not (destdir / "tokenizer").exists():
            (staging / "tokenizer").mkdir()
            for name, content in tokenizer.files.items():
                (staging / "tokenizer" / name).write_bytes(content)
        publish(staging, destdir, last=task.name)
    return counts


def _is_test(split: str) -> bool:
    return split.startswith("test")


def _lines(path: Path) -> list[str]:
    """The lines of a file without line endings (LF or CRLF) and without a byte order mark."""
    remedy = "use the file from the GLUE download"
    text = read_text(path, remedy, "utf-8-sig")
    if not text:
        raise InputError(f"{path}: empty; {remedy}")
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _check_label(label: str, task: GlueTask, place: str) -> None:
    if task.labels:
        if label not in task.labels:
            raise InputError(f"{place}: the label must be one of {', '.join(task.labels)}, not {label!r}; correct it")
        return
    try:
        is_score = 0 <= float(label) <= HIGHEST_SCORE
    except ValueError:
        is_score = False
    if not is_score:
        raise InputError(f"{place}: the score must be a number from 0 to {HIGHEST_SCORE:g}, not {label!r}; correct it")


def _check_vocabulary(destdir: Path, tokenizer: Tokenizer, dictionary: bytes) -> None:
    """Raises InputError if ``destdir`` has tasks of another tokenizer, which could not be noticed later."""
    folder = destdir / "tokenizer"
    same = not folder.exists() or {path.name: path.read_bytes() for path in folder.iterdir()} == tokenizer.files
    written = [destdir / name / "input0" / "dict.txt" for name in TASKS]
    if not same or any(path.read_bytes() != dictionary for path in written if path.exists()):
        raise InputError(f"{destdir}: was made with another tokenizer or --dict; delete it, or give another --destdir")


def _write_sentences(
    prefixes: Sequence[Path],
    sentences: Sequence[Sequence[str]],
    tokenizer: Tokenizer,
    table: np.ndarray,
    dictionary: Dictionary,
    room: int,
) -> SplitCounts:
    """Write ``prefix``.bin and .idx for each list of sentences."""
    counts = SplitCounts(examples=len(sentences[0]))
    writers = [BinaryWriter(prefix, dictionary) for prefix in prefixes]
    for start in tqdm(range(0, counts.examples, BATCH), prefixes[0].name, unit=" batches", leave=None, disable=None):
        encoded = [tokenizer.encode_chunk(column[start : start + BATCH]) for column in sentences]
        kept = truncate([lengths for _, lengths in encoded], room)
        counts.truncated += int((sum(kept) < sum(lengths for _, lengths in encoded)).sum())
        for writer, (token_ids, lengths), keep in zip(writers, encoded, kept):
            position = np.arange(len(token_ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            ids = table[token_ids[position < np.repeat(keep, lengths)]]
            writer.append(np.insert(ids, np.cumsum(keep), dictionary.eos()), keep + 1)
            counts.tokens += len(ids) + len(keep)
            counts.pieces += len(ids)
            counts.unknown += int((ids == dictionary.unk()).sum())
            counts.empty += int((lengths == 0).sum())
    for writer in writers:
        writer.close()
    return counts


def _label_dictionary(task: GlueTask) -> Dictionary:
    dictionary = Dictionary()
    for label in task.labels:
        dictionary.add_symbol(label)
    return dictionary


def _write_labels(prefix: Path, labels: Sequence[str], task: GlueTask) -> None:
    """Write ``prefix``.bin and .idx; for a regression, write scores between 0 and 1 to ``prefix``.label."""
    if not task.labels:
        shares = "".join(f"{float(score) / HIGHEST_SCORE}\n" for score in labels)
        Path(f"{prefix}.label").write_text(shares, encoding="utf-8")
        return
    dictionary = _label_dictionary(task)
    writer = BinaryWriter(prefix, dictionary)
    ids = np.array([dictionary.index(label) for label in labels])
    writer.append(np.insert(ids, np.arange(len(ids)) + 1, dictionary.eos()), np.full(len(ids), 2))
    writer.close()
