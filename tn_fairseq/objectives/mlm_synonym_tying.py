"""Synonym tying, ``--criterion mlm_synonym_tying``: synonyms are right answers, and get nearly the same embeddings."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..core.masked_prediction import Batch, MaskedPredictions
from ..core.options import option
from . import functional
from .base import Metric
from .mlm_soft_reg import check_trained, input_word_embeddings
from .mlm_synonym_marginal import SynonymMarginal, SynonymMarginalConfig


@dataclass
class SynonymTyingConfig(SynonymMarginalConfig):
    synonym_tying_weight: float = option(
        "weight of the squared distance from a word's embedding to its synonyms'", default=100.0, at_least=0
    )


class SynonymTying(SynonymMarginal):
    """The synonym marginal, plus the distance between the embeddings of each word and its more frequent synonyms.

    The marginal tells the output that synonyms are equally right. This also tells the input that they mean the same, so
    that what is learned about one of them holds for the others.
    """

    name = "mlm_synonym_tying"
    config = SynonymTyingConfig
    description = "masked language modeling with the summed probability of synonyms, and tied embeddings of synonyms"
    metrics: tuple[Metric, ...] = (*SynonymMarginal.metrics, Metric("synonym_distance", "synonym_distance", "masked"))
    tied: Tensor
    partners: Tensor
    starts: Tensor

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Dictionaries are sorted by frequency, at least roughly. A word moves toward its more frequent synonyms, and
        # they stay, because more text has trained them.
        own = torch.arange(len(self.synonyms)).unsqueeze(1)
        is_earlier = (self.synonyms >= 0) & (self.synonyms < own)
        counts = is_earlier.sum(dim=1)
        tied = counts.nonzero().squeeze(1)
        # (W), the words with a more frequent synonym; (M), these synonyms, word by word; (W), where those of each begin
        self.register_buffer("tied", tied, persistent=False)
        self.register_buffer("partners", self.synonyms[is_earlier].long(), persistent=False)
        self.register_buffer("starts", counts[tied].cumsum(0) - counts[tied], persistent=False)

    def regularization(
        self, model: nn.Module, batch: Batch, masked: MaskedPredictions
    ) -> tuple[Tensor, dict[str, Tensor]]:
        loss, logs = super().regularization(model, batch, masked)
        embeddings = input_word_embeddings(model)
        distances = functional.synonym_distance(embeddings.weight, self.tied, self.partners, self.starts)
        check_trained(distances, self.cfg.synonym_tying_weight, "synonym tying")
        # the caller divides by the number of masked positions
        distance = distances.sum() / max(len(self.tied), 1) * len(masked.targets)
        loss = loss + self.cfg.synonym_tying_weight * distance
        return loss, {**logs, "synonym_distance": distance.detach()}
