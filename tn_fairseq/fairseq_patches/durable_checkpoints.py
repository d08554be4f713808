"""Checkpoints of fairseq-train that survive kills, full disks and damaged files.

fairseq copies each new checkpoint over ``checkpoint_last.pt``, so a kill leaves a partial file. A damaged file or a
full disk ends in a traceback. Restarting a finished run trains one more update each time. fairseq has no hook for its
files, so ``install`` replaces its functions with these.
"""

import logging
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager
from fairseq.trainer import Trainer

from ..checkpoints import RefusedObjects, archive_damage, harmless_objects, load_checkpoint
from ..errors import InputError, one_line_errors
from ..files import replacing

logger = logging.getLogger(__name__)

DEFAULT = "checkpoint_last.pt"  # default of --restore-file, in --save-dir; missing in a new run

_fairseq_save = checkpoint_utils.torch_persistent_save
_fairseq_load = checkpoint_utils.load_checkpoint_to_cpu
_fairseq_resume = checkpoint_utils.load_checkpoint


def install() -> None:
    """Make fairseq write checkpoints completely or not at all, and read an older one if the last is damaged."""
    checkpoint_utils.torch_persistent_save = save
    checkpoint_utils.load_checkpoint_to_cpu = load
    checkpoint_utils.load_checkpoint = resume
    PathManager.copy = staticmethod(copy)


@one_line_errors()
def save(state: dict[str, Any], path: str, async_write: bool = False) -> None:
    """Write a checkpoint; exits with a one-line error if that fails, and keeps the old file."""
    if async_write:  # needs iopath, which has its own way of writing
        _fairseq_save(state, path, async_write)
    else:
        _replace(path, lambda file: torch.save(state, file))


@one_line_errors()
def copy(source: str, path: str, overwrite: bool = False) -> bool:
    """Copy a checkpoint; exits with a one-line error if that fails, and keeps the old file."""
    if os.path.exists(path) and not overwrite:
        return False
    with open(source, "rb") as original:
        _replace(path, lambda file: shutil.copyfileobj(original, file, 1 << 24))
    return True


@one_line_errors()
def load(path: str, arg_overrides: dict[str, Any] | None = None, load_on_all_ranks: bool = False) -> dict[str, Any]:
    """Read a checkpoint as fairseq does; if ``checkpoint_last`` is damaged, the newest complete one in its folder.

    Only files with the same suffix count, because other suffixes hold other parts of the model. Exits with a one-line
    error if there is none, and if any other file is damaged or holds Python objects that the safe loader refuses.
    """
    try:
        _check(path)
    except InputError as error:
        if not Path(path).name.startswith("checkpoint_last"):
            raise
        path = _newest_complete(Path(path), error)
    with harmless_objects():
        return _fairseq_load(str(path), arg_overrides, load_on_all_ranks)


@one_line_errors()
def resume(cfg: Any, trainer: Trainer, **options) -> tuple[dict[str, Any] | None, Any]:
    """Resume from a checkpoint as fairseq does; exits at once with code 0 if the run is already finished.

    Exits with a one-line error if a checkpoint that was named does not exist, or was trained in another way.
    """
    # given x.pt, fairseq looks for x-shard0.pt if the worker has shard 0; if that is missing, it starts over
    restored = cfg.restore_file.replace(".pt", f"{trainer.checkpoint_suffix}.pt")
    if cfg.restore_file != DEFAULT and not PathManager.isfile(restored):
        missing = "" if restored == cfg.restore_file else f" ({restored})"
        raise InputError(
            f"--restore-file {cfg.restore_file}: no such file{missing}; name a checkpoint of fairseq-train"
        )
    try:
        resumed = _fairseq_resume(cfg, trainer, **options)
    except (AssertionError, ValueError) as error:
        reason = str(error)
        if "parameter group" in reason:  # of torch
            raise InputError(
                "the checkpoint's optimizer has other parameters; resume with the same --freeze-generator and "
                "--layerwise-lr-decay, or give --finetune-from-model FILE and another --save-dir"
            ) from None
        if reason.startswith("--finetune-from-model"):
            raise InputError(reason) from None
        if "--reset-optimizer" not in reason:
            raise
        raise InputError(
            f"the checkpoint was trained with another criterion, optimizer or precision ({reason.rsplit('. ', 1)[1]}); "
            "to train on from its weights only, add --reset-optimizer, or give --finetune-from-model FILE and another "
            "--save-dir"
        ) from None
    limit = trainer.cfg.optimization.max_update
    if 0 < limit <= trainer.get_num_updates():
        logger.info(
            f"already finished: {trainer.get_num_updates():,} updates; to train on, raise --max-update {limit} and the "
            "schedule's --total-num-update"
        )
        sys.exit(0)
    return resumed


def _replace(path: str, write: Callable[[IO[bytes]], Any]) -> None:
    """Write a temporary file, with the name that fairseq uses, and rename it.

    Takes no lock, because on some file systems the lock of a crashed machine remains.
    """
    advice = (
        "make room, or give another --save-dir, and run the same command again: it resumes from the previous checkpoint"
    )
    with replacing(Path(path), Path(f"{path}.tmp"), advice) as temporary, open(temporary, "wb") as file:
        write(file)


def _check(path: str | Path) -> dict[str, Any]:
    """The checkpoint's content; raises InputError if it is damaged, which torch itself may not notice."""
    state = load_checkpoint(path)
    damaged = archive_damage(path)
    if damaged is not None:
        raise InputError(f"{path}: damaged ({damaged}); name a complete checkpoint of fairseq-train")
    return state


def _newest_complete(path: Path, fault: InputError) -> Path:
    # fairseq's names for checkpoints by epoch, by update, and by score, with the suffix of this shard
    suffix = re.escape(path.name.removeprefix("checkpoint_last"))
    names = re.compile(rf"checkpoint(\d+|_\d+_\d+|_best|\.best_.+_-?\d+\.\d+){suffix}")
    whole = {}
    for other in filter(lambda file: names.fullmatch(file.name), path.parent.iterdir()):
        try:
            whole[other] = _check(other)["optimizer_history"][-1]["num_updates"]
        except (InputError, LookupError):
            continue
    if not whole and isinstance(fault, RefusedObjects):
        raise fault
    if not whole:
        raise InputError(f"{path}: damaged, and no complete checkpoint has its suffix; delete it to start over")
    newest = max(whole, key=whole.get)
    logger.warning(f"{fault}: resuming from {newest} instead, which has {whole[newest]:,} updates")
    return newest
