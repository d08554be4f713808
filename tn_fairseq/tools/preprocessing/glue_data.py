"""GLUE as the folders that fairseq's ``sentence_prediction`` task reads.

A task's folder contains ``input0/`` and, for pairs, ``input1/``, each with ``dict.txt`` and the ``.bin`` and ``.idx``
of each split, ``label/``, and ``lengths.json`` with the ``max_length``. A row is a sentence with its ``</s>``. With
``--init-token 0`` the model's input is ``<s> a </s>`` or ``<s> a </s> b </s>``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary
from tqdm import tqdm

from ...core.errors import InputError
from ...core.files import publish, write_folder
from ...tokenizers.base import Tokenizer
from ..formats.glue_tsv import HIGHEST_SCORE, TASKS, Examples, GlueTask
from .writers import BinaryWriter, Vocabulary, write_lengths

BATCH = 10_000  # sentences encoded at a time


@dataclass
class GlueCounts:
    """Statistics of a split: ``tokens`` includes every ``</s>``, ``pieces`` none; ``empty`` counts sentences."""

    examples: int = 0
    tokens: int = 0
    pieces: int = 0
    unknown: int = 0
    truncated: int = 0
    empty: int = 0


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
) -> dict[str, GlueCounts]:
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
    vocabulary = Vocabulary(tokenizer, dict_path)
    label_dictionary = Dictionary()
    for label in task.labels:
        label_dictionary.add_symbol(label)
    inputs = [f"input{number}" for number in range(count)]
    with write_folder(destdir, "--destdir") as staging:
        folder = staging / task.name
        (folder / "label").mkdir(parents=True)
        for name in inputs:
            vocabulary.dictionary.save(str(folder / name / "dict.txt"))  # creates the folder
        _check_vocabulary(destdir, tokenizer, (folder / "input0" / "dict.txt").read_bytes())
        write_lengths(folder, max_length=max_length)
        counts = {}
        for split, examples in splits.items():
            sentences, labels = examples.sentences, examples.labels
            if split == "train" and task.both_orders:
                first, second = sentences
                sentences, labels = [first + second, second + first], labels and 2 * labels
            counts[split] = _write_sentences([folder / name / split for name in inputs], sentences, vocabulary, room)
            if labels is not None:
                _write_labels(folder / "label" / split, labels, label_dictionary)
        if task.labels:
            label_dictionary.save(str(folder / "label" / "dict.txt"))
        if not (destdir / "tokenizer").exists():
            vocabulary.write_tokenizer(staging)
        publish(staging, destdir, last=task.name)
    return counts


def _check_vocabulary(destdir: Path, tokenizer: Tokenizer, dictionary: bytes) -> None:
    """Raises InputError if ``destdir`` has tasks of another tokenizer, which could not be noticed later."""
    folder = destdir / "tokenizer"
    same = not folder.exists() or {path.name: path.read_bytes() for path in folder.iterdir()} == tokenizer.files
    written = [destdir / name / "input0" / "dict.txt" for name in TASKS]
    if not same or any(path.read_bytes() != dictionary for path in written if path.exists()):
        raise InputError(f"{destdir}: was made with another tokenizer or --dict; delete it, or give another --destdir")


def _write_sentences(
    prefixes: Sequence[Path], sentences: Sequence[Sequence[str]], vocabulary: Vocabulary, room: int
) -> GlueCounts:
    """Write ``prefix``.bin and .idx for each list of sentences."""
    counts = GlueCounts(examples=len(sentences[0]))
    writers = [BinaryWriter(prefix, vocabulary.dictionary) for prefix in prefixes]
    for start in tqdm(range(0, counts.examples, BATCH), prefixes[0].name, unit=" batches", leave=None, disable=None):
        encoded = [vocabulary.tokenizer.encode_chunk(column[start : start + BATCH]) for column in sentences]
        kept = truncate([lengths for _, lengths in encoded], room)
        counts.truncated += int((np.sum(kept, 0) < np.sum([lengths for _, lengths in encoded], 0)).sum())
        for writer, (token_ids, lengths), keep in zip(writers, encoded, kept):
            position = np.arange(len(token_ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            ids = vocabulary.table[token_ids[position < np.repeat(keep, lengths)]]
            writer.append(np.insert(ids, np.cumsum(keep), vocabulary.eos), keep + 1)
            counts.tokens += len(ids) + len(keep)
            counts.pieces += len(ids)
            counts.unknown += int((ids == vocabulary.unk).sum())
            counts.empty += int((lengths == 0).sum())
    for writer in writers:
        writer.close()
    return counts


def _write_labels(prefix: Path, labels: Sequence[str], dictionary: Dictionary) -> None:
    """Write ``prefix``.bin and .idx; for a regression, write scores between 0 and 1 to ``prefix``.label."""
    if len(dictionary) == dictionary.nspecial:
        shares = "".join(f"{float(score) / HIGHEST_SCORE}\n" for score in labels)
        Path(f"{prefix}.label").write_text(shares, encoding="utf-8")
        return
    writer = BinaryWriter(prefix, dictionary)
    rows = [(dictionary.index(label), dictionary.eos()) for label in labels]
    writer.append(np.array(rows), np.full(len(rows), 2))
    writer.close()
