"""Matrix products through oneDNN on a CPU.

torch uses MKL, which reaches only half the speed of the widest instructions on AMD processors. oneDNN, which torch uses
for convolutions and in its compiler, is fast on both AMD and Intel.

Under torch's autocast to bfloat16, products are computed in bfloat16 from float32 weights, whose gradients are float32.
"""

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_onednn_linear: Any = (
    getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None
)
# the types that it multiplies on this CPU; without AVX512, bfloat16 is not among them
_DTYPES = {torch.float32}
if _onednn_linear is not None and torch.ops.mkldnn._is_mkldnn_bf16_supported():
    _DTYPES.add(torch.bfloat16)


class Linear(nn.Linear):
    """``torch.nn.Linear`` with faster products on a CPU, optionally after a GELU: (..., I) -> (..., O)."""

    def forward(self, x: Tensor, gelu: bool = False) -> Tensor:
        return linear(x, self.weight, self.bias, gelu)


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None, gelu: bool = False) -> Tensor:
    """``F.linear``, x W^T + b, optionally of GELU(x), which is not stored: (..., I), (O, I), (O) -> (..., O)."""
    x = in_autocast_dtype(x)
    dtype = torch.bfloat16 if torch.is_autocast_enabled("cpu") else torch.float32
    suits = x.device.type == "cpu" and x.dtype == dtype and weight.dtype == torch.float32 and x.numel() > 0
    suits = suits and dtype in _DTYPES
    if _onednn_linear is None or not suits or torch.compiler.is_compiling():
        return F.linear(F.gelu(x) if gelu else x, weight, bias)
    return _OneDNNLinear.apply(x, weight, bias, gelu)


def in_autocast_dtype(x: Tensor) -> Tensor:
    """``x`` in the type to which torch's autocast converts products on a CPU, if it is on: (...) -> (...)."""
    if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        return x.to(torch.get_autocast_dtype("cpu"))
    return x


class _OneDNNLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Optional[Tensor], gelu: bool) -> Tensor:
        weight = weight.to(x.dtype)
        ctx.save_for_backward(x, weight)
        ctx.gelu = gelu
        return _product(F.gelu(x) if gelu else x, weight, None if bias is None else bias.to(x.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
        rows = gradient.reshape(-1, gradient.size(-1))
        x_gradient = weight_gradient = None
        if needs_weight:
            inputs = (F.gelu(x) if ctx.gelu else x).reshape(-1, x.size(-1))
            weight_gradient = _transposed_product(rows, inputs).float()
        if needs_x:
            x_gradient = _product(rows, weight.t()).view(x.shape)
            if ctx.gelu:
                x_gradient = torch.ops.aten.gelu_backward(x_gradient, x)
        return x_gradient, weight_gradient, rows.sum(dim=0).float() if needs_bias else None, None


def _product(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    return _onednn_linear(x, weight, bias, "none", [], "")


def _transposed_product(rows: Tensor, inputs: Tensor) -> Tensor:
    """rows^T inputs: (N, O), (N, I) -> (O, I)."""
    if rows.dtype == torch.bfloat16:
        return rows.t() @ inputs  # torch itself uses oneDNN, without copying the transposed matrices
    if rows.size(1) > inputs.size(1):  # faster for oneDNN, which needs copies of both
        return _product(inputs.t(), rows.t()).t()
    return _product(rows.t(), inputs.t())
