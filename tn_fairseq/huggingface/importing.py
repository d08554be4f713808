"""Convert folders of ``save_pretrained`` to a checkpoint for ``fairseq-train``."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from omegaconf import OmegaConf
from torch import Tensor

from ..core.checkpoints import save_checkpoint
from ..core.configuration import as_argument, check_data_folder, training_config
from ..core.errors import InputError
from ..models.base import EncoderModel, encoder_sizes
from ..models.bert import BertModel
from ..models.electra import ElectraModel
from ..tokenizers.base import Tokenizer
from .conversion import (
    Names,
    encoder_names,
    from_huggingface,
    has_vocabulary_rows,
    sizes_from_huggingface,
    vocabulary_rows,
)
from .folder import PretrainedFolder, read_folder, tied_copies
from .layers import find_layers
from .vocabulary_files import check_tokenizer, read_data_bin

_POSITIONS = "embeddings.position_embeddings.weight"
_NOT_SHARED = (
    "but both encoders share their embeddings; give the generator that was trained with this discriminator (not with "
    "--freeze-generator, which keeps embeddings of its own), or remove --generator"
)


@dataclass
class Imported:
    """A model, the ``fairseq-train`` flags for it, and what differs from the original."""

    model: EncoderModel
    arch: str
    flags: list[str]
    fresh: list[str]  # our names of the parameters that no folder has
    left_out: dict[Path, list[str]]  # folder -> its tensors that were not imported
    cut_rows: dict[Path, int]  # folder -> its rows of the vocabulary, after those of tokens, that were not imported
    cut_positions: int
    cut_layers: int
    gaps: int  # token ids without a piece, whose rows were not imported


def import_model(
    folder: Path,
    data_bin: Path,
    output: Path,
    generator: Path | None = None,
    max_positions: int | None = None,
    as_electra: bool = False,
    new_symbols: bool = False,
    keep_layers: Sequence[int | str] | None = None,
) -> Imported:
    """Write the model in ``folder``, and for ELECTRA the generator in another, as a checkpoint for a data-bin.

    With ``as_electra``, BERT becomes ELECTRA's discriminator. With ``new_symbols``, symbols of the data that the model
    lacks get new rows (see ``add_rows``). With ``keep_layers``, BERT or the discriminator keeps these layers only.
    What no folder has is initialized, the same in every run: a head, or a generator on the discriminator's embeddings.
    Raises InputError for a model that is neither BERT nor ELECTRA, lacks tensors of its encoder or has others, has
    another vocabulary than the data, or has fewer than ``max_positions`` positions or not these layers, and for a
    generator with other embeddings.
    """
    check_data_folder(data_bin)
    encoders = read_encoders(folder, generator, as_electra)
    _sizes(encoders)  # before AutoTokenizer, which also reads config.json, and says less about what is wrong
    dictionary, tokenizer = read_data_bin(data_bin)
    check_tokenizer(folder, dictionary, tokenizer, data_bin, new_symbols)
    cut: dict[Path, int] = {}
    if new_symbols:
        for source in {source.path: source for source in encoders.values()}.values():
            cut[source.path] = cut_rows(source, len(tokenizer.pieces))
            add_rows(source, vocabulary_rows(torch.from_numpy(tokenizer.token_ids(dictionary))))
    if keep_layers is not None:
        encoder, source = next(iter(encoders.items()))
        encoders[encoder] = choose_layers(source, keep_layers)
    imported = read_model(encoders, dictionary, tokenizer, max_positions)
    imported.cut_rows.update(cut)
    flags = ["--criterion", "electra", "--optimizer", "electra_adamw"]
    flags += ["--tokens-per-sample", str(min(128, imported.model.cfg.max_positions))]
    cfg = training_config([as_argument(data_bin), *imported.flags, *flags])
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


def read_encoders(folder: Path, generator: Path | None = None, as_electra: bool = False) -> dict[str, PretrainedFolder]:
    """Encoder -> folder: BERT's encoder, or ELECTRA's discriminator and, if there is one, its generator.

    Raises InputError for a folder that cannot be read, and for a generator of BERT.
    """
    source = read_folder(folder)
    is_electra = as_electra or source.model_type == "electra"
    if generator and not is_electra:
        raise InputError(f"--generator {generator}: BERT has no generator; remove the flag, or add --as electra")
    encoders = {"discriminator" if is_electra else "encoder": source}
    if generator:
        encoders["generator"] = source if generator.resolve() == folder.resolve() else read_folder(generator)
    return encoders


def cut_rows(source: PretrainedFolder, size: int) -> int:
    """Leave at most ``size`` rows in the folder's tensors with a row for each token; return how many were removed.

    The others belong to no token: some models pad their embeddings to a multiple of 64.
    """
    removed = 0
    for name in _tensors_of_vocabulary(source):
        removed = max(removed, len(source.tensors[name]) - size)
        source.tensors[name] = source.tensors[name][:size]
    return removed


def add_rows(source: PretrainedFolder, size: int) -> None:
    """Give the folder's tensors with a row for each token ``size`` rows.

    New rows are drawn, the same in every run, from normal distributions with the mean and the standard deviation of the
    others in each column. New biases are the mean of the others.
    """
    generator = torch.Generator().manual_seed(1)
    for name in _tensors_of_vocabulary(source):
        rows = source.tensors[name].float()
        noise = torch.randn(size - len(rows), *rows.shape[1:], generator=generator)
        spread = rows.std(dim=0) if rows.dim() > 1 else torch.zeros(())
        source.tensors[name] = torch.cat([rows, rows.mean(dim=0) + spread * noise])


def _tensors_of_vocabulary(source: PretrainedFolder) -> list[str]:
    """The names of the tensors with a row for each token."""
    ends = ("embeddings.word_embeddings.weight", "predictions.bias", "lm_head.bias")
    return [name for name, tensor in source.tensors.items() if name.endswith(ends) and tensor.dim() > 0]


def choose_layers(source: PretrainedFolder, layers: Sequence[int | str]) -> PretrainedFolder:
    """The folder with only these layers of its encoder; what ``find_layers`` refuses raises InputError."""
    total = sizes_from_huggingface(source.config, source.path / "config.json", "encoder")["encoder_layers"]
    kept = find_layers(layers, total, "--keep-layers", source.path)
    # those of layers that config.json does not have stay, to be refused
    cut = tuple(f"{source.prefix}encoder.layer.{layer}." for layer in range(total) if layer not in kept)
    tensors = {name: tensor for name, tensor in source.tensors.items() if not name.startswith(cut)}
    return source._replace(tensors=tensors, layers=kept)


def read_model(
    encoders: Mapping[str, PretrainedFolder],
    dictionary: Dictionary,
    tokenizer: Tokenizer,
    max_positions: int | None = None,
) -> Imported:
    """The model of these encoders, with rows in the order of the dictionary; errors are those of ``import_model``."""
    sizes, first = _sizes(encoders), next(iter(encoders.values()))
    available = sizes["max_positions"]
    if max_positions is not None:
        if not 1 <= max_positions <= available:
            raise InputError(f"--max-positions {max_positions}: must be between 1 and {available}, as in {first.path}")
        sizes["max_positions"] = max_positions
    arch, differing = _architecture(encoders, sizes)
    is_alone = "discriminator" in encoders and "generator" not in encoders
    if is_alone and any(name.startswith(("encoder_", "embedding_")) for name in differing):
        # the architecture's generator belongs to another discriminator
        sizes |= _quarter(sizes)
        arch, differing = _architecture(encoders, sizes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = ARCH_MODEL_REGISTRY[arch](MODEL_DATACLASS_REGISTRY[arch](**sizes), dictionary)

    made = model.state_dict()
    made["trained_positions"].fill_(sizes["max_positions"])
    token_ids = torch.from_numpy(tokenizer.token_ids(dictionary))
    rows = vocabulary_rows(token_ids)
    shapes = {
        name: torch.Size([rows, *tensor.shape[1:]]) if has_vocabulary_rows(name) else tensor.shape
        for name, tensor in made.items()
    }
    shapes[_POSITIONS] = torch.Size([available, shapes[_POSITIONS][1]])
    state: dict[str, Tensor] = {}
    left_out: dict[Path, set[str]] = {}
    cut: dict[Path, int] = {}
    for encoder, source in encoders.items():
        cut[source.path] = cut.get(source.path, 0) + cut_rows(source, rows)
        names = _find_tensors(source, encoder, shapes)
        parameters = from_huggingface(source.tensors, names, token_ids)
        for name in sorted(parameters.keys() & state.keys()):
            if not torch.equal(parameters[name], state[name]):
                raise InputError(f"{source.path}: {names[name][0]} differs from the discriminator's, {_NOT_SHARED}")
        state |= parameters
        unused = left_out.get(source.path, set(source.tensors))
        left_out[source.path] = unused.difference(*names.values())
    state[_POSITIONS] = state[_POSITIONS][: sizes["max_positions"]]
    model.load_state_dict(made | state)
    size_flags = [word for name, size in differing.items() for word in (f"--{name.replace('_', '-')}", str(size))]
    return Imported(
        model,
        arch,
        ["--task", "electra", "--arch", arch, *size_flags],
        sorted(name for name, _ in model.named_parameters() if name not in state),
        {path: sorted(unused) for path, unused in left_out.items() if unused},
        cut,
        available - sizes["max_positions"],
        first.config["num_hidden_layers"] - sizes["encoder_layers"],
        rows - len(dictionary),
    )


def _sizes(encoders: Mapping[str, PretrainedFolder]) -> dict[str, Any]:
    """The fields of the model's configuration; raises InputError if the encoders cannot share their embeddings."""
    sizes: dict[str, Any] = {}
    for encoder, source in encoders.items():
        path, config = source.path / "config.json", source.config
        if source.layers is not None:
            config = {**config, "num_hidden_layers": len(source.layers)}
        for name, size in sizes_from_huggingface(config, path, encoder).items():
            if sizes.setdefault(name, size) != size and name in ("embedding_size", "max_positions"):
                described = name.replace("_", " ")
                raise InputError(f"{path}: {described} {size}, but {sizes[name]} in the discriminator, {_NOT_SHARED}")
    return sizes


def _architecture(encoders: Collection[str], sizes: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The registered architecture closest to the given sizes, and the sizes that differ."""

    def differing(arch: str) -> dict[str, Any]:
        defaults = MODEL_DATACLASS_REGISTRY[arch]()
        return {name: size for name, size in sizes.items() if getattr(defaults, name) != size}

    kind = ElectraModel if "discriminator" in encoders else BertModel
    archs = [name for name, registered in ARCH_MODEL_REGISTRY.items() if issubclass(registered, kind)]
    arch = min(archs, key=lambda name: len(differing(name)))
    return arch, differing(arch)


def _quarter(sizes: Mapping[str, Any]) -> dict[str, int]:
    """A generator as deep as the discriminator and a quarter as wide."""
    heads = max(1, sizes["encoder_attention_heads"] // 4)
    share = heads / sizes["encoder_attention_heads"]
    hidden_size, ffn_size = (int(sizes[f"encoder_{name}"] * share) for name in ("embed_dim", "ffn_embed_dim"))
    return encoder_sizes("generator", sizes["encoder_layers"], hidden_size, heads, max(1, ffn_size))


def _find_tensors(source: PretrainedFolder, encoder: str, shapes: Mapping[str, torch.Size]) -> Names:
    """The names of an encoder and its head, without those of the head that the folder lacks.

    Raises InputError for a folder without a part of the encoder, or with other parts, an untied head, other shapes, or
    values that are quantized, NaN or infinite.
    """
    path, tensors = source.path, source.tensors
    other = {"discriminator": "generator", "generator": "discriminator"}.get(encoder)
    if other and (other_names := sorted(name for name in tensors if name.startswith(f"{other}_"))):
        raise InputError(
            f"{path}: is ELECTRA's {other}, because it has {other_names[0]}; give the folder of the discriminator, and "
            "that of the generator with --generator"
        )
    names = encoder_names(shapes, encoder, source.model_type, source.prefix, source.layers)
    wanted = {part for name, parts in names.items() if "_head." not in name for part in parts}
    # heads are left out, but an encoder with more parts, such as adapters, computes something else
    inside = (f"{source.prefix}embeddings", f"{source.prefix}encoder.")
    extra = {name for name in tensors.keys() - wanted if name.startswith(inside)}
    for problem, affected in (("lacks", wanted - tensors.keys()), ("also has", extra)):
        if affected:
            some = ", ".join(sorted(affected)[:3]) + f" and {len(affected) - 3} more tensors" * (len(affected) > 3)
            raise InputError(f"{path}: {problem} {some}; save the pre-trained model with save_pretrained")
    for copy, original in tied_copies(source.prefix).items():
        if copy in tensors and encoder != "discriminator":
            raise InputError(f"{path}: {copy} is not tied to {original}; import supports only tied models")
    names = {ours: parts for ours, parts in names.items() if tensors.keys() >= set(parts)}

    for ours, parts in names.items():
        rows, *columns = shapes[ours]
        for part in parts:
            tensor, shape = tensors[part], (rows // len(parts), *columns)
            if not tensor.is_floating_point():
                kind = str(tensor.dtype).removeprefix("torch.")
                raise InputError(f"{path}: {part} is {kind}, not floating point; give the model before quantization")
            if tensor.shape != shape:
                remedy = "download the folder again"
                if has_vocabulary_rows(ours) and tensor.shape[1:] == shape[1:]:
                    remedy = f"call resize_token_embeddings({rows}) on the model and save it again"
                problem = f"{part} has shape {tuple(tensor.shape)}, but the tokenizer and config.json require {shape}"
                raise InputError(f"{path}: {problem}; {remedy}")
            if not tensor.float().isfinite().all():
                raise InputError(f"{path}: {part} has values that are NaN or infinite; give a model without them")
    return names
