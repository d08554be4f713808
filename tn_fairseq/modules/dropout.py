"""Dropout with cheap random numbers on a CPU."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_RESOLUTION = 1 << 16  # of the 16 random bits for each element


class Dropout(nn.Dropout):
    """``torch.nn.Dropout``, see ``dropout``: (...) -> (...)."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """``F.dropout``: zero each element with probability p, and divide the others by 1 - p: (...) -> (...).

    On a CPU torch draws these one by one, which takes a fifth of a training step. Here one draw of 64 bits serves four
    elements; p is rounded to 1/65,536 for it.
    """
    dropped = round(p * _RESOLUTION)
    if not training or p == 0.0:
        return x
    if x.device.type != "cpu" or dropped in (0, _RESOLUTION) or torch.compiler.is_compiling():
        return F.dropout(x, p)
    bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None).view(torch.int16)
    bits = bits[: x.numel()].view(x.shape)
    # as signed numbers the bits begin at -32,768
    kept = torch.ge(bits, dropped - _RESOLUTION // 2, out=torch.empty(x.shape, dtype=x.dtype))
    return x * kept.mul_(_RESOLUTION / (_RESOLUTION - dropped))
