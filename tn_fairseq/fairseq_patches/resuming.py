"""Checks when a run starts or resumes, and the generator that a new run of ELECTRA starts with.

A model cannot know whether its run is new or resumes, but fairseq's ``load_checkpoint`` does: the optimizer does not
exist yet, and a resumed run will replace all weights.
"""

import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.file_io import PathManager
from fairseq.logging import metrics
from fairseq.trainer import Trainer

from ..core.checkpoints import import_first
from ..core.errors import InputError, naming, one_line_errors
from ..models.base import EncoderModel
from ..models.electra import ElectraModel
from ..models.loading import check_attention_heads, load_generator
from .bf16 import SAVED, is_built
from .replacing import replaces
from .settings import is_ours

logger = logging.getLogger(__name__)

DEFAULT = "checkpoint_last.pt"  # default of --restore-file, in --save-dir; missing in a new run


@replaces(checkpoint_utils, "verify_checkpoint_directory")
@one_line_errors()
def verify_checkpoint_directory(original: Callable, save_dir: str) -> None:
    """Raises InputError (as a one-line exit) if no file can be written there."""
    try:
        original(save_dir)
    except OSError as error:
        raise InputError(
            f"--save-dir {save_dir}: cannot be written ({error.strerror}); give a folder that you can write to"
        ) from None


@replaces(checkpoint_utils, "load_checkpoint")
@one_line_errors()
def load_checkpoint(original: Callable, cfg: Any, trainer: Trainer, **options: Any) -> tuple[dict | None, Any]:
    """Start or resume a run as fairseq does; exits at once with code 0 if the run is already finished.

    Raises InputError (as a one-line exit) if a checkpoint that was named does not exist, or was trained in another way
    or precision; if the generator of a new run cannot be used; and if ``check_metric`` does.
    """
    if not is_built(trainer):  # what is checked below is known only of fairseq's own
        return original(cfg, trainer, **options)
    continue_once = getattr(cfg, "continue_once", None)  # fairseq does not need it either
    # given x.pt, fairseq looks for x-shard0.pt if the worker has shard 0; if that is missing, it starts over
    restored = cfg.restore_file.replace(".pt", f"{trainer.checkpoint_suffix}.pt")
    if cfg.restore_file != DEFAULT and not PathManager.isfile(restored):
        missing = "" if restored == cfg.restore_file else f" ({restored})"
        raise InputError(
            f"--restore-file {cfg.restore_file}: no such file{missing}; name a checkpoint of fairseq-train"
        )
    is_start = starts(cfg, trainer)
    if is_start:
        for flag, path in (("--continue-once", continue_once), ("--finetune-from-model", cfg.finetune_from_model)):
            if path and not PathManager.isfile(path):
                remedy = import_first(path) or "name a checkpoint of fairseq-train"
                raise InputError(f"{flag} {path} does not exist or is a folder; {remedy}")
    model = trainer.get_model()
    is_new = is_start and not continue_once
    if is_new and isinstance(model, ElectraModel) and not model.classification_heads:
        start_generator(model, cfg.finetune_from_model, trainer.task.source_dictionary)
    elif not is_new and getattr(getattr(model, "cfg", None), "generator_checkpoint", None):
        logger.info("--generator-checkpoint is not read, because this run continues from a checkpoint")
    if isinstance(model, EncoderModel):
        beginning = continue_once or cfg.finetune_from_model if is_start else None
        path = beginning or (restored if cfg.restore_file != DEFAULT else os.path.join(cfg.save_dir, restored))
        if os.path.isfile(path):  # on this machine
            check_attention_heads(path, model)
    extra_state, iterator = _resume(original, cfg, trainer, **options)
    updates, limit = trainer.get_num_updates(), getattr(trainer.cfg.optimization, "max_update", 0)
    if 0 < limit <= updates:
        logger.info(
            f"already finished: {updates:,} updates; to train on, raise --max-update {limit} and the schedule's "
            "--total-num-update"
        )
        sys.exit(0)
    was_bf16 = bool(extra_state and extra_state.get(SAVED))
    if updates and was_bf16 != trainer.autocast:
        how = "with" if was_bf16 else "without"
        raise InputError(
            f"the checkpoint was trained {how} --bf16; resume {how} it, or train on from its weights only: "
            "--finetune-from-model FILE and another --save-dir"
        )
    check_metric(getattr(cfg, "best_checkpoint_metric", "loss"), trainer)
    return extra_state, iterator


def _resume(original: Callable, cfg: Any, trainer: Trainer, **options: Any) -> tuple[dict | None, Any]:
    """``original`` with one-line errors for checkpoints of another kind of run."""
    try:
        return original(cfg, trainer, **options)
    except KeyError as error:
        if error.args != ("model",) or not trainer.cfg.ema.store_ema:
            raise
        # The checkpoint has no moving average, and fairseq has just deleted the weights with which it would begin one.
        trainer.cfg.ema.store_ema = False
        loaded = original(cfg, trainer, **options)
        trainer.cfg.ema.store_ema = True
        trainer._build_ema()
        return loaded
    except (AssertionError, ValueError) as error:
        reason = str(error)
        if "parameter group" in reason:  # of torch
            raise InputError(
                "the checkpoint's optimizer has other parameters; resume with the same --freeze-generator and "
                "--layerwise-lr-decay, or give --finetune-from-model FILE and another --save-dir"
            ) from None
        if reason.startswith("--finetune-from-model"):
            raise InputError(reason.split(": {", 1)[0]) from None  # without the complete configuration
        if "--reset-optimizer" not in reason:
            raise
        raise InputError(
            f"the checkpoint was trained with another criterion, optimizer or precision ({reason.rsplit('. ', 1)[1]}); "
            "to start from its weights, give --finetune-from-model FILE and another --save-dir"
        ) from None
    except Exception as error:
        if not isinstance(error.__context__, KeyError) or error.__context__.args != ("model",):
            raise
        raise InputError("the checkpoint holds no model; name a checkpoint of fairseq-train") from None


def starts(cfg: Any, trainer: Trainer) -> bool:
    """Whether fairseq will find no checkpoint of this run in its folder."""
    last = os.path.join(cfg.save_dir, f"checkpoint_last{trainer.checkpoint_suffix}.pt")
    return cfg.restore_file == DEFAULT and not PathManager.exists(last)


def start_generator(model: ElectraModel, finetuned_model: str | None, dictionary: Dictionary) -> None:
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


def check_metric(metric: str, trainer: Trainer) -> None:
    """Raises InputError if validation with our task or criterion would not log the metric.

    fairseq would notice only after the first validation. What is logged depends on the model, the criterion and its
    synonym table, so this validates one sequence, unless the metric is the loss, which is always logged.
    """
    task, criterion = trainer.task, trainer.get_criterion()
    ours = is_ours(type(task)) or is_ours(type(criterion))
    if metric == "loss" or trainer.cfg.dataset.disable_validation or not ours:
        return
    dataset = task.dataset(trainer.cfg.dataset.valid_subset.split(",")[0])
    sample, _ = trainer._prepare_sample(dataset.collater([dataset[0]]))
    # as the trainer does
    average = trainer.cfg.ema.store_ema and getattr(task, "uses_ema", False)
    more = {"ema_model": trainer.ema.get_model()} if average else {}
    with metrics.aggregate(new_root=True) as logged:
        _, _, logging_output = task.valid_step(sample, trainer.get_model(), criterion, **more)
        task.reduce_metrics([logging_output], criterion)
    names = logged.get_smoothed_values()
    if metric not in names:
        raise InputError(f"--best-checkpoint-metric {metric} is not logged; give one of {', '.join(sorted(names))}")
