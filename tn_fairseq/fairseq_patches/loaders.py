"""Loader processes: masks change with the epoch."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from fairseq import criterions
from fairseq.criterions import FairseqCriterion
from fairseq.tasks import FairseqTask
from omegaconf import OmegaConf, open_dict

from ..criterions import MaskedLMCriterion
from .replacing import replaces


@replaces(criterions, "build_criterion")
def build_criterion(original: Callable, cfg: Any, task: FairseqTask, *args: Any, **options: Any) -> FairseqCriterion:
    """A criterion; with one of ours, the task's loader processes are restarted in every epoch.

    If --num-workers is above 0 (the default is 1), fairseq keeps loader processes and their copy of the dataset. They
    would repeat the masks of the first epoch, and a resumed run would draw different ones.
    """
    criterion = original(cfg, task, *args, **options)
    if isinstance(criterion, MaskedLMCriterion):
        # fairseq reads this setting of the task, but no task has an option for it
        with open_dict(task.cfg) if OmegaConf.is_config(task.cfg) else nullcontext():
            task.cfg.reuse_dataloader = False
    return criterion
