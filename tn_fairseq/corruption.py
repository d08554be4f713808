"""Corruption of text: mask tokens, draw replacements, and fill them in. Pure functions of tensors and arrays."""

from collections.abc import Sequence
from typing import NamedTuple, Optional

import numpy as np
import torch
from torch import Tensor

# how many probabilities are in memory at a time: fewer on a CPU, because its caches are small
_CPU_ENTRIES, _GPU_ENTRIES = 1 << 21, 1 << 25
_UNITS = 2.0**40  # the integer that stands for a probability of 1


class MaskingNumbers(NamedTuple):
    """The random numbers in [0, 1) that decide how a batch is masked: one per row, or one per position."""

    rounding: np.ndarray  # (B), whether the number of masked positions is rounded up or down
    order: np.ndarray  # (B, T), which positions are masked: those with the smallest numbers
    fate: np.ndarray  # (B, T), whether a masked position gets <mask>, a random token, or keeps its token
    token: np.ndarray  # (B, T), which random token it gets
    draw: np.ndarray  # (B, T), which token the generator draws


def masking_numbers(seed: int, epoch: int, indices: Sequence[int], lengths: Sequence[int]) -> MaskingNumbers:
    """Random numbers for blocks of the given indices and lengths, (B) each; padding gets 0.

    They depend only on the seed, the epoch and the block's index, not on its batch.
    """
    count = np.zeros(len(indices), dtype=np.float32)
    of_positions = np.zeros((4, len(indices), max(lengths)), dtype=np.float32)
    for row, (index, length) in enumerate(zip(indices, lengths)):
        rng = np.random.default_rng([seed, epoch, index])
        count[row] = rng.random(dtype=np.float32)
        of_positions[:, row, :length] = rng.random((4, length), dtype=np.float32)
    return MaskingNumbers(count, *of_positions)


def masking_thresholds(
    maskable: np.ndarray, numbers: MaskingNumbers, starts_word: np.ndarray | None = None
) -> np.ndarray:
    """The smallest share of masked tokens at which each position is masked: (B, T) boolean -> (B, T).

    A share p masks p of each row's maskable positions, rounded up or down at random so that it is exact on average.
    With `starts_word`, (B, T) boolean, it masks p of the words, each with all of its tokens. The threshold is infinite
    at positions that are not maskable.
    """
    heads = maskable
    if starts_word is not None:
        after_special = np.pad(~maskable[:, :-1], ((0, 0), (1, 0)), constant_values=True)
        heads = maskable & (starts_word | after_special)  # a block may begin inside a word
    # shuffle each row with its maskable positions (or the first tokens of its words) first; a position's rank is its
    # place in this order
    order = np.where(heads, numbers.order, 2.0).argsort(axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(order.shape[1])[None], axis=1)
    counts = np.maximum(heads.sum(axis=1, keepdims=True), 1)
    thresholds = np.where(heads, (ranks + 1 - numbers.rounding[:, None].astype(np.float64)) / counts, np.inf)
    if starts_word is not None:  # the other tokens of a word get the threshold of its first token
        heads_of = np.maximum.accumulate(np.where(heads, np.arange(heads.shape[1]), 0), axis=1)
        thresholds = np.where(maskable, np.take_along_axis(thresholds, heads_of, axis=1), np.inf)
    return thresholds


def mask_tokens(
    tokens: np.ndarray,
    thresholds: np.ndarray,
    numbers: MaskingNumbers,
    *,
    mask_index: int,
    mask_prob: float,
    leave_unmasked_prob: float,
    random_token_prob: float,
    random_token_range: tuple[int, int],
) -> tuple[np.ndarray, np.ndarray]:
    """Mask the positions with a threshold of at most `mask_prob`: (B, T) -> tokens and masked positions, (B, T).

    Of these, `leave_unmasked_prob` keep their token, `random_token_prob` get one drawn from the half-open
    `random_token_range`, and the rest become `mask_index`; all count as masked (Devlin et al. 2019, section 3.1).
    """
    masked = thresholds <= mask_prob
    is_random = masked & (numbers.fate < random_token_prob)
    is_mask = masked & (numbers.fate >= random_token_prob + leave_unmasked_prob)
    low, high = random_token_range
    random_tokens = low + np.floor(numbers.token.astype(np.float64) * (high - low)).astype(tokens.dtype)
    return np.where(is_mask, mask_index, np.where(is_random, random_tokens, tokens)), masked


def draw_replacements(logits: Tensor, temperature: float = 1.0, uniform: Optional[Tensor] = None) -> Tensor:
    """Draw one token from the softmax of each row: (N, V) -> (N), without gradient (Clark et al. 2020, section 2).

    Inverts the cumulative distribution at `uniform`, (N) in [0, 1), or at random numbers from torch's generator. This
    takes one random number per row instead of one per entry. Works in float32 on a few rows at a time to save memory.
    """
    if uniform is None:
        uniform = torch.rand(len(logits), device=logits.device)
    uniform = uniform.float().unsqueeze(1)
    entries = _CPU_ENTRIES if logits.device.type == "cpu" else _GPU_ENTRIES
    rows = max(1, entries // logits.size(-1))
    drawn = []
    for some_logits, some_uniform in zip(logits.detach().split(rows), uniform.split(rows)):
        some_logits = some_logits.float()
        probabilities = torch.softmax(some_logits if temperature == 1.0 else some_logits / temperature, dim=-1)
        cumulative = exact_cumsum(probabilities) if logits.is_cuda else probabilities.cumsum(dim=-1)
        # the probabilities sum to 1 only up to rounding: scale to the actual sum, and stay inside the dictionary
        thresholds = some_uniform.to(cumulative.dtype) * cumulative[:, -1:]
        drawn.append(torch.searchsorted(cumulative, thresholds, right=True))
    return torch.cat(drawn).squeeze(-1).clamp_(max=logits.size(-1) - 1)


def exact_cumsum(probabilities: Tensor) -> Tensor:
    """Running sums of probabilities that do not depend on the order of additions: (N, V) -> (N, V), float64.

    On a GPU, the order of additions varies from run to run, and so does rounding. Sums of integers are exact.
    """
    return (probabilities * _UNITS).long().cumsum(dim=-1).double()


def take_masked(values: Tensor, masked_tokens: Tensor, masked_indices: Optional[Tensor] = None) -> Tensor:
    """The values at the masked positions, row by row: (B, T, ...), (B, T) boolean -> (N, ...).

    `masked_indices`, (N), are the same positions in the flattened batch. They spare a GPU the synchronization.
    """
    if masked_indices is None:
        return values[masked_tokens]
    return values.flatten(0, 1).index_select(0, masked_indices)


def fill_in(tokens: Tensor, masked_tokens: Tensor, values: Tensor) -> Tensor:
    """The tokens with `values` at the masked positions, row by row: (B, T), (B, T) boolean, (N) -> (B, T)."""
    return tokens.masked_scatter(masked_tokens, values)


def original_tokens(src_tokens: Tensor, target_tokens: Tensor, masked_tokens: Tensor) -> Tensor:
    """The text before masking, s: (B, T), targets (B, T) where masked, (B, T) boolean -> (B, T)."""
    return torch.where(masked_tokens, target_tokens, src_tokens)
