"""Synonym marginal, ``--criterion mlm_synonym_marginal``: the gold word or any of its synonyms is a right answer."""

from dataclasses import dataclass

from torch import Tensor, nn

from ..core.masked_prediction import Batch, MaskedPredictions
from ..core.options import option
from . import functional
from .base import BITS, Metric, Objective, ObjectiveConfig


@dataclass
class SynonymMarginalConfig(ObjectiveConfig):
    synonym_weight: float = option(
        "weight of a synonym's probability, from 0 (plain masked LM) to 1 (as the gold word)",
        default=1.0,
        at_least=0,
        at_most=1,
    )


class SynonymMarginal(Objective):
    """Masked LM with the total probability of the gold word and its synonyms, whatever the prediction is."""

    name = "mlm_synonym_marginal"
    config = SynonymMarginalConfig
    description = "masked language modeling with the summed probability of the gold word and its synonyms"
    metrics: tuple[Metric, ...] = (Metric("synonym_gain", "synonym_gain", "masked", BITS),)
    needs_synonym_table = True

    def regularization(
        self, model: nn.Module, batch: Batch, masked: MaskedPredictions
    ) -> tuple[Tensor, dict[str, Tensor]]:
        synonyms = masked.synonyms
        gain = functional.synonym_gain(masked.logits, masked.targets, synonyms, self.cfg.synonym_weight).sum()
        return -gain, {"synonym_gain": gain.detach()}
