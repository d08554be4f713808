"""``--criterion mlm``: another name for ``electra``, the plain baseline, for models that are not ELECTRA."""

from fairseq.criterions import CRITERION_DATACLASS_REGISTRY, CRITERION_REGISTRY
from hydra.core.config_store import ConfigStore

from .electra import ElectraCriterion, MaskedLMCriterionConfig

# register_criterion refuses to register a class twice. One class under both names lets a run resume under either.
CRITERION_REGISTRY["mlm"] = ElectraCriterion
CRITERION_DATACLASS_REGISTRY["mlm"] = MaskedLMCriterionConfig
ConfigStore.instance().store(group="criterion", name="mlm", node=MaskedLMCriterionConfig(_name="mlm"))
