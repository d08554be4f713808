"""Convert a checkpoint of ``fairseq-train`` to folders for ``transformers``."""

import json
from pathlib import Path

from ..dictionary import fingerprint
from ..errors import InputError
from ..files import save_tensors, write_atomically
from ..models.electra import ElectraModel
from ..models.loading import load_ours
from .conversion import encoder_names, head_names, huggingface_config, to_huggingface
from .folder import SAFETENSORS
from .model_card import model_card
from .tokenizer import tokenizer_files
from .vocabulary import load_vocabulary, recorded_data

_NOT_PARAMETERS = {"dictionary_fingerprint", "trained_positions"}
# tower -> class in transformers
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
    state, model_class = load_ours(checkpoint)
    is_electra = issubclass(model_class, ElectraModel)
    cfg, parameters = state["cfg"]["model"], state["model"]
    data_bin = data_bin or recorded_data(checkpoint, state, "--data")
    vocabulary = load_vocabulary(data_bin)
    if bytes(parameters["dictionary_fingerprint"].tolist()).hex() != fingerprint(vocabulary.dictionary):
        raise InputError(f"{data_bin / 'dict.txt'}: not the dictionary of {checkpoint}; give its data with --data")

    cfgs, names = {}, {}
    for tower in ("discriminator", "generator") if is_electra else ("encoder",):
        cfgs[tower] = dict(cfg)
        if tower == "generator" and cfg.get("generator_embedding_size"):
            cfgs[tower]["embedding_size"] = cfg["generator_embedding_size"]
        model_type = "electra" if is_electra else "bert"
        names[tower] = encoder_names(tower, f"{model_type}.", cfgs[tower]) | head_names(tower, model_type)
    if cfg.get("freeze_generator"):  # then it has its own embeddings
        names["generator"] = {
            f"generator_{name}" if name.startswith("embeddings.") else name: parts
            for name, parts in names["generator"].items()
        }
    known = {name for tower_names in names.values() for name in tower_names}
    for name in sorted(known ^ (parameters.keys() - _NOT_PARAMETERS)):
        problem = "lacks" if name in known else "also has"
        raise InputError(f"{checkpoint}: {problem} {name}; export supports only checkpoints of pre-training")

    subfolders = {tower: tower if is_electra else "" for tower in names}
    with write_atomically(output) as staging:
        for tower, subfolder in subfolders.items():
            folder, architecture = staging / subfolder, _ARCHITECTURES[tower]
            folder.mkdir(parents=True)
            tensors = to_huggingface(parameters, names[tower], vocabulary.token_ids)
            if half:
                tensors = {part: tensor.half() for part, tensor in tensors.items()}
            save_tensors(tensors, folder / SAFETENSORS, {"format": "pt"})
            pad = int(vocabulary.token_ids[vocabulary.dictionary.pad()])
            config = huggingface_config(cfgs[tower], architecture, tower, len(vocabulary.pieces), pad)
            (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
            files = tokenizer_files(vocabulary.tokenizer, vocabulary.dictionary, cfg["max_positions"])
            for file_name, content in files.items():
                (folder / file_name).write_bytes(content)
            card = model_card(output.absolute().name, architecture, state)
            (folder / "README.md").write_text(card, encoding="utf-8")
    return [output / subfolder for subfolder in subfolders.values()]
