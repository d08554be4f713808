"""The baseline, ``--criterion electra`` or ``mlm``: masked LM (Eq. 1), and replaced token detection on ELECTRA."""

from fairseq.criterions import register_criterion

from .base import MaskedLMCriterion, MaskedLMCriterionConfig


@register_criterion("electra", dataclass=MaskedLMCriterionConfig)
class ElectraCriterion(MaskedLMCriterion):
    """Masked LM without any correction."""


@register_criterion("mlm", dataclass=MaskedLMCriterionConfig)
class PlainCriterion(ElectraCriterion):
    """The same under a name for models that are not ELECTRA."""


# fairseq compares this name when a run resumes, and a run may resume under either criterion
PlainCriterion.__name__ = ElectraCriterion.__name__
