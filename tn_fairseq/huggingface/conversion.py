"""What is called what: the sizes in ``config.json``, and the names and order of the parameters.

The names of parameters differ; our attention has queries, keys and values in one matrix; and the rows of our word
embeddings are in the order of the dictionary, theirs in that of the tokenizer. Values are copied bit for bit.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from ..modules.transformer_encoder import INIT_STD, LAYER_NORM_EPS, TOKEN_TYPES

# our name -> their names, concatenated along the first dimension
Names = dict[str, tuple[str, ...]]

# ours, after encoder_ or generator_ -> theirs
_TOWER_SIZES = {
    "layers": "num_hidden_layers",
    "embed_dim": "hidden_size",
    "attention_heads": "num_attention_heads",
    "ffn_embed_dim": "intermediate_size",
}
_RATES = {"dropout": "hidden_dropout_prob", "attention_dropout": "attention_probs_dropout_prob"}
# fixed in our encoder; a model with other values would silently give other results
_FIXED = {
    "hidden_act": "gelu",
    "layer_norm_eps": LAYER_NORM_EPS,
    "type_vocab_size": TOKEN_TYPES,
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
_LAYER = {
    "attention.output": ("attention.output.dense",),
    "attention.query_key_value": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention_layer_norm": ("attention.output.LayerNorm",),
    "ffn_in": ("intermediate.dense",),
    "ffn_out": ("output.dense",),
    "ffn_layer_norm": ("output.LayerNorm",),
}
# type of model -> the masked-LM head's hidden layer, and its bias for each symbol
_MASKED_LM_HEADS = {
    "bert": ("cls.predictions.transform", "cls.predictions.bias"),
    "electra": ("generator_predictions", "generator_lm_head.bias"),
}


def sizes_from_huggingface(config: Mapping[str, Any], path: Path, tower: str) -> dict[str, Any]:
    """Fields of our models' configuration for one tower, from the ``config.json`` at ``path``.

    The tower is BERT's encoder, or ELECTRA's discriminator or generator. Raises InputError for sizes that are missing
    or not positive, and for options that our encoder does not support.
    """
    for key, expected in _FIXED.items():
        if config.get(key, expected) != expected:
            raise InputError(f"{path}: {key} is {config[key]!r}; import supports only {expected!r}")
    wanted = {f"{_owner(tower)}_{ours}": theirs for ours, theirs in _TOWER_SIZES.items()}
    wanted["max_positions"] = "max_position_embeddings"
    if tower != "encoder":
        wanted["embedding_size"] = embedding_size_key(config)
    sizes = {}
    for ours, theirs in wanted.items():
        size = config.get(theirs)
        if type(size) is not int or size < 1:
            raise InputError(f"{path}: {theirs} {size!r} must be a positive integer; download the file again")
        sizes[ours] = size
    heads, size = config["num_attention_heads"], config["hidden_size"]
    if size % heads:
        raise InputError(f"{path}: hidden_size {size} must be a multiple of num_attention_heads {heads}; fix the file")
    for ours, theirs in _RATES.items():
        rate = config.get(theirs, 0.1)
        if not isinstance(rate, (int, float)) or not 0 <= rate < 1:
            raise InputError(f"{path}: {theirs} {rate!r} must be at least 0 and below 1; download the file again")
        sizes[ours] = float(rate)
    return sizes


def embedding_size_key(config: Mapping[str, Any]) -> str:
    """The size of the embeddings in a ``config.json``: BERT's are as wide as its layers."""
    return "embedding_size" if config["model_type"] == "electra" else "hidden_size"


def huggingface_config(
    cfg: Mapping[str, Any], architecture: str, tower: str, vocab_size: int, pad_token_id: int
) -> dict[str, Any]:
    """The ``config.json`` for one tower of a model with our configuration ``cfg``."""
    config = {
        "architectures": [architecture],
        "model_type": "bert" if architecture.startswith("Bert") else "electra",
        "vocab_size": vocab_size,
        "pad_token_id": pad_token_id,
        "max_position_embeddings": cfg["max_positions"],
        "initializer_range": cfg.get("init_std", INIT_STD),  # missing in older checkpoints
        "dtype": "float32",
        **_FIXED,
    }
    config |= {theirs: cfg[f"{_owner(tower)}_{ours}"] for ours, theirs in _TOWER_SIZES.items()}
    config |= {theirs: cfg[ours] for ours, theirs in _RATES.items()}
    if config["model_type"] == "electra":
        config["embedding_size"] = cfg["embedding_size"]
    return dict(sorted(config.items()))


def encoder_names(tower: str, prefix: str, sizes: Mapping[str, Any]) -> Names:
    """Names of the embeddings and one tower with these fields of our configuration; theirs start with ``prefix``."""
    names = {}
    for table in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        names[f"embeddings.{table}.weight"] = (f"{prefix}embeddings.{table}.weight",)
    names |= _module_names("embeddings.layer_norm", f"{prefix}embeddings.LayerNorm")
    hidden_size = sizes[f"{_owner(tower)}_embed_dim"]
    if sizes.get("embedding_size", hidden_size) != hidden_size:
        names |= _module_names(f"{tower}.embedding_projection", f"{prefix}embeddings_project")
    for layer in range(sizes[f"{_owner(tower)}_layers"]):
        for ours, theirs in _LAYER.items():
            parts = (f"{prefix}encoder.layer.{layer}.{part}" for part in theirs)
            names |= _module_names(f"{tower}.layers.{layer}.{ours}", *parts)
    return names


def head_names(tower: str, model_type: str) -> Names:
    """Names of a tower's head in the pre-trained models of a type, bert or electra."""
    if tower == "discriminator":
        theirs = "discriminator_predictions.dense"
        return _module_names(f"{tower}_head.dense", theirs) | _module_names(
            f"{tower}_head.output", f"{theirs}_prediction"
        )
    ours = "masked_lm_head" if tower == "encoder" else "generator_head"
    theirs, bias = _MASKED_LM_HEADS[model_type]
    names = _module_names(f"{ours}.dense", f"{theirs}.dense")
    return names | _module_names(f"{ours}.layer_norm", f"{theirs}.LayerNorm") | {f"{ours}.bias": (bias,)}


def to_huggingface(state: Mapping[str, Tensor], names: Names, token_ids: Tensor) -> dict[str, Tensor]:
    """Our parameters with their names, in float32; ``token_ids`` (V) is the token id of each dictionary symbol."""
    theirs = {}
    for ours, parts in names.items():
        tensor = state[ours].float()
        if has_vocabulary_rows(ours):
            tensor = torch.empty_like(tensor).index_copy_(0, token_ids, tensor)
        theirs.update(zip(parts, (part.contiguous() for part in tensor.chunk(len(parts)))))
    return theirs


def from_huggingface(tensors: Mapping[str, Tensor], names: Names, token_ids: Tensor) -> dict[str, Tensor]:
    """Their parameters with our names, in float32; the inverse of ``to_huggingface``."""
    ours = {}
    for name, parts in names.items():
        tensor = torch.cat([tensors[part].float() for part in parts])
        ours[name] = tensor[token_ids] if has_vocabulary_rows(name) else tensor
    return ours


def has_vocabulary_rows(name: str) -> bool:
    """Whether our parameter with this name has a row for each symbol of the dictionary."""
    return name.endswith(("embeddings.word_embeddings.weight", "_head.bias"))


def _owner(tower: str) -> str:
    """What the sizes of a tower start with: those of ELECTRA's discriminator are named like those of BERT's encoder."""
    return "generator" if tower == "generator" else "encoder"


def _module_names(ours: str, *theirs: str) -> Names:
    return {f"{ours}.{kind}": tuple(f"{part}.{kind}" for part in theirs) for kind in ("weight", "bias")}
