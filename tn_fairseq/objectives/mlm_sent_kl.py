"""Sentence KL, ``--criterion mlm_sent_kl``: pull the sentence with predictions towards the original (section 5)."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from ..core import corruption
from ..core.errors import InputError
from ..core.masked_prediction import Batch, MaskedPredictions
from ..core.options import option
from . import functional
from .base import BITS, ELECTRA, Metric, Objective, ObjectiveConfig


@dataclass
class SentenceKLConfig(ObjectiveConfig):
    sent_kl_weight: float = option("weight of KL(H_p || H_s)", default=1.0, at_least=0)
    sent_kl_temperature: float = option("divides the hidden states before the softmax", default=1.0, above=0)
    sent_kl_positions: Literal["all", "masked"] = option("mean over all tokens, or over the masked ones", default="all")
    sent_kl_encoder: Literal["generator", "discriminator"] = option(
        "ELECTRA: the encoder that reads both sentences", default="generator", group=ELECTRA
    )
    sent_kl_grad_target: bool = option("also pass gradients through H_s", default=False)
    sent_kl_dropout: bool = option("keep dropout on for both sentences", default=False)


class SentenceKL(Objective):
    """Masked LM plus the KL divergence between the hidden states of the predicted and the original sentence."""

    name = "mlm_sent_kl"
    config = SentenceKLConfig
    description = "masked language modeling with a sentence-level KL divergence"
    metrics = (Metric("sent_kl", "sent_kl", "masked", BITS, False),)

    def regularization(
        self, model: nn.Module, batch: Batch, masked: MaskedPredictions
    ) -> tuple[Tensor, dict[str, Tensor]]:
        src_tokens = batch["net_input"]["src_tokens"]
        predicted = corruption.fill_in(src_tokens, masked.masked_tokens, masked.predictions)
        is_off = self.cfg.sent_kl_weight == 0
        with torch.no_grad() if is_off or not self.cfg.sent_kl_grad_target else nullcontext():
            original_hidden = self.encode(model, batch, masked.text)
        with torch.no_grad() if is_off else nullcontext():
            predicted_hidden = self.encode(model, batch, predicted)
        if torch.is_grad_enabled() and not (is_off or predicted_hidden.requires_grad):
            raise InputError(
                "mlm_sent_kl trains nothing, because the encoder that reads both sentences is frozen; train it, or on "
                "ELECTRA give --sent-kl-encoder discriminator"
            )

        positions = masked.masked_tokens if self.cfg.sent_kl_positions == "masked" else masked.is_token
        divergence = functional.sentence_kl(predicted_hidden, original_hidden, self.cfg.sent_kl_temperature)
        mean = (divergence * positions).sum() / positions.sum().clamp(min=1)
        # the caller divides by the number of masked positions
        summed = mean * len(masked.targets)
        return self.cfg.sent_kl_weight * summed, {"sent_kl": summed.detach()}

    def encode(self, model: nn.Module, batch: Batch, tokens: Tensor) -> Tensor:
        """Last-layer hidden states: (B, T) -> (B, T, H)."""
        encoder = str(self.cfg.sent_kl_encoder)  # ELECTRA has two; other models ignore it
        # dropout differs between the two passes and would dominate the divergence, even for perfect predictions
        has_dropout = self.cfg.sent_kl_dropout and self.cfg.sent_kl_weight > 0  # it would draw random numbers
        with nullcontext() if has_dropout else without_dropout(model):
            return model(**{**batch["net_input"], "src_tokens": tokens, "features_only": True, "encoder": encoder})[0]


@contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    """Put the model into evaluation mode, and restore its mode at the end."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
