"""Read a folder of ``save_pretrained``: ``config.json``, and ``model.safetensors`` or ``pytorch_model.bin``."""

import pickle
import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ..core.errors import InputError
from ..core.files import read_json_object

SAFETENSORS, BIN = "model.safetensors", "pytorch_model.bin"
_BUFFERS = r"(\w+\.)?embeddings\.(position_ids|token_type_ids)"  # some releases save these with the parameters


class PretrainedFolder(NamedTuple):
    """The contents of a folder; the tensors have the names of current versions of ``transformers``."""

    path: Path
    config: dict[str, Any]
    model_type: str  # bert or electra
    prefix: str  # of the encoder's tensors: "bert." or "electra.", or empty if the encoder was saved alone
    tensors: dict[str, Tensor]  # without position indices and tied copies; a copy that differs from its original stays
    layers: list[int] | None = None  # the encoder's layers that are kept, by their numbers in the folder; None: all


def read_folder(path: Path) -> PretrainedFolder:
    """Read the configuration and the tensors.

    Raises InputError if a file is missing, damaged or sharded, or a pickle with anything but tensors, or if the model
    is neither BERT nor ELECTRA.
    """
    config = read_json_object(path / "config.json", "give a folder of save_pretrained, or download it again")
    model_type = config.get("model_type")
    if model_type not in ("bert", "electra", None):
        raise InputError(
            f"{path / 'config.json'}: a model of type {model_type!r}; import supports bert and electra; "
            "train other models with TrueNegativeTrainer"
        )
    tensors = {
        # early releases use the names of TensorFlow
        name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias"): tensor
        for name, tensor in _read_tensors(path).items()
        if not re.fullmatch(_BUFFERS, name)
    }
    if model_type is None:  # as in Google's first releases
        model_type = next(
            (kind for kind in ("bert", "electra") if any(n.startswith(f"{kind}.") for n in tensors)), None
        )
        if model_type is None:
            raise InputError(
                f"{path / 'config.json'}: has no model_type, and no tensor says which it is; add "
                '"model_type": "bert" if it is a BERT'
            )
        config["model_type"] = model_type
    prefix = "" if any(name.startswith("embeddings.") for name in tensors) else f"{model_type}."
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
    path, remedy = folder / SAFETENSORS, "download it again, with git lfs pull if you cloned its repository"
    if path.exists():
        try:
            return load_file(path)
        except (SafetensorError, OSError, ValueError) as error:
            raise InputError(f"{path}: damaged or cut short ({type(error).__name__}); {remedy}") from None
    path = folder / BIN
    if not path.exists():
        contents = ", ".join(sorted(file.name for file in folder.iterdir() if "model" in file.name)[:3]) or "no weights"
        raise InputError(
            f"{folder}: has no {SAFETENSORS} or {BIN} but {contents}; finish the download, or load the model with "
            'transformers and save it in one file: save_pretrained(DIR, max_shard_size="100GB")'
        )
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, OSError, EOFError, ValueError, LookupError) as error:
        raise InputError(
            f"{path}: damaged, or refused because it holds more than tensors ({type(error).__name__}); {remedy}, or "
            f"save the model as {SAFETENSORS} with save_pretrained"
        ) from None
    if not isinstance(tensors, dict) or not all(torch.is_tensor(tensor) for tensor in tensors.values()):
        raise InputError(f"{path}: does not contain the parameters of a model; save it with save_pretrained")
    return tensors
