"""Hard correction, ``--criterion mlm_hard_correction``: drop false negatives from the masked-LM loss (Eq. 2)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Optional

import torch
from torch import Tensor, nn

from ..core import corruption
from ..core.errors import InputError
from ..core.masked_prediction import Batch, ElectraOutput, MaskedPredictions
from ..core.options import option
from . import functional
from .base import ELECTRA, PERCENT, Metric, Objective, ObjectiveConfig, SampleSize
from .judge import judge_scores

DISCRIMINATOR = "discriminator"


@dataclass
class HardCorrectionConfig(ObjectiveConfig):
    hard_correction_weight: float = option(
        "weight of a false negative's loss, from 0 (dropped) to 1 (plain masked LM)", default=0.0, at_least=0, at_most=1
    )
    hard_correction_divisor: Literal["kept", "masked"] = option(
        "divide by the sum of the weights, or by the number of masked positions", default="kept"
    )
    rtd_false_negatives: Literal["replaced", "ignore", "original"] = option(
        "ELECTRA: what the discriminator should call a synonym that the generator drew; ignore leaves it out",
        default="replaced",
        group=ELECTRA,
    )
    correction_judge: Optional[str] = option(
        "correct only what this judge accepts: discriminator (ELECTRA's own), or a checkpoint's file", default=None
    )
    correction_judge_threshold: float = option(
        "smallest score that the judge accepts, from 0 to 1",
        default=0.6,
        at_least=0,
        at_most=1,
        needs="correction_judge",
    )


class HardCorrection(Objective):
    """Masked LM that does not penalize predicting a synonym of the gold token."""

    name = "mlm_hard_correction"
    config = HardCorrectionConfig
    description = "masked language modeling with hard correction of false negatives"
    metrics = (Metric("judge_agreement", "judge_agreed", "judged", PERCENT),)
    needs_synonym_table = True

    def __init__(
        self, cfg: Any, *table: Any, load_judge: Optional[Callable[[str], nn.Module]] = None, **options: Any
    ) -> None:
        super().__init__(cfg, *table, **options)
        if cfg.correction_judge == DISCRIMINATOR and cfg.prediction_mode != "sample":
            judge, mode = self.say("correction_judge"), self.say("prediction_mode")
            raise InputError(
                f"{judge} discriminator needs {mode} sample, because the discriminator reads the drawn tokens"
            )
        if cfg.rtd_false_negatives != "replaced":
            self.changes = ("masked_lm", "detection")
        self.judge = None
        if load_judge is not None and cfg.correction_judge not in (None, DISCRIMINATOR):
            # in a list, so that it is not a part of the objective, which fairseq would train and save
            self.judge = [load_judge(cfg.correction_judge)]

    def find_false_negatives(self, batch: Batch, output: Any, masked: MaskedPredictions) -> Tensor:
        false_negative = super().find_false_negatives(batch, output, masked)
        if self.cfg.correction_judge is None:
            return false_negative
        if self.judge is None:
            return false_negative & (self.originality(batch, output, masked) >= self.cfg.correction_judge_threshold)
        candidates = masked.scatter(false_negative)
        rows = candidates.any(dim=1).nonzero().squeeze(1)
        if not len(rows):
            return false_negative
        net_input = {**batch["net_input"], "src_tokens": masked.text}
        few = {name: value[rows] for name, value in net_input.items() if name != "layout"}
        (judge,) = self.judge
        scores = judge_scores(
            judge.to(false_negative.device), few, candidates[rows], masked.predictions[false_negative]
        )
        return false_negative.masked_scatter(false_negative, scores >= self.cfg.correction_judge_threshold)

    def originality(self, batch: Batch, output: Any, masked: MaskedPredictions) -> Tensor:
        """The probability that ELECTRA's discriminator calls each drawn token original: (N)."""
        if not isinstance(output, ElectraOutput):
            raise InputError(
                "--correction-judge discriminator needs ELECTRA; give a checkpoint's file, or --arch electra_small"
            )
        logits = output.discriminator_logits.detach().float()
        return torch.sigmoid(-corruption.take_masked(logits, masked.masked_tokens, batch["masked_indices"]))

    def count_false_negatives(self, masked: MaskedPredictions) -> dict[str, Tensor]:
        counts = super().count_false_negatives(masked)
        if self.cfg.correction_judge is None:
            return counts
        judged = masked.are_synonyms(masked.predictions)
        return {**counts, "judged": judged.sum(), "judge_agreed": masked.false_negative.sum()}

    def masked_lm_weights(self, masked: MaskedPredictions) -> tuple[Tensor, SampleSize]:
        weights = functional.hard_correction(masked.false_negative, self.cfg.hard_correction_weight)
        if self.cfg.hard_correction_divisor == "kept":
            return weights, weights.sum()
        return weights, len(masked.targets)

    def detection_targets(
        self, output: ElectraOutput, masked: MaskedPredictions, is_token: Tensor
    ) -> tuple[Tensor, Tensor]:
        if self.cfg.rtd_false_negatives == "replaced":
            return output.is_replaced, is_token
        is_synonym = self.drawn_synonyms(output, masked)
        if self.cfg.rtd_false_negatives == "ignore":
            return output.is_replaced, is_token & ~is_synonym
        return output.is_replaced & ~is_synonym, is_token
