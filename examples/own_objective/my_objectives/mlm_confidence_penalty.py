"""Confidence penalty (Pereyra et al. 2017): masked LM minus the weighted entropy of the predictions."""

from dataclasses import dataclass, field

import torch
from fairseq.criterions import register_criterion

from tn_fairseq.criterions.base import BITS, MaskedLMCriterion, MaskedLMCriterionConfig, Metric


@dataclass
class ConfidencePenaltyConfig(MaskedLMCriterionConfig):
    confidence_penalty_weight: float = field(default=0.1, metadata={"help": "weight of the entropy"})


def entropy(logits: torch.Tensor) -> torch.Tensor:
    """The entropy of each prediction: (N, V) -> (N), in nats."""
    lprobs = logits.float().log_softmax(dim=-1)
    return -(lprobs.exp() * lprobs).sum(dim=-1)


@register_criterion("mlm_confidence_penalty", dataclass=ConfidencePenaltyConfig)
class ConfidencePenaltyCriterion(MaskedLMCriterion):
    """Masked LM that penalizes overconfident predictions."""

    objective = "masked language modeling with a confidence penalty"
    metrics = (Metric("entropy", "entropy", "masked", BITS),)
    weights = (*MaskedLMCriterion.weights, "confidence_penalty_weight")

    def regularization(self, model, sample, masked):
        summed = entropy(masked.logits).sum()
        return -self.cfg.confidence_penalty_weight * summed, {"entropy": summed.detach()}
