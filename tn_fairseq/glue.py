"""GLUE: its tasks, its official files, and the folders that fairseq's ``sentence_prediction`` reads.

A task's folder holds ``input0/`` and, for pairs, ``input1/``, each with ``dict.txt`` and the ``.bin`` and ``.idx`` of
each split, and ``label/``. A row is a sentence with its ``</s>``: with ``--init-token 0`` the model's input is
``<s> a </s>`` or ``<s> a </s> b </s>``.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary
from tqdm import tqdm

from .binarization import STAGING, BinaryWriter, dict_txt, released_dictionary
from .errors import InputError
from .tokenization import Tokenizer

HUB_DATASET = "nyu-mll/glue"
HIGHEST_SCORE = 5.0  # of a regression; it is trained on shares of it, as in Google's code
BATCH = 10_000  # sentences encoded at a time
PAIR = ("sentence1", "sentence2")
ENTAILMENT = ("entailment", "not_entailment")


@dataclass(frozen=True)
class GlueTask:
    """A task: what its files hold, how long it is trained and how it is measured.

    ``labels`` are in the order of the classes, none for a regression. ``sentences`` and ``label`` name columns,
    ``columns`` are all columns of train and dev where these have no header. The first of ``metrics`` is the one
    that is usually reported. ``splits`` maps our names to those of the files. The ``hub_`` names, in the order of ours,
    are given where they differ.
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
            has_broken_rows=True,  # questions with a line end in them
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
    """One or two lists of sentences and a list of labels, all equally long; the test splits have no labels.

    ``broken_rows`` counts the rows that were left out, for they lack columns.
    """

    sentences: list[list[str]]
    labels: list[str] | None
    broken_rows: int = 0


@dataclass
class SplitCounts:
    """What was written of a split: ``tokens`` counts every ``</s>``, ``pieces`` none; ``empty`` counts sentences."""

    examples: int = 0
    tokens: int = 0
    pieces: int = 0
    unknown: int = 0
    truncated: int = 0
    empty: int = 0


def read_task(folder: str | Path, task: GlueTask) -> dict[str, Examples]:
    """Read all splits of a task; only those to test on may be missing. Raises InputError as ``read_examples``."""
    folder = Path(folder)
    return {
        split: read_examples(folder, task, split)
        for split, name in task.splits.items()
        if not _is_test(split) or (folder / name).exists()
    }


def read_examples(folder: str | Path, task: GlueTask, split: str) -> Examples:
    """Read a split from GLUE's own file of it.

    Raises InputError with the file and the line for what is not of the task's format. Rows with too few or too many
    columns are left out of QQP's train and dev, whose published files have some.
    """
    path = Path(folder) / task.splits[split]
    labelled = not _is_test(split)
    rows = enumerate((line.split("\t") for line in _lines(path)), start=1)  # quotes are text: nothing for csv to do
    columns = task.columns if labelled and task.columns else next(rows)[1]
    wanted = [*task.sentences, task.label] if labelled else list(task.sentences)
    for column in wanted:
        if column not in columns:
            raise InputError(f"{path}, line 1: no column {column!r}; take {task.name}'s file from GLUE's download")
    places = [columns.index(column) for column in wanted]
    found, broken_rows = [], 0
    for number, row in rows:
        if len(row) != len(columns):
            if labelled and task.has_broken_rows:
                broken_rows += 1
                continue
            raise InputError(f"{path}, line {number}: {len(row)} columns, not {len(columns)}; fetch the file again")
        found.append([row[place] for place in places])
        if labelled:
            _check_label(found[-1][-1], task, f"{path}, line {number}")
    if not found:
        raise InputError(f"{path}: holds no examples; take {task.name}'s file from GLUE's download")
    *sentences, labels = map(list, zip(*found)) if labelled else (*map(list, zip(*found)), None)
    return Examples(sentences, labels, broken_rows)


def examples_from_hub(task: GlueTask, split: str) -> Examples:
    """Load a split from the Hugging Face hub.

    Raises InputError where the datasets library is not installed, the hub does not answer, or has other columns and
    labels than we know.
    """
    try:
        from datasets import load_dataset
    except ImportError:
        raise InputError("GLUE is fetched from the hub with datasets: pip install 'tn_fairseq[hub]'") from None
    config = task.name.lower().replace("-", "")
    hub_split = Path(task.splits[split]).stem.replace("dev", "validation")
    place = f"{HUB_DATASET}, {config}, {hub_split}"
    try:
        rows = load_dataset(HUB_DATASET, config, split=hub_split)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{place}: {reason}; try again, or give files with --glue-dir") from None
    columns = task.hub_sentences or task.sentences
    for column in (*columns, "label"):
        if column not in rows.features:
            raise InputError(f"{place}: no column {column!r}; give files with --glue-dir")
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
            raise InputError(f"{place}: the labels are {names}, not {list(ours)}; give files with --glue-dir")
        labels = [ours[names[index]] if 0 <= index < len(names) else str(index) for index in label_ids]
    for number, label in enumerate(labels):
        _check_label(label, task, f"{place}, example {number}")
    return Examples(sentences, labels)


def in_both_orders(examples: Examples) -> Examples:
    """All pairs, and then all of them with the sentences swapped."""
    first, second = examples.sentences
    return Examples([first + second, second + first], examples.labels * 2, examples.broken_rows)


def truncate(lengths: Sequence[np.ndarray], room: int) -> list[np.ndarray]:
    """How many tokens to keep of each sentence, (examples,), of the one or two of an example, so that they fit.

    Of a pair, the longer one loses its last token until both fit into ``room``; the second one where they are equal.
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
    """Write the task's folder into ``destdir``, and the tokenizer beside it; return what was written of each split.

    ``max_length`` bounds the model's input, ``<s>`` and every ``</s>`` included. ``dict_path`` names a released
    ``dict.txt`` to be used in place of the tokenizer's own. The training pairs of tasks with ``both_orders`` are
    written in both. The folder appears, or takes the place of an earlier one, when all splits are done. Raises
    InputError for a length without room for the sentences, a dictionary that is not the tokenizer's, and a
    ``destdir`` that cannot be written or was made with another tokenizer.
    """
    count = len(task.sentences)
    room = max_length - 1 - count
    if room < count:
        raise InputError(f"--max-length {max_length}: too short for {task.name}; give {2 * count + 1} or more")
    destdir = Path(destdir)
    dictionary = tokenizer.dictionary() if dict_path is None else released_dictionary(dict_path)
    table = tokenizer.lookup_table(dictionary)
    inputs = [f"input{number}" for number in range(count)]
    staging = destdir / STAGING
    folder = staging / task.name
    try:
        _check_vocabulary(destdir, tokenizer, dict_txt(dictionary))
        shutil.rmtree(staging, ignore_errors=True)
        for path in (staging / "tokenizer", folder / "label", *(folder / name for name in inputs)):
            path.mkdir(parents=True)
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
        for name, content in tokenizer.files.items():
            (staging / "tokenizer" / name).write_bytes(content)
        _publish(staging, destdir, task.name)
        return counts
    except OSError as error:
        raise InputError(f"{error.filename or destdir}: {error.strerror}; give a --destdir you can write to") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _is_test(split: str) -> bool:
    return split.startswith("test")


def _lines(path: Path) -> list[str]:
    """The lines of a file without their ends (LF or CRLF) and without a byte order mark."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; take the file from GLUE's download") from None
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {number}: not UTF-8; convert it, for example with iconv") from None
    if not text:
        raise InputError(f"{path}: empty; take the file from GLUE's download")
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _check_label(label: str, task: GlueTask, place: str) -> None:
    if task.labels:
        if label not in task.labels:
            raise InputError(f"{place}: the label is {label!r}, none of {', '.join(task.labels)}; correct it")
        return
    try:
        is_score = 0 <= float(label) <= HIGHEST_SCORE
    except ValueError:
        is_score = False
    if not is_score:
        raise InputError(f"{place}: the score is {label!r}, no number from 0 to {HIGHEST_SCORE:g}; correct it")


def _check_vocabulary(destdir: Path, tokenizer: Tokenizer, dictionary: bytes) -> None:
    """Raises InputError where ``destdir`` holds tasks of another tokenizer: nothing in them would tell."""
    folder = destdir / "tokenizer"
    same = not folder.exists() or {path.name: path.read_bytes() for path in folder.iterdir()} == tokenizer.files
    written = [destdir / name / "input0" / "dict.txt" for name in TASKS]
    if not same or any(path.read_bytes() != dictionary for path in written if path.exists()):
        raise InputError(f"{destdir}: was made with another tokenizer or --dict; remove it, or give another --destdir")


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
    for start in tqdm(range(0, counts.examples, BATCH), desc=prefixes[0].name, unit=" batches", disable=None):
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
    """Write ``prefix``.bin and .idx, or the scores of a regression, between 0 and 1, to ``prefix``.label."""
    if not task.labels:
        shares = "".join(f"{float(score) / HIGHEST_SCORE}\n" for score in labels)
        Path(f"{prefix}.label").write_text(shares, encoding="utf-8")
        return
    dictionary = _label_dictionary(task)
    writer = BinaryWriter(prefix, dictionary)
    ids = np.array([dictionary.index(label) for label in labels])
    writer.append(np.insert(ids, np.arange(len(ids)) + 1, dictionary.eos()), np.full(len(ids), 2))
    writer.close()


def _publish(staging: Path, destdir: Path, name: str) -> None:
    """Move the tokenizer and the task's folder to their places; a folder that is there is moved away whole."""
    if not (destdir / "tokenizer").exists():
        os.replace(staging / "tokenizer", destdir / "tokenizer")
    if (destdir / name).exists():
        os.replace(destdir / name, staging / "replaced")
    os.replace(staging / name, destdir / name)
