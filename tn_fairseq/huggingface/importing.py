"""Convert folders of ``save_pretrained`` to a checkpoint for ``fairseq-train``."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from omegaconf import OmegaConf

from ..checkpoints import save_checkpoint
from ..configuration import as_argument, check_data_folder, training_config
from ..errors import InputError
from ..models.base import EncoderModel
from ..models.bert import BertModel
from ..models.electra import ElectraModel
from .config import sizes_from_huggingface
from .folder import PretrainedFolder, read_folder
from .vocabulary import check_tokenizer, load_vocabulary
from .weights import (
    Names,
    bert_names,
    discriminator_names,
    from_huggingface,
    generator_names,
    has_vocabulary_rows,
)

MODELS = {"bert": BertModel, "electra": ElectraModel}
# copies of other parameters that some releases also contain
_TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
    "generator_lm_head.weight": "electra.embeddings.word_embeddings.weight",
}
# next-sentence prediction, which our BERT does not have
_LEFT_OUT = ("bert.pooler.", "cls.seq_relationship.")
# not parameters but indices
_BUFFERS = r"\w+\.embeddings\.(position_ids|token_type_ids)"


@dataclass
class Imported:
    """The result of an import: the ``fairseq-train`` flags for the model, and what differs from the original."""

    arch: str
    size_flags: list[str]
    parameters: int
    fresh: list[str]
    left_out: list[str]
    cut_positions: int


def import_model(
    folder: Path, data_bin: Path, output: Path, generator: Path | None = None, max_positions: int | None = None
) -> Imported:
    """Write the model in ``folder``, and for ELECTRA the generator in another, as a checkpoint for a data-bin.

    Without a generator, ELECTRA gets a new one on the discriminator's embeddings, the same in every run. Raises
    InputError for a model that is neither BERT nor ELECTRA, has missing or extra tensors, has another vocabulary than
    the data, or has fewer than ``max_positions`` positions.
    """
    check_data_folder(data_bin)
    source = read_folder(folder)
    model_type = source.config.get("model_type")
    if model_type not in MODELS:
        raise InputError(f"{folder / 'config.json'}: a model of type {model_type!r}; import supports bert and electra")
    if generator and model_type == "bert":
        raise InputError(f"--generator {generator}: BERT has no generator; remove the flag")
    sizes = sizes_from_huggingface(source.config, folder / "config.json")
    vocabulary = load_vocabulary(data_bin)
    check_tokenizer(folder, vocabulary, data_bin)

    names = bert_names(sizes) if model_type == "bert" else discriminator_names(sizes)
    left_out = _check_tensors(source, names, len(vocabulary.pieces))
    state = from_huggingface(source.tensors, names, vocabulary.token_ids)
    if generator:
        tower = read_folder(generator)
        sizes |= _generator_sizes(tower, sizes)
        generator_tower_names = generator_names(sizes)
        _check_tensors(tower, generator_tower_names, len(vocabulary.pieces))
        shared = [part for ours in names.keys() & generator_tower_names for part in names[ours]]
        _check_shared(sorted(shared), source, tower)
        names |= generator_tower_names
        state |= from_huggingface(tower.tensors, generator_tower_names, vocabulary.token_ids)
    elif model_type == "electra":
        sizes |= _default_generator(sizes)

    cut_positions = 0
    if max_positions is not None:
        cut_positions = sizes["max_positions"] - max_positions
        if not 0 <= cut_positions < sizes["max_positions"]:
            raise InputError(
                f"--max-positions {max_positions}: must be between 1 and {sizes['max_positions']}, as in {folder}"
            )
        sizes["max_positions"] = max_positions
        positions = "embeddings.position_embeddings.weight"
        state[positions] = state[positions][:max_positions].clone()

    arch, size_flags = architecture(MODELS[model_type], sizes)
    cfg = _training_config(data_bin, arch, size_flags, sizes["max_positions"])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = ARCH_MODEL_REGISTRY[arch](cfg.model, vocabulary.dictionary)
    made = model.state_dict()
    for name, tensor in state.items():
        if tensor.shape != made[name].shape:
            raise InputError(
                f"{folder}: {', '.join(names[name])} has shape {tuple(tensor.shape)}, but config.json "
                f"requires {tuple(made[name].shape)}; download the folder again"
            )
    save_checkpoint(
        {
            "args": None,
            "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True),
            "model": made | state,
            # a run before its first update: it starts at update 0 with or without fairseq's reset options
            "optimizer_history": [
                {"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}
            ],
            "task_state": {},
            "extra_state": {"train_iterator": {"version": 2, "epoch": 1, "iterations_in_epoch": 0, "shuffle": True}},
            "last_optimizer_state": None,
        },
        output,
    )
    fresh = sorted(name for name, _ in model.named_parameters() if name not in state)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return Imported(arch, size_flags, parameters, fresh, left_out, cut_positions)


def architecture(model: type[EncoderModel], sizes: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The registered architecture closest to the given sizes, and flags for the sizes that differ."""

    def flags(arch: str) -> list[str]:
        defaults = MODEL_DATACLASS_REGISTRY[arch]()
        differing = {name: size for name, size in sizes.items() if getattr(defaults, name) != size}
        return [word for name, size in differing.items() for word in (f"--{name.replace('_', '-')}", str(size))]

    archs = [name for name, registered in ARCH_MODEL_REGISTRY.items() if issubclass(registered, model)]
    arch = min(archs, key=lambda name: len(flags(name)))
    return arch, flags(arch)


def _check_tensors(source: PretrainedFolder, names: Names, vocabulary_size: int) -> list[str]:
    """Check that a folder has the required tensors and no others; return the names that the import leaves out."""
    path, tensors = source.path, source.tensors
    wanted = {part for parts in names.values() for part in parts}
    remedy = "save the pre-trained model with save_pretrained"
    missing = sorted(wanted - tensors.keys())
    if missing:
        hint = remedy
        if "generator_lm_head.bias" in tensors:
            hint = "this is a generator: give the folder of the discriminator, and this one as --generator"
        elif "discriminator_predictions.dense.weight" in tensors:
            hint = "this is a discriminator: give it without --generator"
        raise InputError(f"{path}: lacks {_some(missing)}; {hint}")

    left_out, extra = [], []
    for name in sorted(tensors.keys() - wanted):
        if name in _TIED and _TIED[name] in wanted:
            if not torch.equal(tensors[name], tensors[_TIED[name]]):
                raise InputError(f"{path}: {name} is not tied to {_TIED[name]}; import supports only tied models")
        elif name.startswith(_LEFT_OUT):
            left_out.append(name)
        elif not re.fullmatch(_BUFFERS, name):
            extra.append(name)
    if extra:
        raise InputError(f"{path}: also has {_some(extra)}; {remedy}")

    for parts in names.values():
        shapes = {tuple(tensors[part].shape) for part in parts}
        if len(shapes) > 1 or () in shapes:
            raise InputError(f"{path}: {', '.join(parts)} of shape {sorted(shapes)}; download the folder again")

    sizes = {part: len(tensors[part]) for ours, parts in names.items() if has_vocabulary_rows(ours) for part in parts}
    sizes["config.json's vocab_size"] = source.config.get("vocab_size")
    for name, size in sizes.items():
        if size != vocabulary_size:
            raise InputError(
                f"{path}: {name} has {size} entries for {vocabulary_size} pieces; call resize_token_embeddings("
                f"{vocabulary_size}) on the model and save it again"
            )
    return left_out


def _check_shared(names: Iterable[str], discriminator: PretrainedFolder, generator: PretrainedFolder) -> None:
    for name in names:
        if not torch.equal(discriminator.tensors[name], generator.tensors[name]):
            raise InputError(
                f"{generator.path}: {name} differs from the one in {discriminator.path}, but both towers share their "
                "embeddings; give the generator that was trained with this discriminator, or remove --generator"
            )


def _generator_sizes(tower: PretrainedFolder, discriminator: Mapping[str, Any]) -> dict[str, Any]:
    path = tower.path / "config.json"
    if tower.config.get("model_type") != "electra":
        raise InputError(f"{path}: a model of type {tower.config.get('model_type')!r}; --generator must be electra")
    sizes = sizes_from_huggingface(tower.config, path, tower="generator")
    for shared in ("embedding_size", "max_positions"):
        if sizes[shared] != discriminator[shared]:
            raise InputError(
                f"{path}: {shared} is {sizes[shared]}, but {discriminator[shared]} in the discriminator's config.json; "
                "both towers share their embeddings"
            )
    return {name: size for name, size in sizes.items() if name.startswith("generator_")}


def _default_generator(sizes: Mapping[str, Any]) -> dict[str, Any]:
    """The generator of the architecture with this discriminator, or else one as deep and a quarter as wide."""
    for arch, registered in ARCH_MODEL_REGISTRY.items():
        if issubclass(registered, ElectraModel):
            defaults = vars(MODEL_DATACLASS_REGISTRY[arch]())
            same = (name for name in sizes if name.startswith("encoder_") or name == "embedding_size")
            if all(defaults[name] == sizes[name] for name in same):
                return {name: size for name, size in defaults.items() if name.startswith("generator_")}
    heads = max(1, sizes["encoder_attention_heads"] // 4)
    share = heads / sizes["encoder_attention_heads"]
    return {
        "generator_layers": sizes["encoder_layers"],
        "generator_embed_dim": int(sizes["encoder_embed_dim"] * share),
        "generator_attention_heads": heads,
        "generator_ffn_embed_dim": max(1, int(sizes["encoder_ffn_embed_dim"] * share)),
    }


def _training_config(data_bin: Path, arch: str, size_flags: list[str], max_positions: int):
    """The configuration of fairseq for training the model on the data-bin."""
    flags = [as_argument(data_bin), "--task", "electra", "--arch", arch, *size_flags, "--criterion", "electra"]
    flags += ["--optimizer", "electra_adamw", "--tokens-per-sample", str(min(128, max_positions))]
    return training_config(flags)


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more tensors"
