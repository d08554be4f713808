"""SQuAD 1.1 as windows of question and context that a model reads.

Windows are those of BERT's code for SQuAD: ``<s> question </s> context </s>``, with as much of the context as fits. The
next window starts ``doc_stride`` context tokens later. The task prepends ``<s>``, so the stored rows start with the
question, but all positions count ``<s>``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save
from tqdm import tqdm

from ...core.errors import InputError
from ...core.files import publish, write_folder
from ...tokenizers.base import Tokenizer
from ..formats.squad_json import SPLITS, SquadExample, squad_json
from .writers import BinaryWriter, Vocabulary, write_lengths


@dataclass(frozen=True)
class Window:
    """The tokens [first, end) of a context.

    ``answer`` is the first and the last position of the answer in the model's input, or (0, 0) if the window does not
    contain all of it. ``is_max_context``, (end - first,) bool, is true for each token that no other window of the
    example shows in more context.
    """

    first: int
    end: int
    answer: tuple[int, int]
    is_max_context: np.ndarray


@dataclass
class SquadCounts:
    """Statistics of a split's questions; ``pieces`` and ``unknown`` count each context once."""

    questions: int = 0
    windows: int = 0
    questions_cut: int = 0
    answers_in_no_window: int = 0
    answers_inside_tokens: int = 0
    pieces: int = 0
    unknown: int = 0


def answer_tokens(offsets: np.ndarray, text: str, start: int) -> tuple[int, int] | None:
    """First and last token of an answer, given the ``offsets``, (tokens, 2), of all tokens; None if it has no token.

    White space around the answer is ignored. If the tokenizer drops the first or last character, the nearest tokens
    inside the answer are used.
    """
    begins, ends = offsets.T
    (inside,) = np.nonzero((ends > start) & (begins < start + len(text)) & (begins < ends))
    return (int(inside[0]), int(inside[-1])) if len(inside) else None


def windows(
    question_length: int, context_length: int, answer: tuple[int, int] | None, max_length: int, doc_stride: int
) -> list[Window]:
    """The windows of an example: at least one, and every token of the context in at least one.

    Lengths are in tokens. ``answer`` is the first and last context token of the answer. ``max_length`` limits the
    model's input, including ``<s>`` and both ``</s>``.
    """
    context_start = question_length + 2
    room = max_length - question_length - 3
    firsts = np.arange(0, max(context_length - room, 0) + doc_stride, doc_stride)[:, None]
    ends = np.minimum(firsts + room, context_length)
    token = np.arange(context_length)
    nearest_end = np.minimum(token - firsts, ends - 1 - token)
    score = np.where(nearest_end < 0, -np.inf, nearest_end + 0.01 * (ends - firsts))  # as in BERT's code
    best = score.argmax(axis=0)
    example_windows = []
    for number, (first, end) in enumerate(zip(firsts[:, 0].tolist(), ends[:, 0].tolist(), strict=True)):
        span = (0, 0)
        if answer is not None and first <= answer[0] and answer[1] < end:
            span = (answer[0] - first + context_start, answer[1] - first + context_start)
        example_windows.append(Window(first, end, span, best[first:end] == number))
    return example_windows


def binarize_squad(
    splits: Mapping[str, Sequence[SquadExample]],
    tokenizer: Tokenizer,
    destdir: str | Path,
    max_length: int = 512,
    doc_stride: int = 128,
    max_question_length: int = 64,
    dict_path: str | Path | None = None,
) -> dict[str, SquadCounts]:
    """Write the windows of each split into ``destdir`` and return statistics of its questions.

    ``{split}.bin`` and ``.idx`` contain the rows ``question </s> context </s>``. ``{split}.safetensors`` contains for
    each window (W) its "example", (W,), the position "context_start" of its first context token, (W,), and the
    positions of the first "answer", (W, 2), all int32. For splits other than train, it also contains, for each context
    token of each window in order (T), its character range in the context, "offsets", (T, 2) int32, and
    "is_max_context", (T,) bool; ``{split}.json`` contains the examples. A row has ``len(row) - context_start`` context
    tokens. ``lengths.json`` contains the three lengths by their names here.

    ``dict_path`` is a released ``dict.txt`` to use instead of the tokenizer's own. The content of ``destdir`` changes
    only when all splits are done; all splits of an earlier run are then deleted. Raises InputError for inconsistent
    lengths, a split without questions, a training example without an answer, or a folder that cannot be written.
    """
    _check_lengths(max_length, doc_stride, max_question_length)
    for split, examples in splits.items():
        if not examples:
            raise InputError(f"{split}: no questions; each split needs at least one")
    for example in splits.get("train", ()):
        if not example.answers:
            raise InputError(f"train: question {example.id!r} has no answer; give a labeled file to train on")
    destdir = Path(destdir)
    there = [(destdir / name).exists() for name in ("dict.txt", "train.idx", "train.safetensors")]
    if there == [True, True, False]:  # a killed run leaves no dict.txt
        raise InputError(f"{destdir}: contains other data; give another --destdir")
    vocabulary = Vocabulary(tokenizer, dict_path)
    lengths = {"max_length": max_length, "doc_stride": doc_stride, "max_question_length": max_question_length}
    with write_folder(destdir, "--destdir") as staging:
        write_lengths(staging, **lengths)
        counts = {}
        for split, examples in splits.items():
            counts[split] = _write_split(staging / split, examples, vocabulary, lengths)
            if split != "train":
                text = json.dumps(squad_json(examples), ensure_ascii=False)
                (staging / f"{split}.json").write_text(text + "\n", encoding="utf-8")
        vocabulary.write(staging)
        # splits of an earlier run may have other lengths or another dictionary
        kinds = ("bin", "idx", "safetensors", "json")
        old = [destdir / f"{split}.{kind}" for split in SPLITS for kind in kinds]
        publish(staging, destdir, last="dict.txt", old=old)
    return counts


def _check_lengths(max_length: int, doc_stride: int, max_question_length: int) -> None:
    room = max_length - max_question_length - 3
    if max_question_length < 1:
        raise InputError(f"--max-question-length {max_question_length}: must be positive")
    if room < 1:
        longest = f"a question of {max_question_length} tokens and a context"
        raise InputError(f"--max-length {max_length} has no room for {longest}; reduce --max-question-length")
    if not 1 <= doc_stride <= room:
        room_for = "the context tokens in a window with the longest question"
        raise InputError(f"--doc-stride {doc_stride}: must be between 1 and {room}, {room_for}")


def _write_split(
    prefix: Path, examples: Sequence[SquadExample], vocabulary: Vocabulary, lengths: Mapping[str, int]
) -> SquadCounts:
    """Write ``prefix``.bin, .idx and .safetensors."""
    eos, longest_question = [vocabulary.eos], lengths["max_question_length"]
    counts = SquadCounts(questions=len(examples))
    writer = BinaryWriter(prefix, vocabulary.dictionary)
    tensors: dict[str, list] = {"example": [], "context_start": [], "answer": []}
    details: dict[str, list] = {"offsets": [], "is_max_context": []}  # of the context tokens
    context: str | None = None

    def encode(text: str) -> tuple[np.ndarray, np.ndarray]:
        token_ids, offsets = vocabulary.tokenizer.encode_with_offsets(text)
        ids = vocabulary.table[token_ids]
        counts.pieces += len(ids)
        counts.unknown += int((ids == vocabulary.unk).sum())
        return ids, offsets

    for number, example in enumerate(tqdm(examples, desc=prefix.name, unit=" questions", leave=None, disable=None)):
        if example.context != context:  # questions about the same context are consecutive
            context = example.context
            context_ids, offsets = encode(context)
        question_ids, _ = encode(example.question)
        counts.questions_cut += len(question_ids) > longest_question
        question_ids = question_ids[:longest_question]
        answer = answer_tokens(offsets, *example.answers[0]) if example.answers else None
        shown = windows(len(question_ids), len(context_ids), answer, lengths["max_length"], lengths["doc_stride"])
        if example.answers:
            counts.answers_in_no_window += all(window.answer == (0, 0) for window in shown)
        if answer is not None:
            begin, end = offsets[answer[0], 0], offsets[answer[1], 1]
            counts.answers_inside_tokens += example.context[begin:end] != example.answers[0][0].strip()
        rows = [np.concatenate([question_ids, eos, context_ids[w.first : w.end], eos]) for w in shown]
        writer.append(np.concatenate(rows), np.array([len(row) for row in rows]))
        counts.windows += len(shown)
        tensors["example"] += [number] * len(shown)
        tensors["context_start"] += [len(question_ids) + 2] * len(shown)
        tensors["answer"] += [window.answer for window in shown]
        details["offsets"] += [offsets[window.first : window.end] for window in shown]
        details["is_max_context"] += [window.is_max_context for window in shown]
    writer.close()
    arrays = {name: np.array(values, dtype=np.int32) for name, values in tensors.items()}
    if prefix.name != "train":
        arrays |= {name: np.concatenate(values) for name, values in details.items()}
    Path(f"{prefix}.safetensors").write_bytes(save(arrays))
    return counts
