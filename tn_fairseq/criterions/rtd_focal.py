"""Focal replaced token detection, ``--criterion rtd_focal``: tokens that the discriminator is sure about count less."""

from dataclasses import dataclass, field

from fairseq.criterions import register_criterion
from torch import Tensor

from .. import objectives
from .base import MaskedLMCriterion, MaskedLMCriterionConfig


@dataclass
class FocalDetectionConfig(MaskedLMCriterionConfig):
    rtd_focal_gamma: float = field(
        default=2.0, metadata={"help": "exponent of the probability of the wrong answer; 0 is plain detection"}
    )


@register_criterion("rtd_focal", dataclass=FocalDetectionConfig)
class FocalDetectionCriterion(MaskedLMCriterion):
    """Masked LM, and replaced token detection with the focal loss, because few tokens are replaced."""

    objective = "masked language modeling, and replaced token detection with the focal loss"
    weights = (*MaskedLMCriterion.weights, "rtd_focal_gamma")

    def detection_losses(self, logits: Tensor, targets: Tensor) -> Tensor:
        weights = objectives.focal_weight(logits, targets, self.cfg.rtd_focal_gamma)
        return super().detection_losses(logits, targets) * weights
