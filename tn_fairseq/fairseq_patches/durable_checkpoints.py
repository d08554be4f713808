"""Checkpoints of fairseq-train that survive kills, full disks and damaged files.

fairseq copies each new checkpoint over ``checkpoint_last.pt``, so a kill leaves a partial file. A damaged file or a
full disk ends in a traceback.
"""

import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from ..core.checkpoints import (
    CannotRead,
    NoModel,
    RefusedObjects,
    archive_damage,
    harmless_objects,
    load_checkpoint,
)
from ..core.errors import InputError, one_line_errors
from ..core.files import replacing
from .replacing import replaces

logger = logging.getLogger(__name__)


@replaces(checkpoint_utils, "torch_persistent_save")
@one_line_errors()
def save(original: Callable, obj: Any, filename: str, async_write: bool = False) -> None:
    """Write a checkpoint; exits with a one-line error if that fails, and keeps the old file."""
    if async_write or not PathManager.supports_rename(str(filename)):  # iopath has its own ways of writing
        original(obj, filename, async_write)
    else:
        _replace(filename, lambda file: torch.save(obj, file))


@replaces(PathManager, "copy")
@one_line_errors()
def copy(original: Callable, src_path: str, dst_path: str, overwrite: bool = False) -> bool | str:
    """Copy a checkpoint; exits with a one-line error if that fails, and keeps the old file."""
    # fairseq copies checkpoints with overwrite=True; what else it means depends on whether iopath is installed
    if not overwrite or not all(PathManager.supports_rename(str(path)) for path in (src_path, dst_path)):
        return original(src_path, dst_path, overwrite)
    with open(src_path, "rb") as source:
        _replace(dst_path, lambda file: shutil.copyfileobj(source, file, 1 << 24))
    return True


@replaces(checkpoint_utils, "load_checkpoint_to_cpu")
@one_line_errors()
def load(original: Callable, path: str, *args: Any, **options: Any) -> dict[str, Any]:
    """Read a checkpoint as fairseq does; if ``checkpoint_last`` is damaged, the newest complete one in its folder.

    Only files with the same suffix count, because other suffixes hold other parts of the model. Exits with a one-line
    error if there is none, and if any other file is damaged or holds Python objects that the safe loader refuses. Other
    programs may save states without a model; exits if fairseq cannot read one.
    """
    no_model = None
    try:
        if PathManager.supports_rename(str(path)):  # otherwise, iopath copies it from another place
            _check(path)
    except NoModel as error:
        no_model = error
    except InputError as error:
        if isinstance(error, CannotRead) or not Path(path).name.startswith("checkpoint_last"):
            raise
        path = str(_newest_complete(Path(path), error))
    try:
        with harmless_objects():
            return original(str(path), *args, **options)
    except Exception:
        if no_model is None:
            raise
        raise no_model from None


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
    whole: dict[Path, int] = {}
    for other in filter(lambda file: names.fullmatch(file.name), path.parent.iterdir()):
        try:
            whole[other] = _check(other)["optimizer_history"][-1]["num_updates"]
        except (InputError, LookupError):
            continue
    if not whole and isinstance(fault, RefusedObjects):
        raise fault
    if not whole:
        raise InputError(f"{path}: damaged, and no complete checkpoint has its suffix; delete it to start over")
    newest = max(whole, key=whole.__getitem__)
    logger.warning(f"{fault}: resuming from {newest} instead, which has {whole[newest]:,} updates")
    return newest
