"""The models: ``--arch bert_tiny|bert_base|bert_large|electra_tiny|electra_small|electra_base|electra_large``."""

from .bert import BertModel
from .electra import ElectraModel

__all__ = ["BertModel", "ElectraModel"]
