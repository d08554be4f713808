"""Sentence KL, ``--criterion mlm_sent_kl``: pull the sentence with predictions towards the original (section 5)."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..core import corruption
from ..core.errors import InputError
from ..core.masked_prediction import MaskedPredictions
from . import functional
from .base import BITS, Metric, Objective, ObjectiveConfig


@dataclass
class SentenceKLConfig(ObjectiveConfig):
    sent_kl_weight: float = field(default=1.0, metadata={"help": "weight of KL(H_p || H_s)"})
    sent_kl_temperature: float = field(default=1.0, metadata={"help": "divides the hidden states before the softmax"})
    sent_kl_positions: Literal["all", "masked"] = field(
        default="all", metadata={"help": "mean over all tokens, or over the masked ones"}
    )
    sent_kl_encoder: Literal["generator", "discriminator"] = field(
        default="generator", metadata={"help": "ELECTRA: the encoder that reads both sentences"}
    )
    sent_kl_grad_target: bool = field(default=False, metadata={"help": "also pass gradients through H_s"})
    sent_kl_dropout: bool = field(default=False, metadata={"help": "keep dropout on for both sentences"})


class SentenceKL(Objective):
    """Masked LM plus the KL divergence between the hidden states of the predicted and the original sentence."""

    name = "mlm_sent_kl"
    config = SentenceKLConfig
    description = "masked language modeling with a sentence-level KL divergence"
    metrics = (Metric("sent_kl", "sent_kl", "masked", BITS, False),)
    weights = ("sent_kl_weight",)
    temperatures = ("sent_kl_temperature",)
    discriminator_options = ("sent_kl_encoder",)

    def regularization(
        self, model: nn.Module, sample: dict[str, Any], masked: MaskedPredictions
    ) -> tuple[Tensor, dict[str, Tensor]]:
        src_tokens = sample["net_input"]["src_tokens"]
        predicted = corruption.fill_in(src_tokens, masked.masked_tokens, masked.predictions)
        is_off = self.cfg.sent_kl_weight == 0
        with torch.no_grad() if is_off or not self.cfg.sent_kl_grad_target else nullcontext():
            original_hidden = self.encode(model, sample, masked.text)
        with torch.no_grad() if is_off else nullcontext():
            predicted_hidden = self.encode(model, sample, predicted)
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

    def encode(self, model: nn.Module, sample: dict[str, Any], tokens: Tensor) -> Tensor:
        """Last-layer hidden states: (B, T) -> (B, T, H)."""
        encoder = str(self.cfg.sent_kl_encoder)  # ELECTRA has two; other models ignore it
        # dropout differs between the two passes and would dominate the divergence, even for perfect predictions
        has_dropout = self.cfg.sent_kl_dropout and self.cfg.sent_kl_weight > 0  # it would draw random numbers
        with nullcontext() if has_dropout else without_dropout(model):
            return model(**{**sample["net_input"], "src_tokens": tokens, "features_only": True, "encoder": encoder})[0]


@contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    """Put the model into evaluation mode, and restore its mode at the end."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
