"""Dropout with cheap random numbers on a CPU."""

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
    """``dropout(x, p) @ values``, if possible without storing the first factor: (..., T, S), (..., S, D).

    The result for a given seed is the same.
    """
    dropped = round(p * _RESOLUTION)
    mixed = x.dtype != values.dtype or torch.is_autocast_enabled("cpu")
    if x.device.type != "cpu" or mixed or dropped in (0, _RESOLUTION) or torch.compiler.is_compiling():
        return dropout(x, p) @ values
    return _CheapDropoutMatmul.apply(x, values, dropped)


class _CheapDropout(torch.autograd.Function):
    """Dropout that saves 16 bits per element for the backward pass instead of the 32 of a factor."""

    @staticmethod
    def forward(ctx, x, dropped):
        bits = _random_bits(x.shape)
        ctx.save_for_backward(bits)
        ctx.dropped = dropped
        return x * _factors(bits, dropped, x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        (bits,) = ctx.saved_tensors
        return gradient * _factors(bits, ctx.dropped, gradient.dtype), None


class _CheapDropoutMatmul(torch.autograd.Function):
    """Saves the random bits and the input, which the preceding softmax saves anyway."""

    @staticmethod
    def forward(ctx, x, values, dropped):
        bits = _random_bits(x.shape)
        ctx.save_for_backward(x, values, bits)
        ctx.dropped = dropped
        return (x * _factors(bits, dropped, x.dtype)) @ values

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        x, values, bits = ctx.saved_tensors
        factors = _factors(bits, ctx.dropped, x.dtype)
        x_gradient = (gradient @ values.transpose(-2, -1)).mul_(factors)
        return x_gradient, factors.mul_(x).transpose(-2, -1) @ gradient, None


def _random_bits(shape: torch.Size) -> Tensor:
    elements = shape.numel()
    bits = torch.empty(-(-elements // 4), dtype=torch.int64).random_(-(1 << 63), None).view(torch.int16)
    return bits[:elements].view(shape)


def _factors(bits: Tensor, dropped: int, dtype: torch.dtype) -> Tensor:
    # the bits are signed integers, from -32,768
    kept = torch.ge(bits, dropped - _RESOLUTION // 2, out=torch.empty(bits.shape, dtype=dtype))
    return kept.mul_(_RESOLUTION / (_RESOLUTION - dropped))
