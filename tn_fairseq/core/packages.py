"""Packages that may be missing: those of the extras, and this one in a clone that is not installed."""

from importlib import import_module, metadata
from typing import Any

from .errors import InputError


def require(module: str, user: str, extra: str) -> Any:
    """Import a module of an extra; raises InputError, which names the ``user`` that needs it, if it is missing."""
    try:
        imported = import_module(module)
        if getattr(imported, "__file__", "") is None:  # any folder of this name here, such as datasets
            raise ImportError
    except ImportError:
        raise InputError(f"{user} needs {module}, which is missing: pip install 'tn_fairseq[{extra}]'") from None
    return imported


def version_of(package: str) -> str | None:
    """The version of a package that pip installed, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
