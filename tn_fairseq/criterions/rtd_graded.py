"""Graded replaced token detection, ``--criterion rtd_graded``: a synonym is only partly replaced."""

from dataclasses import dataclass, field

from fairseq.criterions import register_criterion
from torch import Tensor

from ..models.electra import ElectraOutput
from .base import MaskedLMCriterion, MaskedLMCriterionConfig, MaskedPredictions


@dataclass
class GradedDetectionConfig(MaskedLMCriterionConfig):
    rtd_synonym_grade: float = field(
        default=0.5, metadata={"help": "how much a synonym is replaced: 0 is original, 1 is replaced"}
    )


@register_criterion("rtd_graded", dataclass=GradedDetectionConfig)
class GradedDetectionCriterion(MaskedLMCriterion):
    """Masked LM, and replaced token detection in three grades: original 0, synonym, replaced 1."""

    objective = "masked language modeling, and replaced token detection with a grade of its own for synonyms"
    needs_synonym_table = True
    shares = ("rtd_synonym_grade",)

    def detection_targets(
        self, output: ElectraOutput, masked: MaskedPredictions, is_token: Tensor
    ) -> tuple[Tensor, Tensor]:
        synonyms = self.drawn_synonyms(output, masked)
        return output.is_replaced.float().masked_fill(synonyms, self.cfg.rtd_synonym_grade), is_token
