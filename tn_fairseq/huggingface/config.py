"""The sizes of our models and the ``config.json`` of ``transformers``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..modules.transformer_encoder import INIT_STD, LAYER_NORM_EPS, TOKEN_TYPES

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


def size_prefix(tower: str) -> str:
    """What the sizes of a tower start with: those of ELECTRA's discriminator are named like those of BERT's encoder."""
    return "generator" if tower == "generator" else "encoder"


def sizes_from_huggingface(config: Mapping[str, Any], path: Path, tower: str) -> dict[str, Any]:
    """Fields of our models' configuration for one tower, from the ``config.json`` at ``path``.

    The tower is BERT's encoder, or ELECTRA's discriminator or generator. Raises InputError for sizes that are missing
    or not positive, and for options that our encoder does not support.
    """
    for key, expected in _FIXED.items():
        if config.get(key, expected) != expected:
            raise InputError(f"{path}: {key} is {config[key]!r}; import supports only {expected!r}")
    wanted = {f"{size_prefix(tower)}_{ours}": theirs for ours, theirs in _TOWER_SIZES.items()}
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
    config |= {theirs: cfg[f"{size_prefix(tower)}_{ours}"] for ours, theirs in _TOWER_SIZES.items()}
    config |= {theirs: cfg[ours] for ours, theirs in _RATES.items()}
    if config["model_type"] == "electra":
        config["embedding_size"] = cfg["embedding_size"]
    return dict(sorted(config.items()))
