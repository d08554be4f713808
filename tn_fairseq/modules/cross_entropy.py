"""Cross-entropy in float32, with one-hot or soft targets, without float32 copies of all logits."""

from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

_ENTRIES, _GPU_ENTRIES = 1 << 19, 1 << 25  # logits computed at a time: on a CPU, so few that they stay in the cache


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """``F.cross_entropy`` of each row, computed in float32: (N, V), (N) -> (N), in nats."""
    if logits.device.type != "cpu" or logits.dtype != torch.bfloat16 or torch.compiler.is_compiling():
        return F.cross_entropy(logits.float(), targets, reduction="none")
    return sparse_cross_entropy(logits, targets.unsqueeze(1), torch.ones(len(targets), 1))[0]


def sparse_cross_entropy(logits: Tensor, symbols: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
    """-sum of t(v) log p(v) over v, and the logsumexp of each row: (N, V), (N, K), (N, K) -> 2 x (N), in nats.

    p is the softmax of `logits`. The target t gives `shares`, which sum to 1 in each row, to `symbols`, and 0 to all
    others. A symbol may occur several times. The logsumexp has no gradient. Computed in float32, a few rows at a time.
    """
    return _SparseCrossEntropy.apply(logits, symbols, shares.float())


class _SparseCrossEntropy(torch.autograd.Function):
    """Saves the logits and one number per row, and computes the probabilities again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, symbols: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
        log_sums = _log_sums(logits)
        ctx.save_for_backward(logits, symbols, shares, log_sums)
        sums = log_sums.squeeze(1)
        ctx.mark_non_differentiable(sums)
        return sums - (shares * logits.gather(1, symbols)).sum(dim=1), sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Any) -> tuple[Optional[Tensor], ...]:
        result = torch.empty_like(ctx.saved_tensors[0])
        for some, symbols, shares, log_sums, scale, into in _parts(*ctx.saved_tensors, gradient.unsqueeze(1), result):
            difference = some.float().sub(log_sums).exp_().scatter_add_(1, symbols, -shares)
            into.copy_(difference.mul_(scale))
        return result, None, None


class SoftCrossEntropy(NamedTuple):
    """Losses, and what their computation also finds, which has no gradient: (N) each."""

    losses: Tensor
    log_sums: Tensor  # logsumexp of the logits
    target_log_sums: Tensor  # logsumexp of the target's logits, divided by the temperature


def soft_cross_entropy(
    logits: Tensor, targets: Tensor, target_logits: Tensor, weight: Tensor, temperature: float = 1.0
) -> SoftCrossEntropy:
    """-sum of t(v) log p(v) over v, with t(v) = (1 - `weight`) [v = target] + `weight` q(v): (N, V) -> (N), in nats.

    p is the softmax of `logits`, and q that of `target_logits` / `temperature`, (N, V), which get no gradient. The
    targets and weights are (N). Computed in float32, a few rows at a time. Both logits are saved for the backward pass.
    """
    return SoftCrossEntropy(
        *_SoftCrossEntropy.apply(logits, target_logits, targets.unsqueeze(1), weight.float().unsqueeze(1), temperature)
    )


class _SoftCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target_logits: Tensor, targets: Tensor, weight: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        losses, log_sums, target_log_sums = (torch.empty_like(weight) for _ in range(3))
        tensors = logits, target_logits, targets, weight, log_sums, target_log_sums, losses
        for some, theirs, gold, share, log_sum, target_log_sum, into in _parts(*tensors):
            some = some.float()
            torch.logsumexp(some, dim=1, keepdim=True, out=log_sum)
            # the exponentials of the teacher, once: their sum, and the expected logit of the student
            scaled = theirs.float() / temperature
            largest = scaled.amax(dim=1, keepdim=True)
            exponentials = scaled.sub_(largest).exp_()
            total = exponentials.sum(dim=1, keepdim=True)
            target_log_sum.copy_(total.log() + largest)
            expected_logit = exponentials.mul_(some).sum(dim=1, keepdim=True) / total
            into.copy_(log_sum - torch.lerp(some.gather(1, gold), expected_logit, share))
        ctx.save_for_backward(logits, target_logits, targets, weight, log_sums, target_log_sums)
        ctx.temperature = temperature
        results = losses.squeeze(1), log_sums.squeeze(1), target_log_sums.squeeze(1)
        ctx.mark_non_differentiable(*results[1:])
        return results

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: Any) -> tuple[Optional[Tensor], ...]:
        result = torch.empty_like(ctx.saved_tensors[0])
        for some, theirs, gold, share, log_sum, target_log_sum, scale, into in _parts(
            *ctx.saved_tensors, gradient.unsqueeze(1), result
        ):
            difference = some.float().sub(log_sum).exp_()
            difference.sub_((theirs.float() / ctx.temperature).sub_(target_log_sum).exp_().mul_(share))
            difference.scatter_add_(1, gold, share - 1)
            into.copy_(difference.mul_(scale))
        return result, None, None, None, None


def log_probabilities(logits: Tensor, symbols: Tensor) -> Tensor:
    """log p(v) of some symbols v of each row, in float32, without gradient: (N, V), (N, K) -> (N, K)."""
    logits = logits.detach()
    return logits.gather(1, symbols).float() - _log_sums(logits)


def _log_sums(logits: Tensor) -> Tensor:
    log_sums = torch.empty((len(logits), 1), device=logits.device)
    for some, into in _parts(logits, log_sums):
        torch.logsumexp(some.float(), dim=1, keepdim=True, out=into)
    return log_sums


def _parts(logits: Tensor, *others: Tensor) -> Iterator[tuple[Tensor, ...]]:
    rows = max(1, (_ENTRIES if logits.device.type == "cpu" else _GPU_ENTRIES) // logits.size(1))
    return zip(*(tensor.split(rows) for tensor in (logits, *others)))
