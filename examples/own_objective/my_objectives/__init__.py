"""Your own objectives: ``fairseq-train ... --user-dir my_objectives --criterion mlm_confidence_penalty``."""

from . import mlm_confidence_penalty  # noqa: F401  importing it registers the criterion
