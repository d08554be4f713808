"""Start a smaller model with some of the layers of a larger one, as DistilBERT does (Sanh et al. 2019)."""

import shlex
from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ..core.errors import InputError
from .model_loading import unwrapped

if TYPE_CHECKING:
    from transformers import PreTrainedModel


OTHERS = "give a BERT, RoBERTa, ELECTRA or DeBERTa"


def find_layers(layers: Sequence[int | str], total: int, option: str, owner: object) -> list[int]:
    """The given ones of ``total`` layers as numbers, which may be text, as on a command line.

    Raises InputError that starts with the option's name if they are not increasing numbers of layers of the owner.
    """
    wanted = [str(layer).strip() for layer in layers]
    numbers = [layer for layer in range(total) if str(layer) in wanted]
    if not numbers or list(map(str, numbers)) != wanted:
        raise InputError(
            f"{option} {shlex.quote(','.join(wanted))}: must be different numbers from 0 to {total - 1} in increasing "
            f"order, because {owner} has {total} layer{'s' * (total > 1)}"
        )
    return numbers


def keep_layers(model: "PreTrainedModel", layers: Sequence[int]) -> "PreTrainedModel":
    """A copy of a model of ``transformers`` with only these layers of its encoder, in increasing order; 0 is the first.

    Everything else is kept, heads included. Raises InputError for layers that the model does not have, and for a model
    whose layers are not in ``base_model.encoder.layer``, as those of BERT, RoBERTa, ELECTRA and DeBERTa are, or that
    could not be loaded again: one with a part that depends on the number of layers, or with adapters.
    """
    model = unwrapped(model)
    kind = type(model).__name__
    if isinstance(layers, str):
        raise InputError(f"layers {layers!r}: must be a list of numbers, such as [0, 3]")
    if not isinstance(_layers(model), nn.ModuleList):
        raise InputError(f"{kind}: has no base_model.encoder.layer; {OTHERS}")
    total = len(_layers(model))
    for name, value in model.config.to_dict().items():
        is_list = isinstance(value, (list, tuple)) and name != "pos_att_type"  # of DeBERTa: kinds of attention
        if is_list and len(value) == total > 1:  # such as Longformer's attention_window
            raise InputError(f"{kind}: has {name} for each layer; {OTHERS}")
    kept = find_layers(layers, total, "layers", kind)
    smaller = deepcopy(model)
    smaller.base_model.encoder.layer = nn.ModuleList(_layers(smaller)[layer] for layer in kept)
    smaller.config.num_hidden_layers = len(kept)
    for number, layer in enumerate(_layers(smaller)):
        for module in layer.modules():
            if hasattr(module, "layer_idx"):  # the layer's place in a cache of keys and values
                module.layer_idx = number
    with torch.device("meta"):
        loaded = type(model)(smaller.config).state_dict()
    for name, tensor in smaller.state_dict().items():
        if name not in loaded or loaded[name].shape != tensor.shape:
            raise InputError(f"{kind}: could not be loaded again with these layers, because of {name}; {OTHERS}")
    return smaller


def _layers(model: object) -> Any:
    encoder = getattr(getattr(model, "base_model", None), "encoder", None)
    return getattr(encoder, "layer", None)
