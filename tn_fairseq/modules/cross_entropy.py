"""Cross-entropy in float32, with one-hot or soft targets, without float32 copies of all logits."""

from collections.abc import Iterator
from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

_ENTRIES, _GPU_ENTRIES = 1 << 19, 1 << 25  # logits computed at a time: on a CPU, so few that they stay in the cache


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """``F.cross_entropy`` of each row, computed in float32: (N, V), (N) -> (N), in nats."""
    if logits.device.type != "cpu" or logits.dtype != torch.bfloat16 or torch.compiler.is_compiling():
        return F.cross_entropy(logits.float(), targets, reduction="none")
    return _CrossEntropy.apply(logits, targets.unsqueeze(1)).squeeze(1)


class _CrossEntropy(torch.autograd.Function):
    """Saves the logits and one number per row, and computes the probabilities again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        log_sums = torch.empty(targets.shape)
        for some, into in _parts(logits, log_sums):
            torch.logsumexp(some.float(), dim=1, keepdim=True, out=into)
        ctx.save_for_backward(logits, targets, log_sums)
        return log_sums - logits.gather(1, targets)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        result = torch.empty_like(ctx.saved_tensors[0])
        for logits, targets, log_sums, scale, into in _parts(*ctx.saved_tensors, gradient, result):
            probabilities = logits.float().sub_(log_sums).exp_()
            probabilities.scatter_add_(1, targets, probabilities.new_full(targets.shape, -1.0))
            into.copy_(probabilities.mul_(scale))
        return result, None


def soft_cross_entropy(
    logits: Tensor, targets: Tensor, target_logits: Tensor, weight: Tensor, temperature: float = 1.0
) -> Tensor:
    """-sum of t(v) log p(v) over v, with t(v) = (1 - `weight`) [v = target] + `weight` q(v): (N, V) -> (N), in nats.

    p is the softmax of `logits`, and q that of `target_logits` / `temperature`, (N, V), which get no gradient. The
    targets and weights are (N). Computed in float32, a few rows at a time. Both logits are saved for the backward pass.
    """
    return _SoftCrossEntropy.apply(
        logits, target_logits, targets.unsqueeze(1), weight.float().unsqueeze(1), temperature
    ).squeeze(1)


class _SoftCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target_logits: Tensor, targets: Tensor, weight: Tensor, temperature: float
    ) -> Tensor:
        losses = torch.empty_like(weight)
        log_sums, target_log_sums = torch.empty_like(weight), torch.empty_like(weight)
        tensors = logits, target_logits, targets, weight, log_sums, target_log_sums, losses
        for some, theirs, gold, share, log_sum, target_log_sum, into in _parts(*tensors):
            some, scaled = some.float(), theirs.float() / temperature
            torch.logsumexp(some, dim=1, keepdim=True, out=log_sum)
            torch.logsumexp(scaled, dim=1, keepdim=True, out=target_log_sum)
            expected_logit = scaled.sub_(target_log_sum).exp_().mul_(some).sum(dim=1, keepdim=True)
            into.copy_(log_sum - torch.lerp(some.gather(1, gold), expected_logit, share))
        ctx.save_for_backward(logits, target_logits, targets, weight, log_sums, target_log_sums)
        ctx.temperature = temperature
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], ...]:
        result = torch.empty_like(ctx.saved_tensors[0])
        for some, theirs, gold, share, log_sum, target_log_sum, scale, into in _parts(
            *ctx.saved_tensors, gradient, result
        ):
            difference = some.float().sub(log_sum).exp_()
            difference.sub_((theirs.float() / ctx.temperature).sub_(target_log_sum).exp_().mul_(share))
            difference.scatter_add_(1, gold, share - 1)
            into.copy_(difference.mul_(scale))
        return result, None, None, None, None


def log_probabilities(logits: Tensor, symbols: Tensor) -> Tensor:
    """log p(v) of some symbols v of each row, in float32, without gradient: (N, V), (N, K) -> (N, K)."""
    logits = logits.detach()
    log_sums = torch.empty((len(logits), 1), device=logits.device)
    for some, into in _parts(logits, log_sums):
        torch.logsumexp(some.float(), dim=1, keepdim=True, out=into)
    return logits.gather(1, symbols).float() - log_sums


def _parts(logits: Tensor, *others: Tensor) -> Iterator[tuple[Tensor, ...]]:
    rows = max(1, (_ENTRIES if logits.device.type == "cpu" else _GPU_ENTRIES) // logits.size(1))
    return zip(*(tensor.split(rows) for tensor in (logits, *others)))
