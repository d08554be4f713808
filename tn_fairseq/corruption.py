"""How text is corrupted: masking, drawing replacements, and filling them in. Pure functions of tensors and arrays."""

from typing import Optional

import numpy as np
import torch
from torch import Tensor

# probabilities in memory together: few on a CPU, whose caches are small
_CPU_ENTRIES, _GPU_ENTRIES = 1 << 21, 1 << 27


def mask_tokens(
    tokens: np.ndarray,
    maskable: np.ndarray,
    rng: np.random.Generator,
    *,
    mask_index: int,
    mask_prob: float,
    leave_unmasked_prob: float,
    random_token_prob: float,
    random_token_range: tuple[int, int],
) -> tuple[np.ndarray, np.ndarray]:
    """Mask a share of the maskable positions of each row: (B, T) -> masked tokens (B, T), which are masked (B, T).

    Each row loses `mask_prob` of its maskable positions, rounded up or down at random so that the share is exact on
    average. Of these, `leave_unmasked_prob` keep their token, `random_token_prob` get one drawn from the half-open
    `random_token_range`, and the rest become `mask_index`; all count as masked (Devlin et al. 2019, section 3.1).
    """
    count = np.floor(mask_prob * maskable.sum(axis=1) + rng.random(len(tokens))).astype(int)
    # a random order of each row, its maskable positions first, of which the first `count` are taken
    order = np.where(maskable, rng.random(tokens.shape), 2.0).argsort(axis=1)
    masked = np.zeros(tokens.shape, dtype=bool)
    np.put_along_axis(masked, order, np.arange(tokens.shape[1]) < count[:, None], axis=1)

    fate = rng.random(tokens.shape)
    is_random = masked & (fate < random_token_prob)
    is_mask = masked & (fate >= random_token_prob + leave_unmasked_prob)
    corrupted = np.where(is_mask, mask_index, tokens)
    corrupted[is_random] = rng.integers(*random_token_range, size=is_random.sum())
    return corrupted, masked


def draw_replacements(logits: Tensor, temperature: float = 1.0, uniform: Optional[Tensor] = None) -> Tensor:
    """Draw one token from the softmax of each row: (N, V) -> (N), without gradient (Clark et al. 2020, section 2).

    By inversion of the cumulative distribution, in float32, at `uniform`, (N) in [0, 1), or at numbers of torch's
    generator: one random number a row instead of one an entry. Some rows at a time, so that the probabilities of all
    are never in memory together.
    """
    if uniform is None:
        uniform = torch.rand(len(logits), device=logits.device)
    uniform = uniform.float().unsqueeze(1)
    entries = _CPU_ENTRIES if logits.device.type == "cpu" else _GPU_ENTRIES
    rows = max(1, entries // logits.size(-1))
    drawn = []
    for some_logits, some_uniform in zip(logits.detach().split(rows), uniform.split(rows)):
        cumulative = torch.softmax(some_logits.float() / temperature, dim=-1).cumsum(dim=-1)
        # the probabilities sum to 1 only up to rounding: scale to what was summed, and stay inside the dictionary
        drawn.append(torch.searchsorted(cumulative, some_uniform * cumulative[:, -1:], right=True))
    return torch.cat(drawn).squeeze(-1).clamp_(max=logits.size(-1) - 1)


def take_masked(values: Tensor, masked_tokens: Tensor, masked_indices: Optional[Tensor] = None) -> Tensor:
    """The values at the masked positions, row by row: (B, T, ...), (B, T) boolean -> (N, ...).

    `masked_indices`, (N), are the same positions in the flattened batch. With them a GPU need not stop to count.
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
