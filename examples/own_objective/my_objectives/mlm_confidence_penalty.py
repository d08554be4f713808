"""Confidence penalty (Pereyra et al. 2017): masked LM minus the weighted entropy of the predictions."""

from dataclasses import dataclass

import torch

from tn_fairseq.core.options import option
from tn_fairseq.objectives.base import BITS, Metric, Objective, ObjectiveConfig


@dataclass
class ConfidencePenaltyConfig(ObjectiveConfig):
    confidence_penalty_weight: float = option("weight of the entropy", default=0.1, at_least=0)


def entropy(logits: torch.Tensor) -> torch.Tensor:
    """The entropy of each prediction: (N, V) -> (N), in nats."""
    lprobs = logits.float().log_softmax(dim=-1)
    return -(lprobs.exp() * lprobs).sum(dim=-1)


class ConfidencePenalty(Objective):
    """Masked LM that penalizes overconfident predictions."""

    name = "mlm_confidence_penalty"
    config = ConfidencePenaltyConfig
    description = "masked language modeling with a confidence penalty"
    metrics = (Metric("entropy", "entropy", "masked", BITS),)

    def regularization(self, model, sample, masked):
        summed = entropy(masked.logits).sum()
        return -self.cfg.confidence_penalty_weight * summed, {"entropy": summed.detach()}
