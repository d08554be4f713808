"""A folder as ``save_pretrained`` writes it: ``config.json`` beside ``model.safetensors`` or ``pytorch_model.bin``."""

import json
import pickle
import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ..errors import InputError

SAFETENSORS, BIN = "model.safetensors", "pytorch_model.bin"


class PretrainedFolder(NamedTuple):
    """What a folder holds; the tensors under the names that today's ``transformers`` gives them."""

    path: Path
    config: dict[str, Any]
    tensors: dict[str, Tensor]


def read_folder(path: Path) -> PretrainedFolder:
    """Read configuration and tensors.

    Raises InputError where a file is missing, damaged, sharded, or a pickle of anything but tensors.
    """
    return PretrainedFolder(path, read_config(path), _modern_names(_read_tensors(path)))


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's ``config.json``; raises InputError where there is none that can be read."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; name a folder that save_pretrained wrote") from None
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON ({error}); download the folder anew") from None
    if not isinstance(config, dict):
        raise InputError(f"{path}: a JSON {type(config).__name__}, not an object; download the folder anew")
    return config


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    safetensors, pickled = folder / SAFETENSORS, folder / BIN
    if safetensors.exists():
        path, tensors = safetensors, _load_safetensors(safetensors)
    elif pickled.exists():
        path, tensors = pickled, _load_bin(pickled)
    else:
        raise InputError(_why_no_weights(folder))
    if not tensors:
        raise InputError(f"{path}: holds no tensors; download the folder anew")
    return tensors


def _load_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: {_fault(path, error)}; download it anew") from None


def _load_bin(path: Path) -> dict[str, Tensor]:
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, OSError, EOFError, ValueError, KeyError, IndexError) as error:
        raise InputError(
            f"{path}: {_fault(path, error)}; download it anew, or save the model as {SAFETENSORS} with save_pretrained"
        ) from None
    if not isinstance(tensors, dict) or not all(torch.is_tensor(tensor) for tensor in tensors.values()):
        raise InputError(f"{path}: not the parameters of a model; save it with save_pretrained")
    return tensors


def _fault(path: Path, error: Exception) -> str:
    try:
        with open(path, "rb") as file:
            if file.read(64).startswith(b"version https://git-lfs"):
                return "a Git LFS pointer, not the weights (git lfs pull fetches them)"
    except OSError:
        return "cannot be read"
    if isinstance(error, pickle.UnpicklingError) and "weights_only" in str(error).lower():
        return "refused, for it holds more than tensors, or is damaged"
    return f"damaged or cut short ({type(error).__name__})"


def _why_no_weights(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    for name in names:
        if name.endswith(".index.json"):
            return (
                f"{folder / name}: weights in several shards; load the model with transformers and save it in one "
                'piece: save_pretrained(DIR, max_shard_size="100GB")'
            )
    unfinished = next((name for name in names if name.endswith((".incomplete", ".part", ".tmp", ".crdownload"))), None)
    if unfinished:
        return f"{folder}: half downloaded ({unfinished}); finish the download"
    other = next((name for name in names if name.endswith((".h5", ".msgpack", ".ot", ".onnx", ".ckpt.index"))), None)
    if other:
        return f"{folder}: its only weights, {other}, are another framework's; convert them to {SAFETENSORS}"
    return f"{folder}: no {SAFETENSORS} or {BIN} in it; name a folder that save_pretrained wrote"


def _modern_names(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Early releases call LayerNorm's parameters gamma and beta, after TensorFlow."""
    renamed = {}
    for name, tensor in tensors.items():
        name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
        renamed[re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)] = tensor
    return renamed
