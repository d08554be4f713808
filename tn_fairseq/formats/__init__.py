"""Reads the files of the data sets, and says in one line what is wrong with them."""

from typing import Any

from ..errors import InputError, first_line


def load_from_hub(place: str, remedy: str, *name: str, split: str) -> Any:
    """Load a split with the library ``datasets``; ``name`` is the data set, and its configuration if it has several.

    Raises InputError, with the ``place`` and the ``remedy``, if the Hub does not answer, or if the library is missing.
    """
    try:
        from datasets import load_dataset
    except ImportError:
        raise InputError("--from-hub needs the datasets library: pip install 'tn_fairseq[hub]'") from None
    try:
        return load_dataset(*name, split=split)
    except (OSError, ValueError) as error:
        raise InputError(f"{place}: {first_line(error)}; {remedy}") from None
