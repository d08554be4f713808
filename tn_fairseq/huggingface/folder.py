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
_BUFFERS = r"(\w+\.)?embeddings\.(position_ids|token_type_ids)"  # some releases save these with the parameters
_UNFINISHED = (".incomplete", ".part", ".tmp", ".crdownload")
_OTHER_FRAMEWORKS = (".h5", ".msgpack", ".ot", ".onnx", ".ckpt.index")


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
    config = read_json_object(path / "config.json", "give a folder of save_pretrained, or download it again")
    model_type = config.get("model_type")
    if model_type not in ("bert", "electra"):
        raise InputError(f"{path / 'config.json'}: a model of type {model_type!r}; import supports bert and electra")
    tensors = {
        # early releases use the names of TensorFlow
        re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)): tensor
        for name, tensor in _read_tensors(path).items()
        if not re.fullmatch(_BUFFERS, name)
    }
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


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    path, remedy = folder / SAFETENSORS, "download it again"
    if not path.exists():
        path, remedy = folder / BIN, f"download it again, or save the model as {SAFETENSORS} with save_pretrained"
    if not path.exists():
        raise InputError(_why_no_weights(folder))
    try:
        is_pickle = path.name == BIN
        tensors = torch.load(path, map_location="cpu", weights_only=True) if is_pickle else load_file(path)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, OSError, EOFError, ValueError, LookupError) as error:
        raise InputError(f"{path}: {_fault(path, error)}; {remedy}") from None
    if not isinstance(tensors, dict) or not all(torch.is_tensor(tensor) for tensor in tensors.values()):
        raise InputError(f"{path}: does not contain the parameters of a model; save it with save_pretrained")
    if not tensors:
        raise InputError(f"{path}: contains no tensors; download the folder again")
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
    if shards := [name for name in names if name.endswith(".index.json")]:
        return (
            f"{folder / shards[0]}: the weights are in several shards; load the model with transformers and save it "
            'in one file: save_pretrained(DIR, max_shard_size="100GB")'
        )
    if unfinished := [name for name in names if name.endswith(_UNFINISHED)]:
        return f"{folder}: the download is incomplete ({unfinished[0]}); finish it"
    if other := [name for name in names if name.endswith(_OTHER_FRAMEWORKS)]:
        return f"{folder}: its only weights, {other[0]}, are from another framework; convert them to {SAFETENSORS}"
    return f"{folder}: has no {SAFETENSORS} or {BIN}; give a folder of save_pretrained"
