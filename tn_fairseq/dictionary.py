"""The model's dictionary: fairseq's ``dict.txt`` with ``<mask>`` as its last symbol."""

import hashlib
import io
from copy import deepcopy
from pathlib import Path
from typing import Union

from fairseq.data import Dictionary

from .errors import PREPROCESSING, InputError, first_line
from .files import read_text

MASK = "<mask>"


def load_dictionary(path: Union[str, Path]) -> Dictionary:
    """Read ``dict.txt`` and append ``<mask>``, as fairseq's masked-LM tasks do.

    Raises InputError if the file is missing, is not UTF-8, or does not consist of lines ``<symbol> <count>``.
    """
    path = Path(path)
    remedy = f"name the dict.txt of a folder that {PREPROCESSING} binarize wrote, or run it again"
    text = read_text(path, remedy)
    dictionary = Dictionary()
    try:
        dictionary.add_from_file(io.StringIO(text, newline=None))
    except (RuntimeError, ValueError) as error:
        raise InputError(f"{path}: not a fairseq dictionary ({first_line(error)}); {remedy}") from None
    if len(dictionary) == dictionary.nspecial:
        raise InputError(f"{path}: holds no symbols; {remedy}")
    dictionary.add_symbol(MASK)
    return dictionary


def without_mask(dictionary: Dictionary) -> Dictionary:
    """A copy without the ``<mask>`` that ``load_dictionary`` appends, to be saved as ``dict.txt``."""
    copy = deepcopy(dictionary)
    if copy.symbols[-1] == MASK:
        copy.symbols.pop()
        copy.count.pop()
        del copy.indices[MASK]
    return copy


def fingerprint(dictionary: Dictionary) -> str:
    """The SHA-256 of the dictionary's symbols in order (64 hexadecimal digits); counts do not matter."""
    return hashlib.sha256("\n".join(dictionary.symbols).encode()).hexdigest()
