"""From logits to the text that answers each question."""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def best_answers(
    logits: Sequence[np.ndarray],
    example: np.ndarray,
    context_start: np.ndarray,
    lengths: Sequence[int],
    offsets: np.ndarray,
    is_max_context: np.ndarray,
    contexts: Sequence[str],
    max_answer_length: int = 30,
) -> list[str]:
    """The text of the best span of each question over all of its windows: one answer for each of ``contexts``.

    For each window: logits of start and end over the positions of the model's input, (positions, 2), the index of its
    ``example``, the position ``context_start`` of its first context token, and the number of its context tokens
    (``lengths``). For the T context tokens of all windows, concatenated: their ``offsets`` in the context, (T, 2), and
    ``is_max_context``, (T,) bool.

    A span has at most ``max_answer_length`` tokens, and its first token must have ``is_max_context``. Its score is the
    sum of its start and end logits. Ties go to the earlier window, then the earlier start, then the shorter span. The
    answer is "" if no span has a finite score.
    """
    answers = [""] * len(contexts)
    best_scores = [-np.inf] * len(contexts)
    ends = np.cumsum(lengths)
    for window, (question, first, length, end) in enumerate(zip(example, context_start, lengths, ends)):
        if not length:
            continue
        here, tokens = slice(first, first + length), slice(end - length, end)
        starts, ends_here = logits[window][here].T
        start, stop, score = best_span(starts, ends_here, is_max_context[tokens], max_answer_length)
        if score > best_scores[question]:
            best_scores[question] = score
            begin_end = offsets[tokens]
            answers[question] = contexts[question][begin_end[start, 0] : begin_end[stop, 1]]
    return answers


def best_span(
    start_logits: np.ndarray, end_logits: np.ndarray, may_start: np.ndarray, max_length: int
) -> tuple[int, int, float]:
    """The first token, last token and score of the best span; all inputs are (tokens,).

    Searches all spans, not only those between the highest logits. The score is -inf if no token may start a span.
    """
    starts = np.where(may_start, start_logits, -np.inf)
    # double precision, so that sums of single-precision logits are not rounded to a tie
    ends = np.concatenate([end_logits, np.full(max_length - 1, -np.inf)])
    scores = starts[:, None] + sliding_window_view(ends, max_length)  # for each first token and width
    start, more = divmod(int(scores.argmax()), max_length)
    return start, start + more, float(scores[start, more])
