"""What is called what: the sizes in ``config.json``, and the names and order of the parameters.

The names of parameters differ; our attention has queries, keys and values in one matrix; and the rows of our word
embeddings are in the order of the dictionary, theirs in that of the tokenizer. Values are copied bit for bit.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.errors import InputError
from ..modules.transformer_encoder import LAYER_NORM_EPS, TOKEN_TYPES

# our name -> their names, concatenated along the first dimension
Names = dict[str, tuple[str, ...]]

# ours, after encoder_ or generator_ -> theirs
_ENCODER_SIZES = {
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
# type of model -> the modules of the masked-LM head; the first has the bias for each symbol
_MASKED_LM_HEADS = {
    "bert": {
        "": "cls.predictions",
        "dense": "cls.predictions.transform.dense",
        "layer_norm": "cls.predictions.transform.LayerNorm",
    },
    "electra": {
        "": "generator_lm_head",
        "dense": "generator_predictions.dense",
        "layer_norm": "generator_predictions.LayerNorm",
    },
}
_NEVER = -10_000.0  # a logit, also in float16
_DETECTION_HEAD = {"dense": "discriminator_predictions.dense", "output": "discriminator_predictions.dense_prediction"}


def sizes_from_huggingface(config: Mapping[str, Any], path: Path, encoder: str) -> dict[str, Any]:
    """Fields of our models' configuration for one encoder, from the ``config.json`` at ``path``.

    The encoder is BERT's encoder, or ELECTRA's discriminator or generator. Raises InputError for sizes that are missing
    or not positive, and for options that our encoder does not support.
    """
    for key, expected in _FIXED.items():
        if config.get(key, expected) != expected:
            raise InputError(f"{path}: {key} is {config[key]!r}; import supports only {expected!r}")
    wanted = {f"{_owner(encoder)}_{ours}": theirs for ours, theirs in _ENCODER_SIZES.items()}
    wanted["max_positions"] = "max_position_embeddings"
    if encoder != "encoder":
        # BERT's embeddings are as wide as its layers
        wanted["embedding_size"] = "embedding_size" if config["model_type"] == "electra" else "hidden_size"
    sizes: dict[str, Any] = {}
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


def huggingface_config(
    cfg: Mapping[str, Any], model_type: str, encoder: str, architecture: str, vocab_size: int, pad_token_id: int
) -> dict[str, Any]:
    """The ``config.json`` for one encoder of a model with our configuration ``cfg``."""
    config = {
        "architectures": [architecture],
        "model_type": model_type,
        "vocab_size": vocab_size,
        "pad_token_id": pad_token_id,
        "max_position_embeddings": cfg["max_positions"],
        "initializer_range": cfg["init_std"],
        "dtype": "float32",
        **_FIXED,
    }
    config |= {theirs: cfg[f"{_owner(encoder)}_{ours}"] for ours, theirs in _ENCODER_SIZES.items()}
    config |= {theirs: cfg[ours] for ours, theirs in _RATES.items()}
    if model_type == "electra":
        own = cfg["generator_embedding_size"] if encoder == "generator" else None  # of a frozen generator
        config["embedding_size"] = own or cfg["embedding_size"]
    return dict(sorted(config.items()))


def encoder_names(
    ours: Collection[str], encoder: str, model_type: str, prefix: str, layers: Sequence[int] | None = None
) -> Names:
    """The names of an encoder, its embeddings and its head among our parameters, with theirs.

    The model type, bert or electra, decides the names of their heads; ``prefix`` starts the names of their encoder, and
    ``layers`` are their numbers of our layers (default: the same).
    """
    embeddings = f"{encoder}_embeddings."  # of a frozen generator
    if not any(name.startswith(embeddings) for name in ours):
        embeddings = "embeddings."
    parts = (embeddings, f"{encoder}.", "masked_lm_head." if encoder == "encoder" else f"{encoder}_head.")
    return {name: _their_names(name, model_type, prefix, layers) for name in ours if name.startswith(parts)}


def _their_names(name: str, model_type: str, prefix: str, layers: Sequence[int] | None) -> tuple[str, ...]:
    module, kind = name.rsplit(".", 1)
    owner, _, inner = module.partition(".")
    if owner.endswith("embeddings"):
        modules = [f"{prefix}embeddings.{inner.replace('layer_norm', 'LayerNorm')}"]
    elif inner == "embedding_projection":
        modules = [f"{prefix}embeddings_project"]
    elif inner.startswith("layers."):
        _, layer, part = inner.split(".", 2)
        number = int(layer) if layers is None else layers[int(layer)]
        modules = [f"{prefix}encoder.layer.{number}.{theirs}" for theirs in _LAYER[part]]
    else:
        modules = [(_DETECTION_HEAD if owner == "discriminator_head" else _MASKED_LM_HEADS[model_type])[inner]]
    return tuple(f"{module}.{kind}" for module in modules)


def to_huggingface(state: Mapping[str, Tensor], names: Names, token_ids: Tensor) -> dict[str, Tensor]:
    """Our parameters with their names, in float32; ``token_ids`` (V) is the token id of each dictionary symbol."""
    theirs: dict[str, Tensor] = {}
    for ours, parts in names.items():
        tensor = state[ours].float()
        if has_vocabulary_rows(ours):
            # a token id without a symbol, which no text has, is never predicted
            filler = _NEVER if ours.endswith("bias") else 0.0
            rows = tensor.new_full((vocabulary_rows(token_ids), *tensor.shape[1:]), filler)
            tensor = rows.index_copy_(0, token_ids, tensor)
        theirs.update(zip(parts, (part.contiguous() for part in tensor.chunk(len(parts)))))
    return theirs


def from_huggingface(tensors: Mapping[str, Tensor], names: Names, token_ids: Tensor) -> dict[str, Tensor]:
    """Their parameters with our names, in float32; the inverse of ``to_huggingface``."""
    ours = {}
    for name, parts in names.items():
        tensor = torch.cat([tensors[part].float() for part in parts])
        ours[name] = tensor[token_ids] if has_vocabulary_rows(name) else tensor
    return ours


def vocabulary_rows(token_ids: Tensor) -> int:
    """How many rows their parameters have, if ``token_ids`` (V) are the token ids of the dictionary's symbols."""
    return int(token_ids.max()) + 1


def has_vocabulary_rows(name: str) -> bool:
    """Whether our parameter with this name has a row for each symbol of the dictionary."""
    return name.endswith(("embeddings.word_embeddings.weight", "_head.bias"))


def _owner(encoder: str) -> str:
    """What the sizes of an encoder start with: those of ELECTRA's discriminator have the names of BERT's encoder."""
    return "generator" if encoder == "generator" else "encoder"
