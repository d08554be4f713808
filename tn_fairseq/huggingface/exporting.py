"""Convert a checkpoint of ``fairseq-train`` to folders for ``transformers``."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq.models import ARCH_MODEL_REGISTRY

from ..checkpoints import load_checkpoint
from ..dictionary import fingerprint
from ..errors import InputError
from ..files import save_tensors, write_atomically
from ..models.bert import BertModel
from ..models.electra import ElectraModel
from .config import huggingface_config
from .folder import SAFETENSORS
from .model_card import model_card
from .tokenizer import tokenizer_files
from .vocabulary import Vocabulary, load_vocabulary, recorded_data
from .weights import Names, to_huggingface, tower_names

_NOT_PARAMETERS = {"dictionary_fingerprint", "trained_positions"}


def export_model(checkpoint: Path, output: Path, data_bin: Path | None = None, *, half: bool = False) -> list[Path]:
    """Write BERT to ``output``, ELECTRA to its subfolders discriminator and generator; return the folders written.

    With ``half`` the weights are stored as float16. transformers still computes in float32, as config.json says.
    The vocabulary is read from ``data_bin``, by default the data-bin of the training. The output is written atomically.
    Raises InputError for a checkpoint of another kind of model, and for a data-bin with another vocabulary.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"--output {output} already exists; give a new folder")
    state = load_checkpoint(checkpoint)
    cfg, parameters = state["cfg"], state["model"]
    towers = _towers(cfg["model"], checkpoint)
    if data_bin is None:
        data_bin = recorded_data(checkpoint, state, "--data")
    vocabulary = load_vocabulary(data_bin)
    if bytes(parameters["dictionary_fingerprint"].tolist()).hex() != fingerprint(vocabulary.dictionary):
        raise InputError(f"{data_bin / 'dict.txt'}: not the dictionary of {checkpoint}; give its data with --data")
    known = {name for _, _, names in towers.values() for name in names}
    for name in sorted(known ^ (parameters.keys() - _NOT_PARAMETERS)):
        problem = "lacks" if name in known else "also has"
        raise InputError(f"{checkpoint}: {problem} {name}; export supports only checkpoints of pre-training")

    with write_atomically(output) as staging:
        for name, (architecture, tower, names) in towers.items():
            folder = staging / name
            folder.mkdir(parents=True)
            tensors = to_huggingface(parameters, names, vocabulary.token_ids)
            if half:
                tensors = {part: tensor.half() for part, tensor in tensors.items()}
            save_tensors(tensors, folder / SAFETENSORS, {"format": "pt"})
            config = _config(_tower_cfg(cfg["model"], tower), architecture, tower, vocabulary)
            (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
            files = tokenizer_files(vocabulary.tokenizer, vocabulary.dictionary, cfg["model"]["max_positions"])
            for file_name, content in files.items():
                (folder / file_name).write_bytes(content)
            card = model_card(output.absolute().name, architecture, state)
            (folder / "README.md").write_text(card, encoding="utf-8")
    return [output / name for name in towers]


def _towers(model: Mapping[str, Any], checkpoint: Path) -> dict[str, tuple[str, str, Names]]:
    """Subfolder -> class in ``transformers``, tower, and names of the parameters."""
    if not isinstance(model, Mapping):
        model = vars(model)  # fairseq's own models store the options of the command line
    registered = ARCH_MODEL_REGISTRY.get(model["_name"])
    if registered and issubclass(registered, BertModel):
        return {"": ("BertForMaskedLM", "encoder", tower_names("encoder", "bert", model))}
    if registered and issubclass(registered, ElectraModel):
        return {
            "discriminator": (
                "ElectraForPreTraining",
                "discriminator",
                tower_names("discriminator", "electra", model),
            ),
            "generator": ("ElectraForMaskedLM", "generator", _generator_names(model)),
        }
    raise InputError(f"{checkpoint}: holds a {model['_name']}; export supports only electra_* and bert_* models")


def _generator_names(model: Mapping[str, Any]) -> Names:
    """The names of the generator's parameters; if it is frozen, it has its own embeddings."""
    names = tower_names("generator", "electra", _tower_cfg(model, "generator"))
    if not model.get("freeze_generator"):
        return names
    return {f"generator_{name}" if name.startswith("embeddings.") else name: parts for name, parts in names.items()}


def _tower_cfg(model: Mapping[str, Any], tower: str) -> Mapping[str, Any]:
    """The model's configuration with the embedding size of this tower."""
    size = model.get("generator_embedding_size")
    return {**model, "embedding_size": size} if size and tower == "generator" else model


def _config(model: Mapping[str, Any], architecture: str, tower: str, vocabulary: Vocabulary) -> dict[str, Any]:
    pad_token_id = int(vocabulary.token_ids[vocabulary.dictionary.pad()])
    return huggingface_config(model, architecture, tower, len(vocabulary.pieces), pad_token_id)
