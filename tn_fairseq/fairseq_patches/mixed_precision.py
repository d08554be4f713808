"""Half precision with float32 copies: a few kernels for all parameters, where fairseq has one for each of them."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from fairseq.optim.fp16_optimizer import _FP16OptimizerMixin
from torch import Tensor

from .replacing import replaces


@replaces(_FP16OptimizerMixin, "_sync_fp16_grads_to_fp32")
def copy_gradients(original: Callable, optimizer: Any) -> None:
    """Copy the gradients to those in float32, all at once if all of them exist, as from the second update on."""
    pairs = [] if optimizer.has_flat_params or not optimizer._needs_sync else _trained(optimizer)
    targets = [copy.grad for _, copy in pairs if copy.grad is not None]
    gradients = [parameter.grad for parameter, _ in pairs if parameter.grad is not None]
    if not pairs or not len(targets) == len(gradients) == len(pairs):
        return original(optimizer)
    torch._foreach_copy_(targets, gradients)
    optimizer._needs_sync = False


@replaces(_FP16OptimizerMixin, "_sync_fp32_params_to_fp16")
def copy_parameters(original: Callable, optimizer: Any) -> None:
    """Copy the float32 parameters back, all at once."""
    pairs = [] if optimizer.has_flat_params else _trained(optimizer)
    if not pairs:
        return original(optimizer)
    torch._foreach_copy_([parameter.data for parameter, _ in pairs], [copy.data for _, copy in pairs])


@replaces(_FP16OptimizerMixin, "zero_grad")
def forget_gradients(original: Callable, optimizer: Any) -> None:
    """Do not set the gradients in float32 to zero, because each of them is written before it is read."""
    if optimizer.has_flat_params:
        return original(optimizer)
    with patch.object(optimizer, "fp32_params", []):
        original(optimizer)


def _trained(optimizer: Any) -> list[tuple[Tensor, Tensor]]:
    """The parameters that are trained, with their copies in float32."""
    pairs = zip(optimizer.fp16_params, optimizer.fp32_params)
    return [(parameter, copy) for parameter, copy in pairs if parameter.requires_grad]
