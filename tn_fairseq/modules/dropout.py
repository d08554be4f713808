"""Dropout with cheap random numbers on a CPU."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_RESOLUTION = 1 << 16  # each element gets 16 random bits


class Dropout(nn.Dropout):
    """``torch.nn.Dropout``, see ``dropout``: (...) -> (...)."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """``F.dropout``: zero each element with probability p, and divide the others by 1 - p: (...) -> (...).

    On a CPU, torch draws one random number per element, which takes a large part of a training step. Here one draw of
    64 bits serves four elements, and p is rounded to a multiple of 1/65,536.
    """
    if not training or p == 0.0:
        return x
    dropped = round(p * _RESOLUTION)
    if x.device.type != "cpu" or dropped in (0, _RESOLUTION) or torch.compiler.is_compiling():
        return F.dropout(x, p)
    return _CheapDropout.apply(x, dropped)


def dropout_matmul(x: Tensor, values: Tensor, p: float) -> Tensor:
    """``dropout(x, p) @ values`` on a CPU, if possible without storing the first factor: (..., T, S), (..., S, D).

    The result for a given seed is the same.
    """
    dropped = round(p * _RESOLUTION)
    if x.dtype != values.dtype or dropped in (0, _RESOLUTION):
        return dropout(x, p) @ values
    return _CheapDropoutMatmul.apply(x, values, dropped)


class _CheapDropout(torch.autograd.Function):
    """Dropout that saves 16 bits per element for the backward pass instead of the 32 of a factor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped: int) -> Tensor:
        bits = _random_bits(x.shape)
        ctx.save_for_backward(bits)
        ctx.dropped = dropped
        return _drop(x, bits, dropped)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (bits,) = ctx.saved_tensors
        return _drop(gradient, bits, ctx.dropped), None


class _CheapDropoutMatmul(torch.autograd.Function):
    """Saves the random bits and the input, which the preceding softmax saves anyway."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, values: Tensor, dropped: int) -> Tensor:
        bits = _random_bits(x.shape)
        ctx.save_for_backward(x, values, bits)
        ctx.dropped = dropped
        return _drop(x, bits, dropped) @ values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        x, values, bits = ctx.saved_tensors
        kept, scale = _kept(bits, ctx.dropped, x.dtype), _scale(ctx.dropped)
        x_gradient = (gradient @ values.transpose(-2, -1)).mul_(kept).mul_(scale)
        return x_gradient, kept.mul_(x).mul_(scale).transpose(-2, -1) @ gradient, None


def _random_bits(shape: torch.Size) -> Tensor:
    elements = shape.numel()
    bits = torch.empty(-(-elements // 4), dtype=torch.int64).random_(-(1 << 63), None).view(torch.int16)
    return bits[:elements].view(shape)


def _drop(x: Tensor, bits: Tensor, dropped: int) -> Tensor:
    # scale last, because the factor itself would be rounded in half precision
    return _kept(bits, dropped, x.dtype).mul_(x).mul_(_scale(dropped))


def _kept(bits: Tensor, dropped: int, dtype: torch.dtype) -> Tensor:
    """1 where the element is kept, 0 where it is dropped; the bits are signed integers, from -32,768."""
    return torch.ge(bits, dropped - _RESOLUTION // 2, out=torch.empty(bits.shape, dtype=dtype))


def _scale(dropped: int) -> float:
    return _RESOLUTION / (_RESOLUTION - dropped)
