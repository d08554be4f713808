"""Corruption of text: mask tokens, draw replacements, and fill them in. Pure functions of tensors and arrays."""

from enum import IntEnum
from typing import Any, NamedTuple, Optional

import numpy as np
import torch
from torch import Tensor

# how many probabilities are in memory at a time: few on a CPU, because its caches are small, and many on a GPU, because
# starting operations takes time
_CPU_ENTRIES, _GPU_ENTRIES = 1 << 21, 1 << 28
_UNITS = 2.0**40  # the integer that stands for a probability of 1
_GROUP = 128  # tokens of which the probabilities are added up first
_BELOW_ONE = 1 - 2.0**-53
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)  # of SplitMix64: the golden ratio's fraction


class Kind(IntEnum):
    """What a random number decides; the first is drawn once per block, and the others at every position."""

    ROUNDING = 0  # whether the number of masked positions is rounded up or down
    ORDER = 1  # which positions are masked: those with the smallest numbers
    FATE = 2  # whether a masked position gets <mask>, a random token, or keeps its token
    TOKEN = 3  # which random token it gets
    DRAW = 4  # which token the generator draws


def block_keys(seed: int, epoch: int, blocks: np.ndarray) -> np.ndarray:
    """The state of each block's random numbers, for indices of blocks: (B) -> (B) uint64."""
    keys = np.zeros(1, dtype=np.uint64)
    for number in (seed, epoch, blocks):
        keys = _mix(keys + np.asarray(number, dtype=np.uint64) + _INCREMENT)
    return keys


def random_bits(keys: np.ndarray, kind: Kind | np.ndarray, positions: np.ndarray) -> np.ndarray:
    """64 random bits for blocks with the given keys, at positions: uint64 and integers that broadcast -> uint64.

    They depend on nothing else, so they can be drawn in any order, and for any part of a batch: a block's numbers are
    the outputs of SplitMix64, which can be computed one by one (Steele et al. 2014).
    """
    number = positions.astype(np.uint64) * np.uint64(len(Kind)) + np.asarray(kind, dtype=np.uint64)
    return _mix(keys + _INCREMENT * (number + np.uint64(1)))


def _mix(state: np.ndarray) -> np.ndarray:
    """The output function of SplitMix64, as in https://prng.di.unimi.it/splitmix64.c."""
    bits = state ^ (state >> np.uint64(30))
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return bits


def to_uniform(bits: np.ndarray, digits: int = 53) -> np.ndarray:
    """The first binary digits of random bits as a number in [0, 1): uint64 -> float64 of the same shape."""
    return (bits >> np.uint64(64 - digits)) * 2.0**-digits


def masking_thresholds(
    maskable: np.ndarray,
    order: np.ndarray,
    rounding: np.ndarray,
    largest: float,
    starts_word: np.ndarray | None = None,
) -> np.ndarray:
    """The smallest share of masked tokens at which each position is masked: (B, T) boolean -> (B, T).

    A share p masks p of each row's maskable positions, those with the smallest `order`, (B, T) uint64. Their number is
    rounded up or down by `rounding`, (B) in [0, 1), so that it is exact on average. With `starts_word`, (B, T) boolean,
    it masks p of the words, each with all of its tokens. The threshold is infinite at positions that are not maskable,
    and where it is above `largest`.
    """
    heads = maskable
    if starts_word is not None:
        after_special = np.pad(~maskable[:, :-1], ((0, 0), (1, 0)), constant_values=True)
        heads = maskable & (starts_word | after_special)  # a block may begin inside a word
    width = heads.shape[1]
    # the last bits become the column, so that sorting the numbers also sorts the columns
    low = np.uint64((1 << width.bit_length()) - 1)
    order = np.where(heads, order, ~np.uint64(0)) & ~low | np.arange(width, dtype=np.uint64)
    counts = np.count_nonzero(heads, axis=1)[:, None]
    most = min(width, int(largest * counts.max()) + 1)
    if most < width:
        order.partition(most - 1, axis=1)
    first = np.sort(order[:, :most], axis=1)
    ranks = np.arange(1, most + 1)
    fractions = (ranks - rounding[:, None]) / np.maximum(counts, 1)
    fractions[(fractions > largest) | (ranks > counts)] = np.inf
    thresholds = np.full(heads.shape, np.inf)
    np.put_along_axis(thresholds, (first & low).astype(np.int64), fractions, axis=1)
    if starts_word is not None:  # the other tokens of a word get the threshold of its first token
        heads_of = np.maximum.accumulate(np.where(heads, np.arange(width), 0), axis=1)
        thresholds = np.where(maskable, np.take_along_axis(thresholds, heads_of, axis=1), np.inf)
    return thresholds


class Masked(NamedTuple):
    """Blocks in which N positions are masked."""

    indices: np.ndarray  # (N), in the flattened blocks, row by row
    thresholds: np.ndarray  # (N), the smallest share of masked tokens at which they are masked
    src_tokens: np.ndarray  # (B, T), what the model reads
    draws: np.ndarray  # (N) uint64, random bits for drawing replacements


def mask(
    tokens: np.ndarray,
    maskable: np.ndarray,
    keys: np.ndarray,
    mask_prob: float,
    starts_word: np.ndarray | None = None,
    **corruption: Any,
) -> Masked:
    """Mask blocks (B, T) by their random numbers, with ``block_keys`` (B); the options are those of ``corrupt``.

    `maskable` and `starts_word`, (B, T), are as in ``masking_thresholds``.
    """
    keys = keys[:, None]
    thresholds = masking_thresholds(
        maskable,
        random_bits(keys, Kind.ORDER, np.arange(tokens.shape[1])),
        to_uniform(random_bits(keys, Kind.ROUNDING, np.zeros(1)))[:, 0],
        mask_prob,
        starts_word,
    )
    indices = np.flatnonzero(thresholds <= mask_prob)
    row, column = np.divmod(indices, tokens.shape[1])
    kinds = np.array([[Kind.FATE], [Kind.TOKEN], [Kind.DRAW]])
    fate, token, draws = random_bits(keys[row, 0], kinds, column)
    src_tokens = tokens.copy()
    gold = tokens.ravel()[indices]
    src_tokens.ravel()[indices] = corrupt(gold, to_uniform(fate), to_uniform(token), **corruption)
    return Masked(indices, thresholds.ravel()[indices], src_tokens, draws)


def corrupt(
    tokens: np.ndarray,
    fate: np.ndarray,
    token: np.ndarray,
    *,
    mask_index: int,
    leave_unmasked_prob: float,
    random_token_prob: float,
    random_token_range: tuple[int, int],
) -> np.ndarray:
    """What the model reads in place of masked tokens, (N), by their random numbers in [0, 1), (N) each -> (N).

    `leave_unmasked_prob` keep their token, `random_token_prob` get one drawn from the half-open `random_token_range`,
    and the rest become `mask_index` (Devlin et al. 2019, section 3.1).
    """
    low, high = random_token_range
    random_tokens = low + (token * (high - low)).astype(tokens.dtype)
    unmasked = np.where(fate < random_token_prob, random_tokens, tokens)
    return np.where(fate < random_token_prob + leave_unmasked_prob, unmasked, mask_index)


def draw_replacements(logits: Tensor, temperature: float = 1.0, uniform: Optional[Tensor] = None) -> Tensor:
    """Draw one token from the softmax of each row: (N, V) -> (N), without gradient (Clark et al. 2020, section 2).

    Inverts the cumulative distribution at `uniform`, (N) in [0, 1), or at random numbers from torch's generator. This
    takes one random number per row instead of one per entry. Works in float32 on a few rows at a time to save memory.
    """
    if uniform is None:
        uniform = torch.rand(len(logits), device=logits.device)
    if logits.device.type == "mps":  # Apple's GPUs have no float64
        return draw_replacements(logits.detach().cpu(), temperature, uniform.cpu()).to(logits.device)
    uniform = uniform.double().unsqueeze(1)
    entries = _CPU_ENTRIES if logits.device.type == "cpu" else _GPU_ENTRIES
    rows = max(1, entries // logits.size(-1))
    drawn = []
    for some_logits, some_uniform in zip(logits.detach().split(rows), uniform.split(rows)):
        some_logits = some_logits.float()
        probabilities = torch.softmax(some_logits if temperature == 1.0 else some_logits / temperature, dim=-1)
        # first a group of tokens, then a token of it, because running sums are much slower than sums
        groups, end = probabilities.size(1) // _GROUP, probabilities.size(1) // _GROUP * _GROUP
        group_probabilities = probabilities[:, :end].unflatten(1, (groups, _GROUP)).sum(dim=2)
        group_probabilities = torch.cat([group_probabilities, probabilities[:, end:].sum(dim=1, keepdim=True)], dim=1)
        group, rest = _invert(group_probabilities, some_uniform)
        tokens = group * _GROUP + torch.arange(_GROUP, device=logits.device)
        inside = tokens < probabilities.size(1)
        token, _ = _invert(probabilities.gather(1, tokens.where(inside, 0)) * inside, rest)
        drawn.append(tokens.gather(1, token))
    return torch.cat(drawn).squeeze(-1).clamp_(max=logits.size(-1) - 1)  # NaN can draw any token, but of the dictionary


def _invert(probabilities: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Which entry of each row has the cumulative share `uniform`, and how much of that entry is below it, in [0, 1).

    (N, K), (N, 1) in [0, 1) -> 2 x (N, 1).
    """
    cumulative = exact_cumsum(probabilities).double()
    # the probabilities sum to 1 only up to rounding: scale to the actual sum
    thresholds = uniform * cumulative[:, -1:]
    indices = torch.searchsorted(cumulative, thresholds, right=True).clamp_(max=probabilities.size(1) - 1)
    above = cumulative.gather(1, indices)
    below = torch.where(indices > 0, cumulative.gather(1, (indices - 1).clamp_(min=0)), 0.0)
    return indices, ((thresholds - below) / (above - below)).clamp(0.0, _BELOW_ONE)


def exact_cumsum(probabilities: Tensor) -> Tensor:
    """Running sums of probabilities that do not depend on the order of additions: (N, K) -> (N, K), in units, int64.

    On a GPU, the order of additions varies from run to run, and so does rounding. Sums of integers are exact.
    """
    return (probabilities * _UNITS).long().cumsum(dim=-1)


def take_masked(values: Tensor, masked_tokens: Tensor, masked_indices: Optional[Tensor] = None) -> Tensor:
    """The values at the masked positions, row by row: (B, T, ...), (B, T) boolean -> (N, ...)."""
    return values.flatten(0, 1).index_select(0, flat_indices(masked_tokens, masked_indices))


def flat_indices(masked_tokens: Tensor, masked_indices: Optional[Tensor] = None) -> Tensor:
    """The masked positions in the flattened batch: (B, T) boolean -> (N).

    If they are known, `masked_indices` spares a GPU the synchronization.
    """
    return masked_tokens.flatten().nonzero().squeeze(1) if masked_indices is None else masked_indices


def fill_in(tokens: Tensor, masked_tokens: Tensor, values: Tensor) -> Tensor:
    """The tokens with `values` at the masked positions, row by row: (B, T), (B, T) boolean, (N) -> (B, T)."""
    return tokens.masked_scatter(masked_tokens, values)
