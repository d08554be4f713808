"""Packages that may be missing: those of the extras, and this one in a clone that is not installed."""

import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from .errors import InputError, first_line


def require(module: str, user: str, extra: str) -> Any:
    """Import a module of an extra; raises InputError, which names the ``user`` that needs it, if it is missing."""
    try:
        imported = import_module(module)
        if getattr(imported, "__file__", "") is None:  # any folder of this name here, such as datasets
            raise ImportError
    except ImportError:
        raise InputError(f"{user} needs {module}, which is missing: pip install 'tn_fairseq[{extra}]'") from None
    return imported


def hide_broken_torchaudio() -> None:
    """Let ``transformers`` import its models, with which it imports torchaudio if it is there, and fails if it cannot.

    fairseq requires torchaudio for speech, and its newest version needs the libraries of CUDA 13.0.
    """
    try:
        import_module("torchaudio")
    except Exception:  # RuntimeError for another CUDA, OSError for none, ImportError
        sys.modules["torchaudio"] = None  # type: ignore[assignment]  # Python's sign for a module that is not there


def load_with_transformers(auto_class: str, name: str | Path, **options: Any) -> Any:
    """What ``AutoModel`` or another class of ``transformers`` loads, without its messages and the code of the folder.

    Raises ValueError with the reason, in one line.
    """
    hide_broken_torchaudio()
    transformers = import_module("transformers")
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # AutoModel lists the parameters of the head that it leaves out
    try:
        return getattr(transformers, auto_class).from_pretrained(name, trust_remote_code=False, **options)
    except Exception as error:  # damaged files raise almost anything
        raise ValueError(first_line(error).rstrip(" .:")) from None
    finally:
        transformers.logging.set_verbosity(verbosity)


def version_of(package: str) -> str | None:
    """The version of a package that pip installed, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
