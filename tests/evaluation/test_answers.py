"""Spans: windows made by hand, and a comparison with a search over all spans."""

import numpy as np
import pytest

from tn_fairseq.evaluation.answers import best_answers

CONTEXT = "The cat sat on the mat."
OFFSETS = np.array([[0, 3], [4, 7], [8, 11], [12, 14], [15, 18], [19, 22], [22, 23]], dtype=np.int32)
PREFIX = 4  # of <s> question </s>


def window(first: int, values: dict[int, float]) -> np.ndarray:
    """Logits of a window of four tokens: ``values`` for some tokens, else 0, and very high outside the context."""
    logits = np.zeros(PREFIX + 4 + 1, dtype=np.float32)
    logits[:PREFIX] = logits[-1] = 99
    for token, value in values.items():
        logits[PREFIX + token - first] = value
    return logits


def answer(start: dict[int, float], end: dict[int, float], may_start: str = "1111", **options) -> str:
    """The answer in a single window of the first four tokens."""
    flags = np.array([flag == "1" for flag in may_start])
    windows = [window(0, start)], [window(0, end)], [0], [PREFIX], [4]
    (text,) = best_answers(*windows, OFFSETS[:4], flags, [CONTEXT], **options)
    return text


@pytest.mark.parametrize(
    "start, end, options, text",
    [
        ({1: 3}, {2: 3}, {}, "cat sat"),
        ({2: 5}, {0: 4, 3: 1}, {}, "sat on"),  # no span ends before its start
        ({0: 2, 3: 5}, {0: 9}, {}, "The"),
        ({0: -1, 1: -1, 2: -1}, {0: -9, 1: -9, 2: -9}, {}, "on"),  # never the question or a separator
        ({0: 5}, {1: 1, 2: 2, 3: 9}, {}, "The cat sat on"),
        ({0: 5}, {1: 1, 2: 2, 3: 9}, {"max_answer_length": 3}, "cat sat on"),
        ({0: 9}, {1: 1, 2: 2, 3: 5}, {"max_answer_length": 3}, "The cat sat"),
        ({0: 5}, {3: 4}, {"max_answer_length": 1}, "The"),
        ({0: 9, 1: 1}, {0: 9}, {"may_start": "0111"}, "cat"),
        ({0: 9, 1: 1}, {2: 9}, {"may_start": "0100"}, "cat sat"),
        ({}, {}, {}, "The"),  # ties go to the earlier start, then to the shorter span
        ({1: 5, 2: 5}, {3: 2}, {}, "cat sat on"),
        ({1: 5}, {2: 1, 3: 1}, {}, "cat sat"),
        ({0: 2**24, 1: 2**24}, {0: -1e-3, 1: 1e-3}, {}, "The cat"),  # a tie in single precision
        ({}, {}, {"may_start": "0000"}, ""),
        ({0: np.nan}, {}, {}, ""),
    ],
)
def test_an_answer_by_hand(start, end, options, text):
    assert answer(start, end, **options) == text


def test_the_limit_is_thirty_tokens():
    context = "x" * 31
    offsets = np.array([[i, i + 1] for i in range(31)])
    start, end = np.zeros(31), np.zeros(31)
    start[0], end[29], end[30] = 9, 1, 2
    (text,) = best_answers([start], [end], [0], [0], [31], offsets, np.ones(31, dtype=bool), [context])
    assert text == "x" * 30


def two_windows(start: float, other_start: float) -> list[str]:
    """One window of another question between two windows of a question; the second of these starts at token 3."""
    return best_answers(
        [window(0, {2: start}), window(0, {0: 1}), window(3, {5: other_start})],
        [window(0, {}), window(0, {}), window(3, {})],
        np.array([1, 0, 1]),
        np.array([PREFIX] * 3),
        np.array([4, 4, 4]),
        np.concatenate([OFFSETS[:4], OFFSETS[:4], OFFSETS[3:]]),
        np.ones(12, dtype=bool),
        ["Another context", CONTEXT],
    )


def test_the_best_span_over_all_windows_of_a_question():
    assert two_windows(2, 3) == ["Ano", "mat"]
    assert two_windows(3, 2) == ["Ano", "sat"]
    assert two_windows(2, 2) == ["Ano", "sat"]


def test_a_question_without_a_span():
    nothing = np.zeros((0, 2)), np.zeros(0, dtype=bool)
    assert best_answers([], [], [], [], [], *nothing, [CONTEXT]) == [""]
    assert best_answers([np.ones(5)], [np.ones(5)], [0], [PREFIX], [0], *nothing, ["  "]) == [""]  # a blank context


@pytest.mark.parametrize("max_answer_length", [1, 2, 5, 30])
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

    found = best_answers(
        *logits, example, context_start, lengths, offsets, is_max_context, [context] * questions, max_answer_length
    )
    assert found == expected
