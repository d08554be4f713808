"""The plain baseline, ``--criterion electra``: masked LM (Eq. 1), and replaced token detection on ELECTRA models."""

from fairseq.criterions import register_criterion

from .base import MaskedLMCriterion, MaskedLMCriterionConfig


@register_criterion("electra", dataclass=MaskedLMCriterionConfig)
class ElectraCriterion(MaskedLMCriterion):
    """Masked LM without any correction."""
