"""fairseq's checkpoint files, read without unpickling code and written completely or not at all."""

import os
import pickle
import re
import warnings
import zipfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .dictionary import Symbols, fingerprint
from .errors import InputError
from .files import write_atomically

# the name of the input word embeddings in our models, in fairseq's RoBERTa, and in older RoBERTa checkpoints
_WORD_EMBEDDINGS = (
    "embeddings.word_embeddings.weight",
    "encoder.sentence_encoder.embed_tokens.weight",
    "decoder.sentence_encoder.embed_tokens.weight",
)

_NUMPY_SCALAR = np.float64(0).__reduce__()[0]
# fairseq's checkpoints hold namespaces, and numpy scalars as best scores, in addition to tensors and plain values
_SAFE_GLOBALS: list[Any] = [
    Namespace,
    (_NUMPY_SCALAR, "numpy.core.multiarray.scalar"),  # in numpy 1
    (_NUMPY_SCALAR, "numpy._core.multiarray.scalar"),  # in numpy 2
    np.dtype,
    *dict.fromkeys(type(np.dtype(code)) for code in "?" + np.typecodes["AllInteger"] + np.typecodes["AllFloat"]),
]
_TRUST = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"  # torch's own variable; torch ignores it if weights_only is given


class CannotRead(InputError):
    """A file could not be read, though it may be complete: no permission, a failing disk, or too little memory."""


class RefusedObjects(InputError):
    """A file is not damaged, but reading it would require unpickling."""


class NoModel(InputError):
    """A file is complete, but holds no model with a configuration."""


@contextmanager
def harmless_objects() -> Iterator[None]:
    """Let torch's safe loader accept the namespaces and numpy scalars of fairseq's checkpoints inside this context."""
    known = torch.serialization.get_safe_globals()  # on exit, safe_globals would remove these too
    with torch.serialization.safe_globals([safe for safe in _SAFE_GLOBALS if safe not in known]):
        yield


def import_first(path: str | Path) -> str | None:
    """The advice for a folder of ``transformers``, or its weights, in place of a checkpoint; None for another path."""
    path = Path(path)
    is_weights = path.suffix in (".safetensors", ".bin") and path.is_file()
    if not is_weights and not (path / "config.json").is_file():
        return None
    which = "its" if is_weights else "this"
    return f"first tn-fairseq exchange import {which} folder of transformers, with --data DATA_BIN --output FILE.pt"


def remedy(path: str | Path) -> str:
    """What to do about a file that is no checkpoint of fairseq-train."""
    return import_first(path) or "name a checkpoint of fairseq-train"


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint of fairseq-train with torch's safe loader: a dict that holds at least ``cfg`` and ``model``.

    Nothing is unpickled unless the user sets torch's variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD.

    Tensors are memory-mapped, so unused ones, such as the optimizer's, are never read. Older checkpoints, such as the
    released RoBERTa, get the ``cfg`` that fairseq itself gives them.
    Raises InputError if the file is damaged, or not a checkpoint; and of the kind CannotRead if it is missing or cannot
    be read, RefusedObjects if it holds Python objects other than tensors and plain values, and NoModel if no model.
    """
    trusted = os.environ.get(_TRUST, "").lower() in ("1", "y", "yes", "true")
    try:
        with harmless_objects():
            state = torch.load(path, map_location="cpu", weights_only=not trusted, mmap=zipfile.is_zipfile(path))
    except OSError as error:
        raise CannotRead(f"{path}: {error.strerror or error}; {remedy(path)}") from None
    except Exception as error:  # a damaged file can raise almost anything in torch or zipfile
        if isinstance(error, MemoryError) or "Cannot allocate memory" in str(error):
            raise CannotRead(f"{path}: there is too little memory to read it; free some") from None
        if trusted and isinstance(error, (ImportError, AttributeError)):
            raise InputError(
                f"{path}: holds Python objects that cannot be imported here ({error}); install the "
                "package that defines them"
            ) from None
        refused = re.search(r"GLOBAL (\S+) (?:was not an allowed|whose module)", str(error))
        if not refused or not isinstance(error, pickle.UnpicklingError) or archive_damage(path) is not None:
            raise InputError(f"{path}: damaged, or not a checkpoint; {remedy(path)}") from None
        raise RefusedObjects(
            f"{path}: holds Python objects that torch's safe loader refuses ({refused[1]}); if you trust the file, set "
            f"{_TRUST}=1, which lets the file run any code"
        ) from None
    if isinstance(state, dict) and not state.get("cfg") and isinstance(state.get("args"), Namespace):
        from fairseq import checkpoint_utils  # imported here because only these checkpoints need fairseq

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                state = checkpoint_utils._upgrade_state_dict(state)
        except Exception as error:  # fairseq does not check what it reads
            raise InputError(
                f"{path}: an old checkpoint that fairseq cannot upgrade ({error!r}); load it with the "
                "fairseq that wrote it, and save it again"
            ) from None
    if not isinstance(state, dict) or not state.get("cfg") or not isinstance(state.get("model"), dict):
        raise NoModel(f"{path}: holds no model with a configuration; {remedy(path)}")
    return state


def archive_damage(path: str | Path) -> object | None:
    """What is damaged in a file in torch's zip format, or None; torch itself does not verify checksums."""
    if not zipfile.is_zipfile(path):
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip()
    except (zipfile.BadZipFile, OSError) as error:
        return error


def registered_name(cfg: Any, older: str) -> str | None:
    """The name of a model or task in its configuration: a mapping, or a namespace in older fairseq checkpoints."""
    fields = cfg if isinstance(cfg, Mapping) else vars(cfg)
    return fields.get("_name") or fields.get(older)


def updates_of(state: Mapping[str, Any]) -> int | None:
    """The updates that a checkpoint was trained for; None or 0 if unknown, as for released weights."""
    return (state.get("optimizer_history") or [{}])[-1].get("num_updates")


def word_embeddings(state: Mapping[str, Any]) -> Tensor | None:
    """The input word embeddings (V, E) of a checkpoint of ELECTRA, BERT or fairseq's RoBERTa; None for any other."""
    candidates = map(state["model"].get, _WORD_EMBEDDINGS)
    return next((tensor for tensor in candidates if isinstance(tensor, Tensor)), None)


def check_dictionary(path: str | Path, state: Mapping[str, Any], dictionary: Symbols) -> None:
    """Raises InputError if the checkpoint was trained with another dictionary, judged by its size and fingerprint."""
    embeddings, theirs = word_embeddings(state), state["model"].get("dictionary_fingerprint")
    size = 0 if embeddings is None else len(embeddings)
    # fairseq's RoBERTa has no fingerprint, only a size
    if size != len(dictionary) or theirs is not None and bytes(theirs.tolist()).hex() != fingerprint(dictionary):
        raise InputError(
            f"{path}: the model of another dictionary (of {size:,} symbols; yours has {len(dictionary):,}, not the "
            "same); name the dict.txt or data-bin that it was trained with, or data made with the same tokenizer"
        )


def save_checkpoint(state: dict[str, Any], path: str | Path) -> None:
    """Write a checkpoint that fairseq can read; raises InputError if it cannot be written."""
    with write_atomically(path) as temporary:
        torch.save(state, temporary)
