"""Matrix products through oneDNN on a CPU.

torch uses MKL, which reaches only half the speed of the widest instructions on AMD processors. oneDNN, which torch uses
for convolutions and in its compiler, is fast on both AMD and Intel.
"""

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_onednn_linear = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None


class Linear(nn.Linear):
    """``torch.nn.Linear`` with faster products on a CPU, optionally after a GELU: (..., I) -> (..., O)."""

    def forward(self, x: Tensor, gelu: bool = False) -> Tensor:
        return linear(x, self.weight, self.bias, gelu)


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None, gelu: bool = False) -> Tensor:
    """``F.linear``, x W^T + b, optionally of GELU(x), which is not stored: (..., I), (O, I), (O) -> (..., O)."""
    suits = x.device.type == "cpu" and x.dtype == weight.dtype == torch.float32 and x.numel() > 0
    if _onednn_linear is None or not suits or torch.is_autocast_enabled("cpu") or torch.compiler.is_compiling():
        return F.linear(F.gelu(x) if gelu else x, weight, bias)
    return _OneDNNLinear.apply(x, weight, bias, gelu)


class _OneDNNLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, gelu):
        ctx.save_for_backward(x, weight)
        ctx.gelu = gelu
        return _product(F.gelu(x) if gelu else x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
        rows = gradient.reshape(-1, gradient.size(-1))
        x_gradient = weight_gradient = None
        if needs_weight:
            inputs = F.gelu(x) if ctx.gelu else x
            weight_gradient = _product(rows.t(), inputs.reshape(-1, x.size(-1)).t())
        if needs_x:
            x_gradient = _product(rows, weight.t()).view(x.shape)
            if ctx.gelu:
                x_gradient = torch.ops.aten.gelu_backward(x_gradient, x)
        return x_gradient, weight_gradient, rows.sum(dim=0) if needs_bias else None, None


def _product(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    return _onednn_linear(x, weight, bias, "none", [], "")
