"""The objectives, for fairseq and ``transformers``: each file is named after its objective."""

from .base import Objective
from .mlm import MaskedLM
from .mlm_distillation import Distillation
from .mlm_hard_correction import HardCorrection
from .mlm_merged_synonyms import MergedSynonyms
from .mlm_sent_kl import SentenceKL
from .mlm_soft_reg import SoftRegularization
from .mlm_synonym_marginal import SynonymMarginal
from .mlm_synonym_tying import SynonymTying
from .mlm_temperature import Temperature
from .rtd_focal import FocalDetection
from .rtd_graded import GradedDetection

OBJECTIVES: dict[str, type[Objective]] = {
    objective.name: objective
    for objective in (
        MaskedLM,
        Distillation,
        HardCorrection,
        SoftRegularization,
        SentenceKL,
        SynonymMarginal,
        SynonymTying,
        MergedSynonyms,
        Temperature,
        GradedDetection,
        FocalDetection,
    )
}
