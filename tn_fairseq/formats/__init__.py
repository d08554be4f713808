"""Reads the files of the data sets, and says in one line what is wrong with them."""

from typing import Any

from ..errors import InputError, first_line
from ..packages import require


def is_unicode(text: str) -> bool:
    """Whether a text is valid Unicode; JSON can hold half a surrogate pair, which no tokenizer accepts."""
    return text == text.encode(errors="replace").decode()


def member(parent: Any, key: str, kind: type, place: str, remedy: str) -> Any:
    """A member of a JSON object; raises InputError, with its ``place`` and the ``remedy``, if it is of another kind."""
    value = parent.get(key) if isinstance(parent, dict) else None
    if type(value) is not kind:
        expected = {str: "a string", list: "a list", int: "an integer", dict: "an object"}[kind]
        raise InputError(f"{place}{key}: must be {expected}; {remedy}")
    if isinstance(value, str) and not is_unicode(value):
        raise InputError(f"{place}{key}: holds half a surrogate pair; {remedy}")
    return value


def load_from_hub(place: str, remedy: str, *name: str, split: str) -> Any:
    """Load a split with the library ``datasets``; ``name`` is the data set, and its configuration if it has several.

    Raises InputError, with the ``place`` and the ``remedy``, if the Hub does not answer, or if the library is missing.
    """
    datasets = require("datasets", "--from-hub", "hub")
    try:
        return datasets.load_dataset(*name, split=split)
    except Exception as error:  # the library has errors of its own, such as for a full disk
        raise InputError(f"{place}: {first_line(error)}; {remedy}") from None
