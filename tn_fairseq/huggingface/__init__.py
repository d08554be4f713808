"""Import and export weights of ``transformers``: ``python -m tn_fairseq.huggingface import|export``.

``SynonymTable`` is the synonym table of a tokenizer of ``transformers``, and does not need fairseq.
"""

from importlib import import_module
from typing import Any

_MODULES = {"SynonymTable": "synonyms"}  # imported when they are used, because the other modules need fairseq


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
