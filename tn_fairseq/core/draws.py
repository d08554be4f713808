"""Draws from a teacher's distribution at masked positions, as words and how often each was drawn."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .corruption import Kind, block_keys, exact_cumsum, random_bits, to_uniform

MOST = 255  # draws, so that a count fits into a byte
_ENTRIES = 1 << 21  # probabilities in memory at a time


class Draws(NamedTuple):
    """The different words that were drawn at each of N positions, position after position, and how often: (M) each."""

    words: np.ndarray
    counts: np.ndarray  # add up to the same number of draws at each position

    def padded(self, draws: int) -> tuple[Tensor, Tensor]:
        """Words and counts with a row for each position, (N, K) each; counts of 0 fill the rows."""
        position = (self.counts.cumsum(dtype=np.int64) - 1) // draws
        column = np.arange(len(position)) - np.searchsorted(position, position)
        rows, columns = (int(index.max(initial=-1)) + 1 for index in (position, column))
        words, counts = np.zeros((rows, columns), dtype=np.int64), np.zeros((rows, columns), dtype=np.int32)
        words[position, column], counts[position, column] = self.words, self.counts
        return torch.from_numpy(words), torch.from_numpy(counts)


def uniform_for_draws(seed: int, version: int, rows: np.ndarray, columns: np.ndarray, draws: int) -> Tensor:
    """Random numbers for draws at masked positions of blocks: rows (N) and columns (N) -> (N, draws) in [0, 1).

    They depend only on the seed, the version of the masks, the block and the place in it, and on none of the random
    numbers of the masks.
    """
    keys = block_keys(0, 0, block_keys(seed, version, rows))
    places = columns[:, None] * draws + np.arange(draws)
    return torch.from_numpy(to_uniform(random_bits(keys[:, None], Kind.DRAW, places)))


def draw(logits: Tensor, uniform: Tensor) -> Draws:
    """Independent draws from the softmax of each row: (N, V), (N, D) in [0, 1) -> ``Draws`` of N positions, D each.

    Inverts the cumulative distribution at `uniform`.
    """
    drawn = []
    rows = max(1, _ENTRIES // logits.size(1))
    for some, numbers in zip(logits.detach().split(rows), uniform.to(logits.device).split(rows)):
        cumulative = exact_cumsum(torch.softmax(some.float(), dim=1))
        # the probabilities sum to 1 only up to rounding: scale to the actual sum
        drawn.append(torch.searchsorted(cumulative, (numbers * cumulative[:, -1:]).long(), right=True).cpu())
    words = torch.cat(drawn).clamp_(max=logits.size(1) - 1).sort(dim=1).values.numpy()  # NaN can draw any word
    is_first = np.ones_like(words, dtype=bool)
    is_first[:, 1:] = words[:, 1:] != words[:, :-1]
    first = np.flatnonzero(is_first)
    return Draws(words.ravel()[first], np.diff(first, append=words.size))
