"""Reads the files of the data sets, and says in one line what is wrong with them."""

from typing import Any

from ...core.errors import InputError, first_line
from ...core.packages import require


def load_from_hub(place: str, remedy: str, *name: str, split: str) -> Any:
    """Load a split with the library ``datasets``; ``name`` is the data set, and its configuration if it has several.

    Raises InputError, with the ``place`` and the ``remedy``, if the Hub does not answer, or if the library is missing.
    """
    datasets = require("datasets", "--from-hub", "hub")
    try:
        return datasets.load_dataset(*name, split=split)
    except Exception as error:  # the library has errors of its own, such as for a full disk
        raise InputError(f"{place}: {first_line(error)}; {remedy}") from None
