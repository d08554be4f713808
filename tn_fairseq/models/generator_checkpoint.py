"""ELECTRA with an existing generator: ``--generator-checkpoint``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fairseq.data import Dictionary
from fairseq.models import ARCH_MODEL_REGISTRY
from torch import Tensor

from ..checkpoints import check_dictionary, load_checkpoint, registered_name
from ..errors import InputError
from .bert import BertModel
from .electra import ElectraModel

_POSITIONS = "position_embeddings.weight"
_SIZES = ("layers", "embed_dim", "attention_heads", "ffn_embed_dim")


class _Generator(NamedTuple):
    """A masked language model in a checkpoint."""

    sizes: dict[str, int]  # fields of ELECTRA's configuration
    embeddings: dict[str, Tensor]  # parameters of each part
    encoder: dict[str, Tensor]
    head: dict[str, Tensor]


def load_generator(model: ElectraModel, path: str | Path, dictionary: Dictionary) -> None:
    """Copy the weights of ELECTRA's generator, or of BERT, from a checkpoint to the generator and its embeddings.

    If the checkpoint has more positions than the model, the first ones are copied. Raises InputError for a checkpoint
    of another kind of model, without a masked-LM head, with another dictionary, or with sizes that do not fit.
    """
    path = Path(path)
    state = load_checkpoint(path)
    generator = _read_generator(path, state)
    check_dictionary(path, state, dictionary)
    _check_sizes(path, generator.sizes, model)
    generator.embeddings[_POSITIONS] = generator.embeddings[_POSITIONS][: model.cfg.max_positions]
    modules = model.embeddings_of(model.generator), model.generator, model.generator_head
    try:
        for module, parameters in zip(modules, generator[1:], strict=True):
            module.load_state_dict(parameters)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(f"{path}: its parameters do not match its configuration ({reason})") from None


def _read_generator(path: Path, state: Mapping[str, Any]) -> _Generator:
    """Raises InputError if the checkpoint is neither ELECTRA nor BERT, or is fine-tuned."""
    cfg, parameters = state["cfg"]["model"], state["model"]
    arch = registered_name(cfg, "arch")
    model_class = ARCH_MODEL_REGISTRY.get(arch, object)
    if issubclass(model_class, ElectraModel):
        parts, prefix = ["embeddings", "generator", "generator_head"], "generator"
        if cfg.get("freeze_generator"):
            parts[0] = "generator_embeddings"
    elif issubclass(model_class, BertModel):
        parts, prefix = ["embeddings", "encoder", "masked_lm_head"], "encoder"
    else:
        raise InputError(f"{path}: holds {arch}; give an electra_* or bert_* model")
    found = [
        {name.removeprefix(f"{part}."): tensor for name, tensor in parameters.items() if name.startswith(f"{part}.")}
        for part in parts
    ]
    for part, tensors in zip(parts, found):
        if not tensors:
            raise InputError(f"{path}: has no {part}; give a checkpoint of pre-training")
    sizes = {f"generator_{size}": cfg[f"{prefix}_{size}"] for size in _SIZES}
    sizes["embedding_size"] = found[0]["word_embeddings.weight"].size(1)
    sizes["max_positions"] = found[0][_POSITIONS].size(0)
    return _Generator(sizes, *found)


def _check_sizes(path: Path, sizes: Mapping[str, int], model: ElectraModel) -> None:
    """Raises InputError with the flags that fit, if these sizes are not those of the model's generator."""
    cfg = model.cfg
    own = {name: getattr(cfg, name) for name in sizes}
    own["embedding_size"] = cfg.generator_embedding_size or cfg.embedding_size
    usable = {**sizes, "max_positions": min(sizes["max_positions"], cfg.max_positions)}
    flags = {name: f"--{name.replace('_', '-')}" for name in sizes}
    if cfg.freeze_generator:
        flags["embedding_size"] = "--generator-embedding-size"
    fitting = [f"{flags[name]} {size}" for name, size in usable.items() if size != own[name]]
    if fitting:
        raise InputError(f"{path}: its generator has other sizes; give {' '.join(fitting)}")
