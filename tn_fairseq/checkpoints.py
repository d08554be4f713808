"""fairseq's checkpoint files, read without unpickling code and written whole or not at all."""

import warnings
import zipfile
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from torch import Tensor

from .dictionary import fingerprint
from .errors import InputError
from .files import write_whole

# what the input word embeddings are called: in our models, in fairseq's RoBERTa, and in its older files
_WORD_EMBEDDINGS = (
    "embeddings.word_embeddings.weight",
    "encoder.sentence_encoder.embed_tokens.weight",
    "decoder.sentence_encoder.embed_tokens.weight",
)


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint of fairseq-train with torch's safe loader: a dict that holds at least ``cfg`` and ``model``.

    Tensors are read from the file when they are looked at, so that the optimizer's cost nothing. fairseq's older
    checkpoints, such as the released RoBERTa, get the ``cfg`` that fairseq itself gives them.
    Raises InputError for a file that is missing, damaged, no checkpoint, or holds more than tensors and plain values.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; name a checkpoint of fairseq-train") from None
    except Exception:  # a damaged file fails in many ways, in torch's readers and in zipfile's
        raise InputError(f"{path}: damaged, or no checkpoint; name a checkpoint of fairseq-train") from None
    if isinstance(state, dict) and not state.get("cfg") and isinstance(state.get("args"), Namespace):
        state = _upgrade(state, path)
    if not isinstance(state, dict) or not state.get("cfg") or not isinstance(state.get("model"), dict):
        raise InputError(f"{path}: holds no model with its configuration; name a checkpoint of fairseq-train")
    return state


def _upgrade(state: dict[str, Any], path: str | Path) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return checkpoint_utils._upgrade_state_dict(state)
    except Exception as error:  # it takes for granted what it finds
        raise InputError(f"{path}: a checkpoint that fairseq cannot bring up to date ({error!r})") from None


def word_embeddings(state: Mapping[str, Any]) -> Tensor | None:
    """The input word embeddings (V, E) of a checkpoint of ELECTRA, BERT or fairseq's RoBERTa, None in any other."""
    found = map(state["model"].get, _WORD_EMBEDDINGS)
    return next((tensor for tensor in found if isinstance(tensor, Tensor)), None)


def check_dictionary(path: str | Path, state: Mapping[str, Any], dictionary: Dictionary) -> None:
    """Raises InputError where a checkpoint was trained with another dictionary, as far as it knows its own."""
    embeddings, theirs = word_embeddings(state), state["model"].get("dictionary_fingerprint")
    size = 0 if embeddings is None else len(embeddings)
    # fairseq's RoBERTa has no fingerprint
    if size != len(dictionary) or theirs is not None and bytes(theirs.tolist()).hex() != fingerprint(dictionary):
        raise InputError(
            f"{path}: the model of another dictionary (of {size:,} symbols; yours has {len(dictionary):,}, not the "
            "same); name the dict.txt or the data-bin that it was trained with, or other text of the same tokenizer"
        )


def save_checkpoint(state: dict[str, Any], path: str | Path) -> None:
    """Write a checkpoint that fairseq can read; raises InputError where that is impossible."""
    with write_whole(path) as temporary:
        torch.save(state, temporary)
