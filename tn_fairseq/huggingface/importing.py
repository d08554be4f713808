"""Convert folders of ``save_pretrained`` to a checkpoint for ``fairseq-train``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from omegaconf import OmegaConf
from torch import Tensor

from ..checkpoints import save_checkpoint
from ..configuration import as_argument, check_data_folder, training_config
from ..errors import InputError
from ..models.base import EncoderModel, encoder_sizes
from ..models.bert import BertModel
from ..models.electra import ElectraModel
from .conversion import (
    Names,
    embedding_size_key,
    encoder_names,
    from_huggingface,
    has_vocabulary_rows,
    head_names,
    sizes_from_huggingface,
)
from .folder import PretrainedFolder, read_folder, tied_copies
from .vocabulary import Vocabulary, check_tokenizer, load_vocabulary

# start of the names of the other tower's head, and what to do about it
_OF_ANOTHER_TOWER = {
    "discriminator": (
        "generator_",
        "this is a generator: give the folder of the discriminator, and this one as --generator",
    ),
    "generator": ("discriminator_", "this is a discriminator: give it without --generator"),
}


@dataclass
class Imported:
    """A model, the ``fairseq-train`` flags for it, and what differs from the original."""

    model: EncoderModel = field(compare=False)
    arch: str
    size_flags: list[str]
    fresh: list[str]  # our names of the parameters that no folder has
    left_out: dict[Path, list[str]]  # folder -> its tensors that were not imported
    cut_positions: int


def import_model(
    folder: Path,
    data_bin: Path,
    output: Path,
    generator: Path | None = None,
    max_positions: int | None = None,
    as_electra: bool = False,
) -> Imported:
    """Write the model in ``folder``, and for ELECTRA the generator in another, as a checkpoint for a data-bin.

    With ``as_electra``, BERT becomes ELECTRA's discriminator. What no folder has is initialized, the same in every run:
    a head, or a generator on the discriminator's embeddings. Raises InputError for a model that is neither BERT nor
    ELECTRA, lacks tensors of its encoder or has others, has another vocabulary than the data, or has fewer than
    ``max_positions`` positions, and for a generator with other embeddings.
    """
    check_data_folder(data_bin)
    towers = read_towers(folder, generator, as_electra)
    vocabulary = load_vocabulary(data_bin)
    check_tokenizer(folder, vocabulary, data_bin)
    imported = read_model(towers, vocabulary, max_positions)
    flags = [as_argument(data_bin), "--task", "electra", "--arch", imported.arch, *imported.size_flags]
    flags += ["--criterion", "electra", "--optimizer", "electra_adamw"]
    cfg = training_config([*flags, "--tokens-per-sample", min(128, imported.model.cfg.max_positions)])
    # a run before its first update: it starts at update 0 with or without fairseq's reset options
    history = {"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}
    position = {"version": 2, "epoch": 1, "iterations_in_epoch": 0, "shuffle": True}
    state = {
        "args": None,
        "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True),
        "model": imported.model.state_dict(),
        "optimizer_history": [history],
        "task_state": {},
        "extra_state": {"train_iterator": position},
        "last_optimizer_state": None,
    }
    save_checkpoint(state, output)
    return imported


def read_towers(folder: Path, generator: Path | None = None, as_electra: bool = False) -> dict[str, PretrainedFolder]:
    """Tower -> folder: BERT's encoder, or ELECTRA's discriminator and, if there is one, its generator.

    Raises InputError for a folder that cannot be read, and for a generator of BERT.
    """
    source = read_folder(folder)
    is_electra = as_electra or source.model_type == "electra"
    if generator and not is_electra:
        raise InputError(f"--generator {generator}: BERT has no generator; remove the flag, or add --as electra")
    towers = {"discriminator" if is_electra else "encoder": source}
    if generator:
        towers["generator"] = source if generator.resolve() == folder.resolve() else read_folder(generator)
    return towers


def read_model(
    towers: Mapping[str, PretrainedFolder], vocabulary: Vocabulary, max_positions: int | None = None
) -> Imported:
    """The model of the given towers, with rows in the order of the dictionary; errors are those of ``import_model``."""
    folder = next(iter(towers.values())).path
    sizes, names, state = _collect(towers, vocabulary)
    is_electra = "discriminator" in towers
    if is_electra and "generator" not in towers:
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

    arch, size_flags = _architecture(ElectraModel if is_electra else BertModel, sizes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = ARCH_MODEL_REGISTRY[arch](MODEL_DATACLASS_REGISTRY[arch](**sizes), vocabulary.dictionary)
    made = model.state_dict()
    made["trained_positions"].fill_(sizes["max_positions"])
    for name, parts in (item for tower_names in names.values() for item in tower_names.items()):
        tensor = state[name]
        if tensor.shape != made[name].shape:
            owner = towers["generator"].path if name.startswith("generator") else folder
            raise InputError(
                f"{owner}: {', '.join(parts)} has shape {tuple(tensor.shape)}, but config.json "
                f"requires {tuple(made[name].shape)}; download the folder again"
            )
    model.load_state_dict(made | state)
    fresh = sorted(name for name, _ in model.named_parameters() if name not in state)
    left_out = {source.path: set(source.tensors) for source in towers.values()}
    for tower, source in towers.items():
        left_out[source.path] -= {part for parts in names[tower].values() for part in parts}
    left_out = {path: sorted(unused) for path, unused in left_out.items() if unused}
    return Imported(model, arch, size_flags, fresh, left_out, cut_positions)


def _architecture(model: type[EncoderModel], sizes: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The registered architecture closest to the given sizes, and flags for the sizes that differ."""

    def flags(arch: str) -> list[str]:
        defaults = MODEL_DATACLASS_REGISTRY[arch]()
        differing = {name: size for name, size in sizes.items() if getattr(defaults, name) != size}
        return [word for name, size in differing.items() for word in (f"--{name.replace('_', '-')}", str(size))]

    archs = [name for name, registered in ARCH_MODEL_REGISTRY.items() if issubclass(registered, model)]
    arch = min(archs, key=lambda name: len(flags(name)))
    return arch, flags(arch)


def _collect(
    towers: Mapping[str, PretrainedFolder], vocabulary: Vocabulary
) -> tuple[dict[str, Any], dict[str, Names], dict[str, Tensor]]:
    """The fields of the model's configuration, the names of each tower's parameters, and all parameters.

    Raises InputError if a folder does not fit its tower or the vocabulary, or if the towers have different embeddings.
    """
    sizes, names, state = {}, {}, {}
    for tower, source in towers.items():
        tower_sizes = sizes_from_huggingface(source.config, source.path / "config.json", tower)
        if sizes:
            _check_shared_sizes(tower_sizes, sizes, source)
        sizes |= {name: size for name, size in tower_sizes.items() if name not in sizes}
        names[tower] = _find_tensors(source, tower, sizes, len(vocabulary.pieces))
        parameters = from_huggingface(source.tensors, names[tower], vocabulary.token_ids)
        for name in sorted(parameters.keys() & state.keys()):
            if not torch.equal(parameters[name], state[name]):
                raise InputError(
                    f"{source.path}: {names[tower][name][0]} differs from the discriminator's, but both towers share "
                    "their embeddings; give the generator that was trained with this discriminator, or remove "
                    "--generator"
                )
        state |= parameters
    return sizes, names, state


def _check_shared_sizes(
    sizes: Mapping[str, Any], discriminator: Mapping[str, Any], generator: PretrainedFolder
) -> None:
    keys = {"embedding_size": embedding_size_key(generator.config), "max_positions": "max_position_embeddings"}
    for name, key in keys.items():
        if sizes[name] != discriminator[name]:
            width, length = (discriminator[shared] for shared in keys)
            raise InputError(
                f"{generator.path / 'config.json'}: {key} is {sizes[name]}, but {discriminator[name]} in the "
                f"discriminator, and both towers share their embeddings; give a BERT with hidden_size {width} or an "
                f"ELECTRA with embedding_size {width}, and max_position_embeddings {length}, or remove --generator"
            )


def _find_tensors(source: PretrainedFolder, tower: str, sizes: Mapping[str, Any], vocabulary_size: int) -> Names:
    """The names of a tower and its head, without those of the head that the folder lacks.

    Raises InputError for a folder without a part of the encoder, or with other parts, an untied head, or wrong shapes.
    """
    path, tensors = source.path, source.tensors
    start, hint = _OF_ANOTHER_TOWER.get(tower, ((), ""))
    for name in sorted(tensors):
        if name.startswith(start):
            raise InputError(f"{path}: has {name}; {hint}")
    names = encoder_names(tower, source.prefix, sizes)
    wanted = {part for parts in names.values() for part in parts}
    # heads are left out, but an encoder with more parts, such as adapters, computes something else
    inside = (f"{source.prefix}embeddings", f"{source.prefix}encoder.")
    extra = {name for name in tensors.keys() - wanted if name.startswith(inside)}
    for problem, parts in (("lacks", wanted - tensors.keys()), ("also has", extra)):
        if parts:
            some = ", ".join(sorted(parts)[:3]) + f" and {len(parts) - 3} more tensors" * (len(parts) > 3)
            raise InputError(f"{path}: {problem} {some}; save the pre-trained model with save_pretrained")
    for copy, original in tied_copies(source.prefix).items():
        if copy in tensors and tower != "discriminator":
            raise InputError(f"{path}: {copy} is not tied to {original}; import supports only tied models")
    head = head_names(tower, source.model_type)
    names |= {ours: parts for ours, parts in head.items() if tensors.keys() >= set(parts)}

    rows = {}
    for ours, parts in names.items():
        shapes = {tuple(tensors[part].shape) for part in parts}
        if len(shapes) > 1 or () in shapes:
            raise InputError(f"{path}: {', '.join(parts)} of shape {sorted(shapes)}; download the folder again")
        for part in parts:
            if not tensors[part].is_floating_point():
                kind = str(tensors[part].dtype).removeprefix("torch.")
                raise InputError(f"{path}: {part} is {kind}, not floating point; give the model before quantization")
            if has_vocabulary_rows(ours):
                rows[part] = len(tensors[part])
    rows["config.json's vocab_size"] = source.config.get("vocab_size")
    for name, size in rows.items():
        if size != vocabulary_size:
            raise InputError(
                f"{path}: {name} has {size} entries for {vocabulary_size} pieces; call resize_token_embeddings("
                f"{vocabulary_size}) on the model and save it again"
            )
    return names


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
    hidden_size, ffn_size = (int(sizes[f"encoder_{name}"] * share) for name in ("embed_dim", "ffn_embed_dim"))
    return encoder_sizes("generator", sizes["encoder_layers"], hidden_size, heads, max(1, ffn_size))
