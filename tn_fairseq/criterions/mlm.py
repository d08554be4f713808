"""``--criterion mlm``: another name for ``electra``, the plain baseline, for models that are not ELECTRA."""

from fairseq.criterions import register_criterion

from .electra import ElectraCriterion, MaskedLMCriterionConfig


@register_criterion("mlm", dataclass=MaskedLMCriterionConfig)
class PlainCriterion(ElectraCriterion):
    """Masked LM without correction."""


# fairseq compares this name when a run resumes, and a run may resume under either criterion
PlainCriterion.__name__ = ElectraCriterion.__name__
