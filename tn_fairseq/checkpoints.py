"""fairseq's checkpoint files, read without unpickling code and written whole or not at all."""

import pickle
import warnings
import zipfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils

from .errors import InputError
from .files import write_whole


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint of fairseq-train with torch's safe loader: a dict that holds at least ``cfg`` and ``model``.

    Tensors are read from the file when they are looked at, so that the optimizer's cost nothing. fairseq's older
    checkpoints, such as the released RoBERTa, get the ``cfg`` that fairseq itself gives them.
    Raises InputError for a file that is missing, damaged, no checkpoint, or holds more than tensors and plain values.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; name a checkpoint of fairseq-train") from None
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, IndexError):
        raise InputError(f"{path}: damaged, or no checkpoint; name a checkpoint of fairseq-train") from None
    if isinstance(state, dict) and not state.get("cfg") and isinstance(state.get("args"), Namespace):
        state = _upgrade(state, path)
    if not isinstance(state, dict) or not state.get("cfg") or not isinstance(state.get("model"), dict):
        raise InputError(f"{path}: holds no model with its configuration; name a checkpoint of fairseq-train")
    return state


def _upgrade(state: dict[str, Any], path: str | Path) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return checkpoint_utils._upgrade_state_dict(state)
    except Exception as error:  # it takes for granted what it finds
        raise InputError(f"{path}: a checkpoint that fairseq cannot bring up to date ({error!r})") from None


def save_checkpoint(state: dict[str, Any], path: str | Path) -> None:
    """Write a checkpoint that fairseq can read; raises InputError where that is impossible."""
    with write_whole(path) as temporary:
        torch.save(state, temporary)
