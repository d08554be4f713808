"""fairseq's checkpoint files, read without unpickling code and written whole or not at all."""

import pickle
from pathlib import Path
from typing import Any

import torch

from .errors import InputError
from .files import write_whole


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint of fairseq-train with torch's safe loader: a dict that holds at least ``cfg`` and ``model``.

    Raises InputError for a file that is missing, damaged, no checkpoint, or holds more than tensors and plain values.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; name a checkpoint of fairseq-train") from None
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, IndexError):
        raise InputError(f"{path}: damaged, or no checkpoint; name a checkpoint of fairseq-train") from None
    if not isinstance(state, dict) or not state.get("cfg") or not isinstance(state.get("model"), dict):
        raise InputError(f"{path}: holds no model with its configuration; name a checkpoint of fairseq-train")
    return state


def save_checkpoint(state: dict[str, Any], path: str | Path) -> None:
    """Write a checkpoint that fairseq can read; raises InputError where that is impossible."""
    with write_whole(path) as temporary:
        torch.save(state, temporary)
