"""Spans: windows made by hand, and a comparison with a search over all spans."""

import numpy as np
import pytest

from tn_fairseq.tools.evaluate.answers import best_answers

CONTEXT = "The cat sat on the mat."
OFFSETS = np.array([[0, 3], [4, 7], [8, 11], [12, 14]], dtype=np.int32)
PREFIX = 4  # of <s> question </s>


@pytest.mark.parametrize(
    "start, end, may_start, text",
    [
        ([9, 2, 0, 0], [9, 0, 0, 0], "0111", "cat"),
        ([2**24, 2**24, 0, 0], [-1e-3, 1e-3, 0, 0], "1111", "The cat"),  # a tie in single precision
        ([0, 0, 0, 0], [0, 0, 0, 0], "0000", ""),
        ([np.nan, 0, 0, 0], [0, 0, 0, 0], "1111", ""),
    ],
)
def test_an_answer_by_hand(start, end, may_start, text):
    """Tokens outside the context have very high logits."""
    logits = [np.array([*[99] * PREFIX, *side, 99], dtype=np.float32) for side in (start, end)]
    flags = np.array([flag == "1" for flag in may_start])
    assert best_answers([np.stack(logits, axis=1)], [0], [PREFIX], [4], OFFSETS, flags, [CONTEXT]) == [text]


def test_the_limit_is_thirty_tokens_and_a_question_may_have_no_span():
    offsets = np.array([[i, i + 1] for i in range(31)])
    logits = np.zeros((31, 2))
    logits[0, 0], logits[29, 1], logits[30, 1] = 9, 1, 2
    assert best_answers([logits], [0], [0], [31], offsets, np.ones(31, dtype=bool), ["x" * 31]) == ["x" * 30]
    nothing = np.zeros((0, 2)), np.zeros(0, dtype=bool)
    assert best_answers([], [], [], [], *nothing, [CONTEXT]) == [""]
    assert best_answers([np.ones((5, 2))], [0], [PREFIX], [0], *nothing, ["  "]) == [""]  # a blank context


@pytest.mark.parametrize("max_answer_length", [1, 5, 30])
def test_the_result_matches_a_search_over_all_spans(max_answer_length):
    rng = np.random.default_rng(max_answer_length)
    questions, windows, longest = 5, 12, 9
    context = "abcdefghijklmnopqrstuvwxyz"
    example = rng.integers(0, questions, windows)
    context_start = rng.integers(2, 6, windows)
    lengths = rng.integers(1, longest, windows)
    # few different values, so that there are ties
    logits = rng.integers(-2, 3, (2, windows, 16)).astype(np.float32)
    begin = rng.integers(0, 13, (lengths.sum(), 1))
    offsets = np.concatenate([begin, begin + rng.integers(0, 14, begin.shape)], axis=1)
    is_max_context = rng.random(lengths.sum()) < 0.7

    best: dict[int, tuple[float, str]] = {}
    for number in range(windows):
        base = lengths[:number].sum()
        for first in range(lengths[number]):
            for last in range(first, min(first + max_answer_length, lengths[number])):
                score = (
                    logits[0, number, context_start[number] + first] + logits[1, number, context_start[number] + last]
                )
                text = context[offsets[base + first, 0] : offsets[base + last, 1]]
                if is_max_context[base + first] and score > best.get(example[number], (-np.inf, ""))[0]:
                    best[example[number]] = score, text
    expected = [best.get(question, (0, ""))[1] for question in range(questions)]
    assert len(set(expected)) > 1

    both = list(np.moveaxis(logits, 0, 2))
    found = best_answers(
        both, example, context_start, lengths, offsets, is_max_context, [context] * questions, max_answer_length
    )
    assert found == expected
