"""Focal replaced token detection, ``--criterion rtd_focal``: tokens that the discriminator is sure about count less."""

from dataclasses import dataclass

from torch import Tensor

from ..core.options import option
from . import functional
from .base import Objective, ObjectiveConfig


@dataclass
class FocalDetectionConfig(ObjectiveConfig):
    rtd_focal_gamma: float = option(
        "exponent of the probability of the wrong answer; 0 is plain detection", default=2.0, at_least=0
    )


class FocalDetection(Objective):
    """Masked LM, and replaced token detection with the focal loss, because few tokens are replaced."""

    name = "rtd_focal"
    config = FocalDetectionConfig
    description = "masked language modeling, and replaced token detection with the focal loss"
    needs_discriminator = True
    changes = ("detection",)

    def detection_losses(self, logits: Tensor, targets: Tensor) -> Tensor:
        weights = functional.focal_weight(logits, targets, self.cfg.rtd_focal_gamma)
        return super().detection_losses(logits, targets) * weights
