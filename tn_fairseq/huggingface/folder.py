"""Read a folder of ``save_pretrained``: ``config.json``, and ``model.safetensors`` or ``pytorch_model.bin``."""

import pickle
import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ..errors import InputError
from ..files import read_json_object

SAFETENSORS, BIN = "model.safetensors", "pytorch_model.bin"
_BUFFERS = r"(\w+\.)?embeddings\.(position_ids|token_type_ids)"


class PretrainedFolder(NamedTuple):
    """The contents of a folder; the tensors have the names of current versions of ``transformers``."""

    path: Path
    config: dict[str, Any]
    model_type: str  # bert or electra
    prefix: str  # of the encoder's tensors: "bert." or "electra.", or empty if the encoder was saved alone
    tensors: dict[str, Tensor]  # without indices and without copies; copies that differ from their original remain


def read_folder(path: Path) -> PretrainedFolder:
    """Read the configuration and the tensors.

    Raises InputError if a file is missing, damaged or sharded, or a pickle with anything but tensors, or if the model
    is neither BERT nor ELECTRA.
    """
    config = read_config(path)
    model_type = config.get("model_type")
    if model_type not in ("bert", "electra"):
        raise InputError(f"{path / 'config.json'}: a model of type {model_type!r}; import supports bert and electra")
    tensors = _modern_names(_read_tensors(path))
    has_prefix = any(name.startswith(f"{model_type}.embeddings.") for name in tensors)
    is_bare = not has_prefix and any(name.startswith("embeddings.") for name in tensors)
    prefix = "" if is_bare else f"{model_type}."
    for copy, original in tied_copies(prefix).items():
        # some releases have the copy only
        if copy in tensors and (original not in tensors or torch.equal(tensors[copy], tensors[original])):
            tensors[original] = tensors.pop(copy)
    return PretrainedFolder(path, config, model_type, prefix, tensors)


def tied_copies(prefix: str) -> dict[str, str]:
    """The parameters of masked-LM heads that equal other parameters, and those."""
    return {
        "cls.predictions.decoder.weight": f"{prefix}embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
        "generator_lm_head.weight": f"{prefix}embeddings.word_embeddings.weight",
    }


def read_config(folder: Path) -> dict[str, Any]:
    """Read the folder's ``config.json``; raises InputError if it is missing or invalid."""
    return read_json_object(folder / "config.json", "give a folder of save_pretrained, or download it again")


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    safetensors, pickled = folder / SAFETENSORS, folder / BIN
    if safetensors.exists():
        path, tensors = safetensors, _load_safetensors(safetensors)
    elif pickled.exists():
        path, tensors = pickled, _load_bin(pickled)
    else:
        raise InputError(_why_no_weights(folder))
    if not tensors:
        raise InputError(f"{path}: contains no tensors; download the folder again")
    return tensors


def _load_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: {_fault(path, error)}; download it again") from None


def _load_bin(path: Path) -> dict[str, Tensor]:
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, OSError, EOFError, ValueError, KeyError, IndexError) as error:
        raise InputError(
            f"{path}: {_fault(path, error)}; download it again, or save the model as {SAFETENSORS} with save_pretrained"
        ) from None
    if not isinstance(tensors, dict) or not all(torch.is_tensor(tensor) for tensor in tensors.values()):
        raise InputError(f"{path}: does not contain the parameters of a model; save it with save_pretrained")
    return tensors


def _fault(path: Path, error: Exception) -> str:
    try:
        with open(path, "rb") as file:
            if file.read(64).startswith(b"version https://git-lfs"):
                return "a Git LFS pointer, not the weights (download them with git lfs pull)"
    except OSError:
        return "cannot be read"
    if isinstance(error, pickle.UnpicklingError) and "weights_only" in str(error).lower():
        return "refused because it contains more than tensors, or is damaged"
    return f"damaged or cut short ({type(error).__name__})"


def _why_no_weights(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    for name in names:
        if name.endswith(".index.json"):
            return (
                f"{folder / name}: the weights are in several shards; load the model with transformers and save it "
                'in one file: save_pretrained(DIR, max_shard_size="100GB")'
            )
    unfinished = next((name for name in names if name.endswith((".incomplete", ".part", ".tmp", ".crdownload"))), None)
    if unfinished:
        return f"{folder}: the download is incomplete ({unfinished}); finish it"
    other = next((name for name in names if name.endswith((".h5", ".msgpack", ".ot", ".onnx", ".ckpt.index"))), None)
    if other:
        return f"{folder}: its only weights, {other}, are from another framework; convert them to {SAFETENSORS}"
    return f"{folder}: has no {SAFETENSORS} or {BIN}; give a folder of save_pretrained"


def _modern_names(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename the LayerNorm parameters gamma and beta of early releases, which use the names of TensorFlow.

    Also drops the indices of positions and token types, which some releases save with the parameters.
    """
    renamed = {}
    for name, tensor in tensors.items():
        if re.fullmatch(_BUFFERS, name):
            continue
        name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
        renamed[re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)] = tensor
    return renamed
