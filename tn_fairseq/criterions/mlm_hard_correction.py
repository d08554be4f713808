"""Hard correction, ``--criterion mlm_hard_correction``: drop false negatives from the masked-LM loss (Eq. 2)."""

from dataclasses import dataclass, field

from fairseq.criterions import register_criterion
from fairseq.dataclass import ChoiceEnum

from .. import objectives
from ..errors import InputError, one_line_errors
from .base import MaskedLMCriterion, MaskedLMCriterionConfig


@dataclass
class HardCorrectionConfig(MaskedLMCriterionConfig):
    hard_correction_weight: float = field(
        default=0.0, metadata={"help": "weight of a false negative's loss: 0 drops it, 1 is plain masked LM"}
    )
    hard_correction_divisor: ChoiceEnum(["kept", "masked"]) = field(
        default="kept", metadata={"help": "divide by the weights of the kept positions, or by all masked positions"}
    )
    rtd_false_negatives: ChoiceEnum(["replaced", "ignore", "original"]) = field(
        default="replaced",
        metadata={"help": "ELECTRA: what the discriminator should call a synonym that the generator drew"},
    )


@register_criterion("mlm_hard_correction", dataclass=HardCorrectionConfig)
class HardCorrectionCriterion(MaskedLMCriterion):
    """Masked LM that does not penalize predicting a synonym of the gold token."""

    objective = "masked language modeling with hard correction of false negatives"
    needs_synonym_table = True

    @one_line_errors()
    def __init__(self, cfg: HardCorrectionConfig, task):
        if not 0 <= cfg.hard_correction_weight <= 1:
            raise InputError(f"--hard-correction-weight must be between 0 and 1, not {cfg.hard_correction_weight}")
        super().__init__(cfg, task)

    def masked_lm_weights(self, masked):
        weights = objectives.hard_correction(masked.false_negative, self.cfg.hard_correction_weight)
        if self.cfg.hard_correction_divisor == "kept":
            return weights, weights.sum()
        return weights, masked.masked_tokens.sum()

    def detection_targets(self, output, masked, is_token):
        if self.cfg.rtd_false_negatives == "replaced":
            return output.is_replaced, is_token
        is_synonym = self.drawn_synonyms(output, masked)
        if self.cfg.rtd_false_negatives == "ignore":
            return output.is_replaced, is_token & ~is_synonym
        return output.is_replaced & ~is_synonym, is_token
