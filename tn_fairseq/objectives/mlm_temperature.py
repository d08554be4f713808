"""Softmax temperature, ``--criterion mlm_temperature``: masked LM with divided logits (footnote 11)."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ..core.masked_prediction import Batch, MaskedPredictions
from ..core.options import option
from . import functional
from .base import Objective, ObjectiveConfig


@dataclass
class TemperatureConfig(ObjectiveConfig):
    mlm_temperature: float = option(
        "divides the logits in the masked-LM loss; 1 is plain masked LM", default=2.0, above=0
    )


class Temperature(Objective):
    """Masked LM with a softmax temperature. Above 1, likely wrong words are punished less than with the plain loss."""

    name = "mlm_temperature"
    config = TemperatureConfig
    description = "masked language modeling with a softmax temperature"

    def __init__(self, cfg: Any, *table: Any, **options: Any) -> None:
        super().__init__(cfg, *table, **options)
        self.computes_nll = cfg.mlm_temperature != 1

    def masked_lm_losses(
        self, batch: Batch, masked: MaskedPredictions, nll: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        if not self.computes_nll:
            return nll, {}
        plain = functional.masked_lm(masked.logits.detach(), masked.targets).sum()
        losses = functional.masked_lm(masked.logits.float() / self.cfg.mlm_temperature, masked.targets)
        return losses, {"nll": plain}
