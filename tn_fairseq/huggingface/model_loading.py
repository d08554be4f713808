"""Models and tokenizers of ``transformers``, loaded from their folders or by their names."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from ..core.packages import load_with_transformers, require

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_HUB_NAME = r"[\w.-]+(/[\w.-]+)?"


def unwrapped(model: Any) -> Any:
    """The model inside of what PEFT, torch.compile, parallel training and averages of weights wrap around it.

    PEFT puts the adapters into the model's layers.
    """
    while True:
        parts = getattr(model, "_modules", {})
        if hasattr(model, "get_base_model"):
            model = model.get_base_model()
        elif "module" in parts or "_orig_mod" in parts:
            model = parts.get("module", parts.get("_orig_mod"))
        else:
            return model


def masked_lm(model: Any) -> Any:
    """A masked language model of ``transformers``, ``unwrapped``.

    Raises InputError for a model without a head over the vocabulary at each position, and for one that predicts the
    next word.
    """
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    core = unwrapped(model)
    names = {kind.__name__ for kind in type(core).__mro__}
    is_masked = bool(names & set(MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()))
    is_causal = bool(names & set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()))
    config = getattr(core, "config", None)
    has_head = getattr(core, "get_output_embeddings", lambda: None)() is not None
    if not has_head or (is_causal and not is_masked) or getattr(config, "is_encoder_decoder", False):
        raise InputError(
            f"{type(core).__name__} is not a masked language model; load it with AutoModelForMaskedLM, or give "
            "JointElectra"
        )
    return core


def load_tokenizer(name: str | Path) -> "PreTrainedTokenizerBase":
    """A tokenizer of ``transformers``, from its folder or by its name on the Hub; runs no code of the folder.

    Raises InputError if it cannot be loaded.
    """
    return _load("AutoTokenizer", name, "tokenizer")


def load_model(name: str | Path, kind: str = "AutoModel") -> Any:
    """A model of ``transformers``, from its folder or by its name, as ``load_tokenizer``; ``AutoModel`` has no head.

    Raises InputError for a folder that lacks some of the weights, other than those of a pooler, or has more of its
    layers or embeddings, other shapes, or values that are NaN or infinite.
    """
    model, info = _load(kind, name, "model", output_loading_info=True, ignore_mismatched_sizes=True)
    more = r"(^|\.)(layers?|embeddings)\.(?!position_ids)"
    faults = {
        "lacks": {key for key in info["missing_keys"] if "pooler." not in key},
        "also has": {key for key in info["unexpected_keys"] if re.search(more, key)},
        "config.json does not have the shape of": {key for key, *_ in info["mismatched_keys"]},
        "has NaN or infinite values in": {key for key, value in model.named_parameters() if not value.isfinite().all()},
    }
    for problem, keys in faults.items():
        if keys:
            raise InputError(
                f"{name}: {problem} {min(keys)}; give a {model.__class__.__name__} that save_pretrained wrote"
            )
    return model


def _load(auto_class: str, name: str | Path, kind: str, **options: Any) -> Any:
    require("transformers", str(name), "transformers")
    if not Path(name).is_dir() and not re.fullmatch(_HUB_NAME, str(name)):
        raise InputError(f"{name}: no such folder; give a {kind} that save_pretrained wrote")
    try:
        return load_with_transformers(auto_class, name, **options)
    except ValueError as error:
        remedy = "give a folder of save_pretrained, or a name on the Hugging Face Hub, for which a network is needed"
        if Path(name, "sentencepiece.model").is_file() and kind == "tokenizer":  # of train-tokenizer
            remedy = "binarize with it, and give --dict DATA_BIN/dict.txt, or give the folder of exchange export"
        raise InputError(f"{name}: no {kind} that transformers can load ({error}); {remedy}") from None
