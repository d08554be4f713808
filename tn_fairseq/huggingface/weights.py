"""Convert between our parameters and those of ``transformers``.

Three things differ: the names; our attention has queries, keys and values in one matrix; and the rows of our word
embeddings are in the order of the dictionary, theirs in the order of the tokenizer. Values are copied bit for bit.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

# our name -> their names, concatenated along the first dimension
Names = dict[str, tuple[str, ...]]

WORD_EMBEDDINGS = "embeddings.word_embeddings.weight"
_EMBEDDINGS = ("word_embeddings", "position_embeddings", "token_type_embeddings")
_LAYER = {
    "attention.output": ("attention.output.dense",),
    "attention.query_key_value": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention_layer_norm": ("attention.output.LayerNorm",),
    "ffn_in": ("intermediate.dense",),
    "ffn_out": ("output.dense",),
    "ffn_layer_norm": ("output.LayerNorm",),
}


def bert_names(sizes: Mapping[str, Any]) -> Names:
    """Names of BERT's parameters in ``BertForMaskedLM``; ``sizes`` are fields of our models' configuration."""
    return {
        **_embedding_names("bert"),
        **_tower_names("encoder", "bert", sizes["encoder_layers"], projected=False),
        **_module_names("masked_lm_head.dense", "cls.predictions.transform.dense"),
        **_module_names("masked_lm_head.layer_norm", "cls.predictions.transform.LayerNorm"),
        "masked_lm_head.bias": ("cls.predictions.bias",),
    }


def generator_names(sizes: Mapping[str, Any]) -> Names:
    """Names of ELECTRA's embeddings and generator in ``ElectraForMaskedLM``."""
    projected = sizes["embedding_size"] != sizes["generator_embed_dim"]
    return {
        **_embedding_names("electra"),
        **_tower_names("generator", "electra", sizes["generator_layers"], projected),
        **_module_names("generator_head.dense", "generator_predictions.dense"),
        **_module_names("generator_head.layer_norm", "generator_predictions.LayerNorm"),
        "generator_head.bias": ("generator_lm_head.bias",),
    }


def discriminator_names(sizes: Mapping[str, Any]) -> Names:
    """Names of ELECTRA's embeddings and discriminator in ``ElectraForPreTraining``."""
    projected = sizes["embedding_size"] != sizes["encoder_embed_dim"]
    return {
        **_embedding_names("electra"),
        **_tower_names("discriminator", "electra", sizes["encoder_layers"], projected),
        **_module_names("discriminator_head.dense", "discriminator_predictions.dense"),
        **_module_names("discriminator_head.output", "discriminator_predictions.dense_prediction"),
    }


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
    return name == WORD_EMBEDDINGS or name.endswith("_head.bias")


def _module_names(ours: str, *theirs: str) -> Names:
    return {f"{ours}.{kind}": tuple(f"{part}.{kind}" for part in theirs) for kind in ("weight", "bias")}


def _embedding_names(prefix: str) -> Names:
    names = {f"embeddings.{table}.weight": (f"{prefix}.embeddings.{table}.weight",) for table in _EMBEDDINGS}
    return names | _module_names("embeddings.layer_norm", f"{prefix}.embeddings.LayerNorm")


def _tower_names(tower: str, prefix: str, layers: int, projected: bool) -> Names:
    names: Names = {}
    if projected:
        names |= _module_names(f"{tower}.embedding_projection", f"{prefix}.embeddings_project")
    for layer in range(layers):
        for ours, theirs in _LAYER.items():
            parts = (f"{prefix}.encoder.layer.{layer}.{part}" for part in theirs)
            names |= _module_names(f"{tower}.layers.{layer}.{ours}", *parts)
    return names
