"""The generator that a new run of ELECTRA starts with: ``--generator-checkpoint`` and ``--freeze-generator``.

A model cannot know whether its run is new or resumes, but fairseq's ``load_checkpoint`` does: the optimizer does not
exist yet, and a resumed run will replace all weights.
"""

import logging
import os
from collections.abc import Callable
from functools import wraps
from typing import Any

from fairseq import checkpoint_utils
from fairseq.file_io import PathManager
from fairseq.trainer import Trainer

from ..errors import InputError, naming, one_line_errors
from ..models.electra import ElectraModel
from ..models.generator_checkpoint import load_generator
from .durable_checkpoints import DEFAULT

logger = logging.getLogger(__name__)


def install() -> None:
    """Make a new run of ELECTRA load its generator."""
    checkpoint_utils.load_checkpoint = start_before(checkpoint_utils.load_checkpoint)


def start_before(resume: Callable) -> Callable:
    """``checkpoint_utils.load_checkpoint`` that loads the generator of a new run first."""

    @wraps(resume)
    @one_line_errors()
    def load_checkpoint(cfg: Any, trainer: Trainer, **options):
        model = trainer.get_model()
        if isinstance(model, ElectraModel) and not model.classification_heads and is_new(cfg, trainer):
            start(model, cfg.finetune_from_model, trainer.task.source_dictionary)
        return resume(cfg, trainer, **options)

    return load_checkpoint


def is_new(cfg: Any, trainer: Trainer) -> bool:
    """Whether fairseq will find no checkpoint of this run."""
    last = os.path.join(cfg.save_dir, f"checkpoint_last{trainer.checkpoint_suffix}.pt")
    return cfg.restore_file == DEFAULT and not PathManager.exists(last) and not cfg.continue_once


def start(model: ElectraModel, finetuned_model: str | None, dictionary: Any) -> None:
    """Load the generator of ``--generator-checkpoint``.

    Raises InputError if the run has two generators, or if one that was never trained would be frozen.
    """
    path = model.cfg.generator_checkpoint
    if path and finetuned_model:
        raise InputError(
            f"--finetune-from-model {finetuned_model} has a generator, too; give only that, or only "
            "--generator-checkpoint"
        )
    if path:
        with naming("--generator-checkpoint"):
            load_generator(model, path, dictionary)
        logger.info(f"generator: {path}{', frozen' if model.cfg.freeze_generator else ''}")
    elif model.cfg.freeze_generator and not finetuned_model:
        raise InputError(
            "--freeze-generator would freeze an untrained generator; give one with --generator-checkpoint, or an "
            "ELECTRA with --finetune-from-model"
        )
