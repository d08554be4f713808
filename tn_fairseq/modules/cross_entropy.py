"""Cross-entropy of bfloat16 logits on a CPU, without float32 copies of all of them."""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

_ENTRIES = 1 << 19  # logits computed at a time, so that they stay in the cache


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


def _parts(logits: Tensor, *others: Tensor) -> Iterator[tuple[Tensor, ...]]:
    rows = max(1, _ENTRIES // logits.size(1))
    return zip(*(tensor.split(rows) for tensor in (logits, *others)))
