"""Convert a checkpoint of ``fairseq-train`` to folders for ``transformers``."""

import json
import os
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.dataclass.utils import merge_with_parent
from fairseq.models import MODEL_DATACLASS_REGISTRY
from omegaconf import OmegaConf

from ..core.checkpoints import check_dictionary, registered_name
from ..core.errors import InputError, exits_as_errors, naming
from ..core.files import save_tensors, write_atomically
from ..models.base import EncoderModel
from ..models.electra import ElectraModel
from ..models.loading import load_ours
from ..tokenizers.base import Tokenizer
from .conversion import encoder_names, huggingface_config, to_huggingface, vocabulary_rows
from .folder import SAFETENSORS
from .model_card import model_card
from .tokenizer import tokenizer_files
from .vocabulary_files import read_data_bin

# encoder -> class in transformers
_ARCHITECTURES = {
    "encoder": "BertForMaskedLM",
    "discriminator": "ElectraForPreTraining",
    "generator": "ElectraForMaskedLM",
}


def export_model(checkpoint: Path, output: Path, data_bin: Path | None = None, *, half: bool = False) -> list[Path]:
    """Write BERT to ``output``, ELECTRA to its subfolders discriminator and generator; return the folders written.

    With ``half`` the weights are stored as float16. transformers still computes in float32, as config.json says.
    The vocabulary is read from ``data_bin``, by default the data-bin of the training. The output is written atomically.
    Raises InputError for a checkpoint of another kind of model, and for a data-bin with another vocabulary.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"--output {output} already exists; give a new folder")
    model, dictionary, tokenizer, state = read_checkpoint(checkpoint, data_bin, "--data")
    token_ids = torch.from_numpy(tokenizer.token_ids(dictionary))
    pad = int(token_ids[dictionary.pad()])
    parameters = model.state_dict()
    is_electra = isinstance(model, ElectraModel)
    model_type = "electra" if is_electra else "bert"
    # encoder -> subfolder
    encoders = {"discriminator": "discriminator", "generator": "generator"} if is_electra else {"encoder": ""}
    with write_atomically(output) as staging:
        for encoder, subfolder in encoders.items():
            folder, architecture = staging / subfolder, _ARCHITECTURES[encoder]
            folder.mkdir(parents=True)
            tensors = to_huggingface(
                parameters, encoder_names(parameters, encoder, model_type, f"{model_type}."), token_ids
            )
            if half:
                tensors = {part: tensor.half() for part, tensor in tensors.items()}
            save_tensors(tensors, folder / SAFETENSORS, {"format": "pt"})
            rows = vocabulary_rows(token_ids)
            config = huggingface_config(model.cfg, model_type, encoder, architecture, rows, pad)
            (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
            for file_name, content in tokenizer_files(tokenizer, dictionary, model.cfg.max_positions).items():
                (folder / file_name).write_bytes(content)
            card = model_card(Path(output.absolute().name, subfolder).as_posix(), encoder, state)
            (folder / "README.md").write_text(card, encoding="utf-8")
    return [output / subfolder for subfolder in encoders.values()]


def read_checkpoint(
    path: Path, data_bin: Path | None, option: str
) -> tuple[EncoderModel, Dictionary, Tokenizer, dict[str, Any]]:
    """The model of a checkpoint, the vocabulary of a data-bin, by default that of its training, and the checkpoint.

    Raises InputError if the model is of another kind or fine-tuned, if it does not match its configuration or the
    dictionary, and if its data no longer exist; ``option`` is how to name the data.
    """
    state, model_class = load_ours(path)
    if any(name.startswith("classification_heads.") for name in state["model"]):
        raise InputError(f"{path}: is fine-tuned; give a checkpoint of pre-training")
    if data_bin is None:
        data_bin = Path(state["cfg"]["task"]["data"].split(os.pathsep)[0])
        if not data_bin.is_dir():
            raise InputError(f"{path}: its data, {data_bin}, no longer exists; give its new folder with {option}")
    dictionary, tokenizer = read_data_bin(data_bin)
    check_dictionary(path, state, dictionary)
    # checkpoints of earlier versions lack some fields, and have others
    cfg = OmegaConf.create(state["cfg"]["model"], flags={"allow_objects": True})
    options = MODEL_DATACLASS_REGISTRY[registered_name(cfg, "arch")]()
    model = model_class(merge_with_parent(options, cfg, remove_missing=True), dictionary)
    with naming(f"{path}:"), exits_as_errors():
        model.load_state_dict(state["model"])
    return model, dictionary, tokenizer, state
