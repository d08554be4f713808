"""Convert between our parameters and those of ``transformers``.

Three things differ: the names; our attention has queries, keys and values in one matrix; and the rows of our word
embeddings are in the order of the dictionary, theirs in the order of the tokenizer. Values are copied bit for bit.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .config import size_prefix

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
# type of model -> the masked-LM head's hidden layer, and its bias for each symbol
_MASKED_LM_HEADS = {
    "bert": ("cls.predictions.transform", "cls.predictions.bias"),
    "electra": ("generator_predictions", "generator_lm_head.bias"),
}


def tower_names(tower: str, model_type: str, sizes: Mapping[str, Any]) -> Names:
    """Names of the embeddings, one tower and its head; ``sizes`` are fields of our models' configuration.

    The tower is the encoder in ``BertForMaskedLM``, or the discriminator in ``ElectraForPreTraining``, or the generator
    in ``ElectraForMaskedLM``.
    """
    return encoder_names(tower, f"{model_type}.", sizes) | head_names(tower, model_type)


def encoder_names(tower: str, prefix: str, sizes: Mapping[str, Any]) -> Names:
    """Names of the embeddings and one tower; all of theirs start with ``prefix``."""
    names = {f"embeddings.{table}.weight": (f"{prefix}embeddings.{table}.weight",) for table in _EMBEDDINGS}
    names |= _module_names("embeddings.layer_norm", f"{prefix}embeddings.LayerNorm")
    hidden_size = sizes[f"{size_prefix(tower)}_embed_dim"]
    if sizes.get("embedding_size", hidden_size) != hidden_size:
        names |= _module_names(f"{tower}.embedding_projection", f"{prefix}embeddings_project")
    for layer in range(sizes[f"{size_prefix(tower)}_layers"]):
        for ours, theirs in _LAYER.items():
            parts = (f"{prefix}encoder.layer.{layer}.{part}" for part in theirs)
            names |= _module_names(f"{tower}.layers.{layer}.{ours}", *parts)
    return names


def head_names(tower: str, model_type: str) -> Names:
    """Names of a tower's head in the pre-trained models of a type, bert or electra."""
    if tower == "discriminator":
        return {
            **_module_names("discriminator_head.dense", "discriminator_predictions.dense"),
            **_module_names("discriminator_head.output", "discriminator_predictions.dense_prediction"),
        }
    ours = "masked_lm_head" if tower == "encoder" else "generator_head"
    theirs, bias = _MASKED_LM_HEADS[model_type]
    return {
        **_module_names(f"{ours}.dense", f"{theirs}.dense"),
        **_module_names(f"{ours}.layer_norm", f"{theirs}.LayerNorm"),
        f"{ours}.bias": (bias,),
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
    return name.endswith(WORD_EMBEDDINGS) or name.endswith("_head.bias")


def _module_names(ours: str, *theirs: str) -> Names:
    return {f"{ours}.{kind}": tuple(f"{part}.{kind}" for part in theirs) for kind in ("weight", "bias")}
