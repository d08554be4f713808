"""The criteria of fairseq: the objectives, ``--criterion NAME``, and fine-tuning on SQuAD."""

from . import squad  # noqa: F401  importing it registers the criterion
from .masked_lm import MaskedLMCriterion, register

__all__ = ["MaskedLMCriterion", "register"]
