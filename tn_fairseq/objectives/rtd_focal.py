"""Focal replaced token detection, ``--criterion rtd_focal``: tokens that the discriminator is sure about count less."""

from dataclasses import dataclass, field

from torch import Tensor

from . import functional
from .base import Objective, ObjectiveConfig


@dataclass
class FocalDetectionConfig(ObjectiveConfig):
    rtd_focal_gamma: float = field(
        default=2.0, metadata={"help": "exponent of the probability of the wrong answer; 0 is plain detection"}
    )


class FocalDetection(Objective):
    """Masked LM, and replaced token detection with the focal loss, because few tokens are replaced."""

    name = "rtd_focal"
    config = FocalDetectionConfig
    description = "masked language modeling, and replaced token detection with the focal loss"
    needs_discriminator = True
    weights = ("rtd_focal_gamma",)

    def detection_losses(self, logits: Tensor, targets: Tensor) -> Tensor:
        weights = functional.focal_weight(logits, targets, self.cfg.rtd_focal_gamma)
        return super().detection_losses(logits, targets) * weights
