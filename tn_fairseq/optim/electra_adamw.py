"""ELECTRA's optimizer: ``--optimizer electra_adamw``."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, List

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II
from torch import Tensor

from ..core.errors import InputError, one_line_errors
from ..core.options import check, option

# with this many steps 1 - beta^steps is 1, so there is no bias correction; float32 cannot count further
UNCORRECTED_STEPS = 2.0**24


@dataclass
class ElectraAdamWConfig(FairseqDataclass):
    adam_betas: str = option("decay of the first and second moment", default="(0.9, 0.999)")
    adam_eps: float = option("added to the root of the second moment", default=1e-6, above=0)  # 0 / 0 for zeros
    adam_bias_correction: bool = option("correct the bias of the moments towards zero", default=False)
    weight_decay: float = option("decoupled; not applied to biases and LayerNorm", default=0.01, at_least=0)
    layerwise_lr_decay: float = option(
        "factor of the learning rate from each layer to the one below", default=1.0, above=0, at_most=1
    )
    lr: List[float] = field(default=II("optimization.lr"), metadata={"at_least": 0})


def parameter_groups(
    parameters: Iterable[torch.nn.Parameter], weight_decay: float, layerwise_lr_decay: float
) -> list[dict[str, Any]]:
    """Group parameters by weight decay and learning-rate scale.

    Vectors (biases and LayerNorm) are not decayed. A parameter at depth d of n layers (embeddings 0, first layer 1)
    has a scale of decay^(n + 2 - d). One without a depth belongs to a task's head and has a scale of 1 (Clark et al.
    2020, as released).
    """
    parameters = list(parameters)
    depths = [getattr(p, "optim_overrides", {}).get("layer_depth") for p in parameters]
    top = max((depth for depth in depths if depth is not None), default=0) + 2
    groups = defaultdict(list)
    for parameter, depth in zip(parameters, depths):
        scale = 1.0 if depth is None else layerwise_lr_decay ** (top - depth)
        groups[(weight_decay if parameter.dim() > 1 else 0.0, scale)].append(parameter)
    return [{"params": members, "weight_decay": decay, "lr_scale": scale} for (decay, scale), members in groups.items()]


def _betas(text: str) -> tuple[float, float]:
    try:
        beta1, beta2 = map(float, text.strip("()[] ").split(","))
        if 0 <= beta1 < 1 and 0 <= beta2 < 1:
            return beta1, beta2
    except ValueError:  # not numbers, or not two
        pass
    raise InputError(f"--adam-betas must be two numbers in [0, 1), such as '(0.9, 0.999)', not {text!r}")


@register_optimizer("electra_adamw", dataclass=ElectraAdamWConfig)
class ElectraAdamW(FairseqOptimizer):
    """AdamW without weight decay on biases and LayerNorm, and by default without bias correction.

    The update is torch's fused kernel. To turn off bias correction, the step counter starts at a high number.
    """

    @one_line_errors()
    def __init__(self, cfg: ElectraAdamWConfig, params: Iterable[torch.nn.Parameter]) -> None:
        super().__init__(cfg)
        params = list(params)
        if len(params) == 1 and params[0].dim() == 1:
            raise InputError(
                "--optimizer electra_adamw treats matrices and vectors differently, but --fp16 flattens them; "
                "add --fp16-no-flatten-grads"
            )
        check(cfg, ElectraAdamWConfig)
        groups = parameter_groups(params, cfg.weight_decay, cfg.layerwise_lr_decay)
        betas = _betas(cfg.adam_betas)
        self._optimizer = torch.optim.AdamW(groups, cfg.lr[0], betas, cfg.adam_eps, fused=True)
        if not cfg.adam_bias_correction:
            for parameter in params:
                self._optimizer.state[parameter] = {
                    "step": torch.tensor(UNCORRECTED_STEPS, device=parameter.device),
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }

    def clip_grad_norm(self, max_norm: float, aggregate_norm_fn: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """The norm of all gradients, to which they are scaled if it is above ``max_norm``, unless that is 0.

        As fairseq's, which launches a kernel for each parameter.
        """
        gradients = [parameter.grad for parameter in self.params if parameter.grad is not None]
        if not gradients:
            return super().clip_grad_norm(max_norm, aggregate_norm_fn)
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients, dtype=torch.float32)))
        if aggregate_norm_fn is not None:
            norm = aggregate_norm_fn(norm)
        if max_norm > 0:
            torch._foreach_mul_(gradients, (max_norm / (norm + 1e-6)).clamp_(max=1))
        return norm

    def get_lr(self) -> float:
        group = self.param_groups[0]
        return group["lr"] / group["lr_scale"]

    def set_lr(self, lr: float) -> None:
        for group in self.param_groups:
            group["lr"] = lr * group["lr_scale"]
