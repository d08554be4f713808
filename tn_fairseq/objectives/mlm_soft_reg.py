"""Soft regularization, ``--criterion mlm_soft_reg``: pull the embeddings of prediction and gold together (Eq. 3)."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..core.errors import InputError
from ..core.masked_prediction import Batch, MaskedPredictions
from ..core.options import option
from . import functional
from .base import Metric, Objective, ObjectiveConfig


@dataclass
class SoftRegularizationConfig(ObjectiveConfig):
    soft_reg_weight: float = option("weight of 1 - cos(e_k, e'_k)", default=1.0, at_least=0)
    soft_reg_detach: Literal["none", "target", "prediction"] = option(
        "which of the two embeddings gets no gradient", default="none"
    )
    soft_reg_synonyms: bool = option("only where the prediction is a synonym in --synonym-table", default=False)


class SoftRegularization(Objective):
    """Masked LM plus the cosine distance between the input embeddings of prediction and gold."""

    name = "mlm_soft_reg"
    config = SoftRegularizationConfig
    description = "masked language modeling with soft regularization"
    metrics = (Metric("soft_reg", "soft_reg", "masked", higher_is_better=False),)

    @classmethod
    def needs_table(cls, cfg: Any) -> bool:
        return cfg.soft_reg_synonyms

    def regularization(
        self, model: nn.Module, batch: Batch, masked: MaskedPredictions
    ) -> tuple[Tensor, dict[str, Tensor]]:
        embeddings = input_word_embeddings(model)
        target_rows, prediction_rows = embeddings(masked.targets), embeddings(masked.predictions)
        if self.cfg.soft_reg_detach == "target":
            target_rows = target_rows.detach()
        elif self.cfg.soft_reg_detach == "prediction":
            prediction_rows = prediction_rows.detach()
        distances = functional.soft_regularization(target_rows, prediction_rows)
        check_trained(distances, self.cfg.soft_reg_weight, "soft regularization")
        if self.cfg.soft_reg_synonyms:
            distances = distances * masked.false_negative
        distance = distances.sum()
        return self.cfg.soft_reg_weight * distance, {"soft_reg": distance.detach()}


def check_trained(distances: Tensor, weight: float, term: str) -> None:
    """Raises InputError if a weighted distance between embeddings has no gradient, because they are frozen."""
    if weight and torch.is_grad_enabled() and not distances.requires_grad:
        raise InputError(
            f"{term} changes nothing, because the word embeddings are frozen; train them too, or give it the weight 0"
        )


def input_word_embeddings(model: Any) -> nn.Embedding:
    """The model's input word embeddings, before position, type and LayerNorm: (...) -> (..., E)."""
    if hasattr(model, "get_input_embeddings"):  # transformers
        return model.get_input_embeddings()
    if hasattr(model, "embeddings"):
        return model.embeddings.word_embeddings
    # fairseq's RoBERTa; its row for padding is zero and never gets a gradient
    return model.encoder.sentence_encoder.embed_tokens
