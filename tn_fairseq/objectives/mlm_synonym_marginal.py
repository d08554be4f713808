"""Synonym marginal, ``--criterion mlm_synonym_marginal``: the gold word or any of its synonyms is a right answer."""

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from ..core.masked_prediction import MaskedPredictions
from . import functional
from .base import BITS, Metric, Objective, ObjectiveConfig


@dataclass
class SynonymMarginalConfig(ObjectiveConfig):
    synonym_weight: float = field(
        default=1.0,
        metadata={"help": "weight of a synonym's probability: 0 is plain masked LM, 1 that of the gold word"},
    )


class SynonymMarginal(Objective):
    """Masked LM with the total probability of the gold word and its synonyms, whatever the prediction is."""

    name = "mlm_synonym_marginal"
    config = SynonymMarginalConfig
    description = "masked language modeling with the summed probability of the gold word and its synonyms"
    metrics: tuple[Metric, ...] = (Metric("synonym_gain", "synonym_gain", "masked", BITS),)
    needs_synonym_table = True
    fractions = ("synonym_weight",)

    def regularization(
        self, model: nn.Module, sample: dict[str, Any], masked: MaskedPredictions
    ) -> tuple[Tensor, dict[str, Tensor]]:
        synonyms = self.synonyms[masked.words]
        gain = functional.synonym_gain(masked.logits, masked.targets, synonyms, self.cfg.synonym_weight).sum()
        return -gain, {"synonym_gain": gain.detach()}
