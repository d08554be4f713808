"""Your own objectives: ``fairseq-train ... --user-dir my_objectives --criterion mlm_confidence_penalty``."""

from tn_fairseq.criterions import register

from .mlm_confidence_penalty import ConfidencePenalty

register(ConfidencePenalty)
