"""The objectives as criteria of fairseq: ``--criterion NAME``."""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field, fields, make_dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Optional, get_args, get_origin, get_type_hints

import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from fairseq.tasks import FairseqTask
from fairseq.utils import get_perplexity
from omegaconf import II, OmegaConf, open_dict
from torch import Tensor, nn

from ..core.errors import InputError, one_line_errors
from ..core.synonym_table import load_synonym_table
from ..data.data_bin import count_symbols
from ..models.loading import load_reader
from ..objectives import OBJECTIVES, Objective
from ..objectives.base import Metric, SampleSize, add_up
from ..objectives.mlm_distillation import EMA

logger = logging.getLogger(__name__)


@dataclass
class TableConfig(FairseqDataclass):
    synonym_table: Optional[str] = field(
        default=None,
        metadata={"help": "file from tn-fairseq synonyms build, which is used to count false negatives"},
    )
    save_dir: str = II("checkpoint.save_dir")


class MaskedLMCriterion(FairseqCriterion):
    """An objective on a task; ``register`` makes a subclass for each."""

    kind: type[Objective]

    @one_line_errors()
    def __init__(self, cfg: Any, task: FairseqTask) -> None:
        super().__init__(task)
        # fairseq reads this setting of the task, but no task has an option for it. Loader processes that are kept (from
        # --num-workers 1 on, the default) would repeat the masks of the first epoch.
        with open_dict(task.cfg) if OmegaConf.is_config(task.cfg) else nullcontext():
            task.cfg.reuse_dataloader = False
        if self.kind.needs_table(cfg) and not cfg.synonym_table:
            raise InputError(
                f"--criterion {cfg._name} needs --synonym-table FILE; make one with tn-fairseq synonyms build"
            )
        synonyms = continues_word = None
        if cfg.synonym_table:
            synonyms, continues_word, _ = load_synonym_table(cfg.synonym_table, task.source_dictionary)
        self.objective = self.kind(
            cfg,
            self.padding_idx,
            synonyms,
            continues_word,
            load_judge=partial(load_reader, task, "--correction-judge"),
            load_teacher=partial(self.load_teacher, cfg),
            count_tokens=self.count_tokens,
        )

    def load_teacher(self, cfg: Any, path: str) -> Optional[nn.Module]:
        """As ``load_reader``, with a warning if the student may replace it; None for the moving average.

        The moving average comes with each batch.
        """
        if path == EMA:
            return None
        flag = "--distillation-teacher"
        teacher = load_reader(self.task, flag, path)
        if cfg.save_dir and Path(path).resolve().parent == Path(cfg.save_dir).resolve():
            logger.warning(
                f"{flag} {path}: is in --save-dir, so the student may replace its teacher, or resume from it; give "
                "another --save-dir unless you mean that"
            )
        return teacher

    def count_tokens(self) -> Tensor:
        """How often each symbol of the dictionary occurs in the first folder's training text, (V)."""
        subset = getattr(self.task.cfg, "train_subset", "train")  # fairseq's own task has no such option
        path = Path(utils.split_paths(self.task.cfg.data)[0], subset)
        return torch.from_numpy(count_symbols(path, self.task.source_dictionary)).float()

    @one_line_errors()
    def forward(
        self, model: nn.Module, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, SampleSize, dict[str, Any]]:
        """The summed loss of a batch, the sample size by which fairseq divides it, and what to log."""
        # with several workers, and in fairseq-validate, fairseq moves only criteria that have parameters to the GPU
        self.objective.to(sample["target"].device)
        return self.objective(model, sample)

    @classmethod
    def reduce_metrics(cls, logging_outputs: Sequence[Mapping[str, Any]]) -> None:
        """Log sums divided by sums, taken over workers, accumulated batches and logging intervals.

        Losses are in bits and shares in percent.
        """
        sums = _as_numbers(add_up(logging_outputs))
        for key, value in sums.items():
            # fairseq does not display names that begin with an underscore
            metrics.log_scalar_sum(f"_{key}", value)
        for metric in cls.kind.displayed():
            if metric.numerator in sums:
                metrics.log_derived(metric.name, partial(_value, metric=metric))
        metrics.log_derived("ppl", lambda meters: get_perplexity(meters["nll_loss"].fn(meters)))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def _as_numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers for scalar tensors; a GPU sends all of the same type at once, because it must be waited for each time."""
    keys_by_type = defaultdict(list)
    for key, value in values.items():
        if isinstance(value, Tensor):
            keys_by_type[value.dtype].append(key)
    numbers = dict(values)
    for keys in keys_by_type.values():
        numbers.update(zip(keys, torch.stack([values[key] for key in keys]).tolist()))
    return numbers


def _value(meters: Mapping[str, Any], metric: Metric) -> float:
    return metric.of({key: meters[f"_{key}"].sum for key in (metric.numerator, metric.denominator)})


def register(
    kind: type[Objective], name: Optional[str] = None, class_name: Optional[str] = None
) -> type[MaskedLMCriterion]:
    """Register an objective with fairseq as ``--criterion NAME``, by default under its own name, with its options.

    fairseq compares the name of the criterion's class when a run resumes.
    """
    types = get_type_hints(kind.config)
    # copies, because a dataclass writes its types into its fields
    options = [(option.name, _fairseq_type(types[option.name]), copy(option)) for option in fields(kind.config)]
    home = {"__module__": kind.__module__}
    config = make_dataclass(kind.config.__name__, options, bases=(TableConfig,), namespace=home)
    attributes = {"kind": kind, "__doc__": kind.__doc__, **home}
    criterion = type(class_name or f"{kind.__name__}Criterion", (MaskedLMCriterion,), attributes)
    return register_criterion(name or kind.name, dataclass=config)(criterion)


def _fairseq_type(kind: Any) -> Any:
    return ChoiceEnum(list(get_args(kind))) if get_origin(kind) is Literal else kind


for objective in OBJECTIVES.values():
    # a run may resume under either name of the baseline
    register(objective, class_name="ElectraCriterion" if objective.name == "mlm" else None)
register(OBJECTIVES["mlm"], "electra", "ElectraCriterion")
