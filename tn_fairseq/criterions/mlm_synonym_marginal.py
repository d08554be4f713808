"""Synonym marginal, ``--criterion mlm_synonym_marginal``: the gold word or any of its synonyms is a right answer."""

from dataclasses import dataclass, field
from typing import Any

from fairseq.criterions import register_criterion
from torch import Tensor, nn

from .. import objectives
from .base import BITS, MaskedLMCriterion, MaskedLMCriterionConfig, MaskedPredictions, Metric


@dataclass
class SynonymMarginalConfig(MaskedLMCriterionConfig):
    synonym_weight: float = field(
        default=1.0,
        metadata={"help": "weight of a synonym's probability: 0 is plain masked LM, 1 that of the gold word"},
    )


@register_criterion("mlm_synonym_marginal", dataclass=SynonymMarginalConfig)
class SynonymMarginalCriterion(MaskedLMCriterion):
    """Masked LM with the total probability of the gold word and its synonyms, whatever the prediction is."""

    objective = "masked language modeling with the summed probability of the gold word and its synonyms"
    metrics = (Metric("synonym_gain", "synonym_gain", "masked", BITS),)
    needs_synonym_table = True
    shares = ("synonym_weight",)

    def regularization(
        self, model: nn.Module, sample: dict[str, Any], masked: MaskedPredictions
    ) -> tuple[Tensor, dict[str, Tensor]]:
        synonyms = self.synonyms[masked.words]
        gain = objectives.synonym_gain(masked.logits, masked.targets, synonyms, self.cfg.synonym_weight).sum()
        return -gain, {"synonym_gain": gain.detach()}
