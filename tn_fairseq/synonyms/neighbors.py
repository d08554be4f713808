"""The nearest neighbors of words by the cosine of their vectors."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch

from ..core.vocabulary import casing

_ROWS_AT_A_TIME = 1024  # compare this many words with all words at a time


class Vectors(NamedTuple):
    """The words that have a vector, their unit vectors (words, dimension), float32, and a description of the source."""

    words: list[str]
    matrix: np.ndarray
    version: str


def nearest_neighbors(
    vectors: Vectors, top_k: int, min_similarity: float | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Yield each word of ``vectors`` with its ``top_k`` nearest others by cosine, nearest first.

    Neighbors have the casing pattern of the word (lower, Capitalized, UPPER, mixed), and a similarity of at least
    ``min_similarity`` if given.
    """
    groups: dict[str, list[int]] = {}
    for row, word in enumerate(vectors.words):
        groups.setdefault(casing(word), []).append(row)
    for group in groups.values():
        words = [vectors.words[row] for row in group]
        matrix = torch.from_numpy(vectors.matrix[group])
        for start in range(0, len(words), _ROWS_AT_A_TIME):
            similarity = matrix[start : start + _ROWS_AT_A_TIME] @ matrix.T
            similarity.diagonal(start).fill_(-torch.inf)  # the word itself
            values, columns = similarity.topk(min(top_k, len(words) - 1))
            is_near = values.double() >= (-torch.inf if min_similarity is None else min_similarity)
            for word, near, kept in zip(words[start:], columns, is_near):
                yield word, [words[column] for column in near[kept].tolist()]


def at_least(vectors: Vectors, min_similarity: float) -> Callable[[str, str], bool]:
    """A function that tells whether two words have a cosine of at least ``min_similarity``; both need a vector."""
    rows = dict(zip(vectors.words, vectors.matrix, strict=True))
    return lambda word, other: word in rows and other in rows and bool(rows[word] @ rows[other] >= min_similarity)
