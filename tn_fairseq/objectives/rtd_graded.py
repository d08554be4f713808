"""Graded replaced token detection, ``--criterion rtd_graded``: a synonym is only partly replaced."""

from dataclasses import dataclass

from torch import Tensor

from ..core.masked_prediction import ElectraOutput, MaskedPredictions
from ..core.options import option
from .base import Objective, ObjectiveConfig


@dataclass
class GradedDetectionConfig(ObjectiveConfig):
    rtd_synonym_grade: float = option(
        "how much a synonym is replaced, from 0 (original) to 1 (replaced)", default=0.5, at_least=0, at_most=1
    )


class GradedDetection(Objective):
    """Masked LM, and replaced token detection in three grades: original 0, synonym, replaced 1."""

    name = "rtd_graded"
    config = GradedDetectionConfig
    description = "masked language modeling, and replaced token detection with a grade of its own for synonyms"
    needs_synonym_table = needs_discriminator = True
    changes = ("detection",)

    def detection_targets(
        self, output: ElectraOutput, masked: MaskedPredictions, is_token: Tensor
    ) -> tuple[Tensor, Tensor]:
        synonyms = self.drawn_synonyms(output, masked)
        return output.is_replaced.float().masked_fill(synonyms, self.cfg.rtd_synonym_grade), is_token
