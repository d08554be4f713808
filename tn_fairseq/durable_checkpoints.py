"""fairseq-train's checkpoints, made to survive what happens to runs of days: kills, full disks, damaged files.

fairseq copies each new checkpoint over ``checkpoint_last.pt``, which a kill in the middle leaves cut off; a damaged
file or a full disk ends in a traceback; and a run that is started again after its end makes one more update each time.
It has no hook for its files, so ``install`` puts these functions in the place of fairseq's own.
"""

import logging
import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager
from fairseq.trainer import Trainer

from .checkpoints import load_checkpoint
from .errors import InputError, one_line_errors

logger = logging.getLogger(__name__)

DEFAULT = "checkpoint_last.pt"  # of --restore-file: in --save-dir, and not there at first

_fairseq_save = checkpoint_utils.torch_persistent_save
_fairseq_load = checkpoint_utils.load_checkpoint_to_cpu
_fairseq_resume = checkpoint_utils.load_checkpoint


def install() -> None:
    """Make fairseq write checkpoints whole or not at all, and read the one before where the last is damaged."""
    checkpoint_utils.torch_persistent_save = save
    checkpoint_utils.load_checkpoint_to_cpu = load
    checkpoint_utils.load_checkpoint = resume
    PathManager.copy = staticmethod(copy)


@one_line_errors()
def save(state: dict[str, Any], path: str, async_write: bool = False) -> None:
    """Write a checkpoint; exits in one line where that is impossible, and leaves what was there."""
    if async_write:  # needs iopath, which writes in its own way
        _fairseq_save(state, path, async_write)
    else:
        _replace(path, lambda file: torch.save(state, file))


@one_line_errors()
def copy(source: str, path: str, overwrite: bool = False) -> bool:
    """Copy a checkpoint; exits in one line where that is impossible, and leaves what was there."""
    if os.path.exists(path) and not overwrite:
        return False
    with open(source, "rb") as original:
        _replace(path, lambda file: shutil.copyfileobj(original, file, 1 << 24))
    return True


@one_line_errors()
def load(path: str, arg_overrides: dict[str, Any] | None = None, load_on_all_ranks: bool = False) -> dict[str, Any]:
    """Read a checkpoint as fairseq does, in place of a damaged ``checkpoint_last.pt`` the newest whole one beside it.

    Exits in one line where there is none, and for any other file that is damaged or holds code.
    """
    try:
        _check(path)
    except InputError as error:
        if not Path(path).name.startswith("checkpoint_last"):
            raise
        path = _newest_whole_beside(Path(path), error)
    return _fairseq_load(str(path), arg_overrides, load_on_all_ranks)


@one_line_errors()
def resume(cfg: Any, trainer: Trainer, **options) -> tuple[dict[str, Any] | None, Any]:
    """Go on from a checkpoint as fairseq does; a run that has made all of its updates ends at once, and well.

    Exits in one line where a checkpoint that was named is not there, or has been trained in another way.
    """
    if cfg.restore_file != DEFAULT and not PathManager.exists(cfg.restore_file):
        raise InputError(f"--restore-file {cfg.restore_file}: no such file; name a checkpoint of fairseq-train")
    try:
        resumed = _fairseq_resume(cfg, trainer, **options)
    except (AssertionError, ValueError) as error:
        reason = str(error)
        if reason.startswith("--finetune-from-model"):
            raise InputError(reason) from None
        if "--reset-optimizer" not in reason:
            raise
        raise InputError(
            f"the checkpoint was trained with another criterion, optimizer or precision ({reason.rsplit('. ', 1)[1]}); "
            "to go on with its weights alone, add --reset-optimizer, or give --finetune-from-model FILE and another "
            "--save-dir"
        ) from None
    limit = trainer.cfg.optimization.max_update
    if 0 < limit <= trainer.get_num_updates():
        logger.info(
            f"done before: {trainer.get_num_updates():,} updates; to train on, raise --max-update {limit}, and the "
            "schedule's --total-num-update"
        )
        sys.exit(0)
    return resumed


def _replace(path: str, write: Callable[[IO[bytes]], Any]) -> None:
    """Write a file beside its place under the name that fairseq uses, so that no kill leaves many, and rename it."""
    temporary = f"{path}.tmp"
    try:
        with open(temporary, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())  # the name must not reach the disk before the content
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:  # torch dresses an OSError in a RuntimeError of its own
        Path(temporary).unlink(missing_ok=True)
        cause = error if isinstance(error, OSError) else error.__context__
        reason = getattr(cause, "strerror", None) or str(error).splitlines()[0]
        raise InputError(
            f"{path}: cannot be written ({reason}); make room, or give another --save-dir, and run the same command "
            "again: it goes on from the checkpoint before"
        ) from None


def _check(path: str | Path) -> dict[str, Any]:
    """The checkpoint's content; raises InputError where it is damaged, which torch itself need not notice."""
    state = load_checkpoint(path)
    if zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as archive:
                damaged = archive.testzip()
        except (zipfile.BadZipFile, OSError) as error:
            damaged = error
        if damaged is not None:
            raise InputError(f"{path}: damaged ({damaged}); name a whole checkpoint of fairseq-train")
    return state


def _newest_whole_beside(path: Path, fault: InputError) -> Path:
    whole = {}
    for other in path.parent.glob("checkpoint*.pt"):
        if other.name != path.name:
            try:
                whole[other] = _check(other)["optimizer_history"][-1]["num_updates"]
            except (InputError, LookupError):
                continue
    if not whole:
        raise InputError(f"{path}: damaged, and no whole checkpoint lies beside it; remove it to begin anew")
    newest = max(whole, key=whole.get)
    logger.warning(f"{fault}: going on from {newest} instead, which has {whole[newest]:,} updates")
    return newest
