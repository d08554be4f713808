"""Models and tokenizers of ``transformers``, loaded from their folders or by their names."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from ..core.packages import load_with_transformers, require

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_HUB_NAME = r"[\w.-]+(/[\w.-]+)?"


def without_adapters(model: Any) -> Any:
    """The model inside of what PEFT wraps around it; PEFT puts the adapters into its layers."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def masked_lm(model: Any) -> Any:
    """A masked language model of ``transformers``, without what PEFT wraps around it.

    Raises InputError for a model without a head over the vocabulary at each position, and for one that predicts the
    next word.
    """
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    core = without_adapters(model)
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


def load_model(name: str | Path, kind: str = "AutoModel", **options: Any) -> Any:
    """A model of ``transformers``, from its folder or by its name, as ``load_tokenizer``; ``AutoModel`` has no head."""
    return _load(kind, name, "model", **options)


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
