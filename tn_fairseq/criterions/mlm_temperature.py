"""Softmax temperature, ``--criterion mlm_temperature``: masked LM with divided logits (footnote 11)."""

from dataclasses import dataclass, field

from fairseq.criterions import register_criterion
from torch import Tensor

from .. import objectives
from .base import MaskedLMCriterion, MaskedLMCriterionConfig, MaskedPredictions


@dataclass
class TemperatureConfig(MaskedLMCriterionConfig):
    mlm_temperature: float = field(
        default=2.0, metadata={"help": "divides the logits in the masked-LM loss; 1 is plain masked LM"}
    )


@register_criterion("mlm_temperature", dataclass=TemperatureConfig)
class TemperatureCriterion(MaskedLMCriterion):
    """Masked LM with a softmax temperature. Above 1, likely wrong words are punished less than with the plain loss."""

    objective = "masked language modeling with a softmax temperature"
    temperatures = (*MaskedLMCriterion.temperatures, "mlm_temperature")

    def masked_lm_losses(self, masked: MaskedPredictions, nll: Tensor) -> Tensor:
        if self.cfg.mlm_temperature == 1:
            return nll
        return objectives.masked_lm(masked.logits.float() / self.cfg.mlm_temperature, masked.targets)
