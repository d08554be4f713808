"""Checks when a run starts or resumes, and the generator that a new run of ELECTRA starts with.

A model cannot know whether its run is new or resumes, but fairseq's ``load_checkpoint`` does: the optimizer does not
exist yet, and a resumed run will replace all weights.
"""

import hashlib
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fairseq import checkpoint_utils, utils
from fairseq.data import Dictionary
from fairseq.file_io import PathManager
from fairseq.logging import metrics
from fairseq.trainer import Trainer

from ..core.checkpoints import remedy
from ..core.errors import InputError, naming, one_line_errors
from ..criterions import MaskedLMCriterion
from ..models.base import EncoderModel
from ..models.electra import ElectraModel
from ..models.loading import check_attention_heads, load_generator
from .bf16 import is_built
from .replacing import replaces
from .settings import is_ours

logger = logging.getLogger(__name__)

DEFAULT = "checkpoint_last.pt"  # default of --restore-file, in --save-dir; missing in a new run
RESETS = tuple(f"reset_{part}" for part in ("optimizer", "lr_scheduler", "meters", "dataloader"))
# in a checkpoint's extra_state
BF16, SCORED, PATIENCE = "bf16 on a CPU", "best score of", "validations without a better score"


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
    is_start = starts(cfg, trainer)
    named = {"--restore-file": None if cfg.restore_file == DEFAULT else restored}
    if is_start:
        named |= {"--continue-once": continue_once, "--finetune-from-model": cfg.finetune_from_model}
    for flag, path in named.items():
        if path and not PathManager.isfile(path):
            raise InputError(f"{flag} {path} does not exist or is a folder; {remedy(path)}")
    ours = is_ours(type(trainer.task)) or is_ours(type(trainer.get_criterion()))
    if ours:
        check_start(cfg, trainer, restored)
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
    best, patience = vars(checkpoint_utils.save_checkpoint), vars(_early_stop())
    if ours:  # another run of this process may have left them
        best.pop("best", None)
        patience.clear()
    extra_state, iterator = _resume(original, cfg, trainer, **options)
    updates, saved = trainer.get_num_updates(), extra_state or {}
    progress = updates
    if ours:
        scored = _scored(cfg, trainer)
        trainer.scored = scored or saved.get(SCORED)
        if saved.get(SCORED, trainer.scored) != trainer.scored:
            logger.info("the best score of the checkpoint does not count, because it is of another metric or text")
            best.pop("best", None)
        elif "best" in best:
            patience |= saved.get(PATIENCE, {})
        if trainer._optim_history and not is_new and not cfg.reset_optimizer:
            progress = trainer._optim_history[-1]["num_updates"]
    end = _end(cfg, trainer, iterator, progress, patience)
    if end and progress:
        logger.info(f"already finished: {progress:,} updates; to train on, {end}")
        sys.exit(0)
    if end:
        raise InputError(f"nothing would be trained; {end}")
    if updates < progress:
        raise InputError(
            f"the checkpoint of {progress:,} updates was saved with --no-save-optimizer-state, so no run can resume "
            "from it; to start from its weights, give --finetune-from-model FILE and another --save-dir"
        )
    was_bf16 = bool(saved.get(BF16))
    if updates and was_bf16 != trainer.autocast:
        how = "with" if was_bf16 else "without"
        raise InputError(
            f"the checkpoint was trained {how} --bf16; resume {how} it, or train on from its weights only: "
            "--finetune-from-model FILE and another --save-dir"
        )
    if ours:
        check_metric(cfg, trainer)
    return extra_state, iterator


@replaces(checkpoint_utils, "save_checkpoint")
def save_checkpoint(original: Callable, cfg: Any, trainer: Trainer, epoch_itr: Any, val_loss: Any) -> str | None:
    """Save a run as fairseq does, and the checkpoint of ``--save-interval-updates`` also at the end of an epoch."""
    if _is_ours(trainer) and (cfg.no_epoch_checkpoints or epoch_itr.epoch % cfg.save_interval):
        # which is false there, so that fairseq does not refuse this name
        epoch_itr = SimpleNamespace(epoch=epoch_itr.epoch, state_dict=epoch_itr.state_dict, end_of_epoch=lambda: False)
    return original(cfg, trainer, epoch_itr, val_loss)


@replaces(Trainer, "state_dict")
def state_dict(original: Callable, trainer: Trainer) -> dict[str, Any]:
    """The content of a checkpoint, which records autocast, and what decides when the run ends."""
    state = original(trainer)
    if is_built(trainer) and trainer.autocast:
        state["cfg"]["common"]["bf16"] = state["extra_state"][BF16] = True
    if _is_ours(trainer):
        state["extra_state"] |= {SCORED: trainer.scored, PATIENCE: dict(vars(_early_stop()))}
    return state


def _is_ours(trainer: Any) -> bool:
    return "scored" in getattr(trainer, "__dict__", {})  # which a mock would have


def _early_stop() -> Any:
    """fairseq's function that counts validations for ``--patience``, in the program that trains."""
    programs = (vars(sys.modules[name]) for name in ("__main__", "fairseq_cli.train") if name in sys.modules)
    found = (program["should_stop_early"] for program in programs if "should_stop_early" in program)
    return next(found, SimpleNamespace())


def _scored(cfg: Any, trainer: Trainer) -> dict[str, str] | None:
    """What the best score is about: the metric, and some of the masked text of the first validation subset."""
    settings, digest = trainer.cfg.dataset, hashlib.sha256()
    if settings.disable_validation:
        return None
    dataset = trainer.task.dataset(settings.valid_subset.split(",")[0])
    some = dataset.collater([dataset[place] for place in range(0, len(dataset), len(dataset) // 64 + 1)])
    utils.apply_to_sample(lambda tensor: digest.update(tensor.numpy().tobytes()), some)
    return {"metric": cfg.best_checkpoint_metric, "text": f"{len(dataset)} {digest.hexdigest()}"}


def check_start(cfg: Any, trainer: Trainer, restored: str) -> None:
    """Raises InputError if a run would start again each time that its command is repeated, instead of resuming."""
    own = Path(cfg.save_dir, f"checkpoint_last{trainer.checkpoint_suffix}.pt")
    again = ["--" + name.replace("_", "-") for name in RESETS if getattr(cfg, name)]
    if cfg.restore_file != DEFAULT and not (own.exists() and own.samefile(restored)):
        again = [f"--restore-file {cfg.restore_file}", *again]
    if own.exists() and again:
        raise InputError(
            f"{own}: the run has begun, and {' '.join(again)} would start it again; omit what starts it to resume, or "
            "give --restore-file FILE and another --save-dir"
        )
    others = sorted(own.parent.glob(f"checkpoint*{trainer.checkpoint_suffix}.pt"))
    resumes = cfg.restore_file != DEFAULT and Path(restored).resolve().parent == own.parent.resolve()
    if cfg.no_last_checkpoints and others and not resumes and not own.exists():
        raise InputError(
            f"{others[0]}: the run has begun, but --no-last-checkpoints keeps no checkpoint_last.pt to resume; give "
            "--restore-file with the newest one there, or another --save-dir"
        )


def _end(cfg: Any, trainer: Trainer, iterator: Any, updates: int, patience: dict[str, Any]) -> str | None:
    """What to change if fairseq would stop the run before its next update, or after that one, as it did before."""
    limits = trainer.cfg.optimization
    if 0 < getattr(limits, "max_update", 0) <= updates:
        return f"raise --max-update {limits.max_update} and the schedule's --total-num-update"
    if not _is_ours(trainer):
        return None
    if limits.max_epoch and iterator.next_epoch_idx > limits.max_epoch:
        return f"raise --max-epoch {limits.max_epoch}"
    if updates and 0 < limits.stop_time_hours < trainer.cumulative_training_time() / 3600:
        return f"raise --stop-time-hours {limits.stop_time_hours}"
    if (rate := trainer.get_lr()) <= limits.stop_min_lr:
        return f"omit --stop-min-lr {limits.stop_min_lr}, because the learning rate is {rate:g}"
    if 0 < cfg.patience <= patience.get("num_runs", 0):
        return f"raise --patience {cfg.patience}"
    return None


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


def check_metric(cfg: Any, trainer: Trainer) -> None:
    """Raises InputError if validation with our task or criterion would not log the metric of the best checkpoint.

    Also if the flag says that higher is better, but lower is, or the reverse. fairseq would notice a name only after
    the first validation. What is logged depends on the model, the criterion and its synonym table, so this validates
    one sequence, unless the metric is the loss, which is always logged.
    """
    task, criterion, metric = trainer.task, trainer.get_criterion(), getattr(cfg, "best_checkpoint_metric", "loss")
    if trainer.cfg.dataset.disable_validation:
        return
    if metric != "loss":
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
    higher: dict[str, bool | None] = {
        "loss": False,
        "ppl": False,
        "accuracy": True,
    }  # the last one of --criterion squad
    if isinstance(criterion, MaskedLMCriterion):
        higher |= {logged.name: logged.higher_is_better for logged in criterion.kind.displayed()}
    if higher.get(metric) not in (None, bool(cfg.maximize_best_checkpoint_metric)):
        better, change = ("higher", "add") if higher[metric] else ("lower", "omit")
        raise InputError(
            f"--best-checkpoint-metric {metric}: {better} is better; {change} --maximize-best-checkpoint-metric"
        )
