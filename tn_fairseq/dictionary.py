"""The model's dictionary: fairseq's ``dict.txt`` with ``<mask>`` as its last symbol."""

import hashlib
from pathlib import Path
from typing import Union

from fairseq.data import Dictionary

from .errors import InputError

MASK = "<mask>"


def load_dictionary(path: Union[str, Path]) -> Dictionary:
    """Read ``dict.txt`` and append ``<mask>``, as fairseq's masked-LM tasks do.

    Raises InputError for a file that is missing, is not UTF-8, or is not lines of ``<symbol> <count>``.
    """
    path = Path(path)
    try:
        with open(path, encoding="utf-8") as lines:
            dictionary = Dictionary()
            dictionary.add_from_file(lines)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; name the dict.txt that binarize.py wrote") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start}); run binarize.py again to write it anew") from None
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{path}: not a fairseq dictionary ({reason}); run binarize.py again to write it anew"
        ) from None
    if len(dictionary) == dictionary.nspecial:
        raise InputError(f"{path}: holds no symbols; run binarize.py again to write it anew")
    dictionary.add_symbol(MASK)
    return dictionary


def fingerprint(dictionary: Dictionary) -> str:
    """The SHA-256 of the dictionary's symbols in order (64 hexadecimal digits); counts do not matter."""
    return hashlib.sha256("\n".join(dictionary.symbols).encode()).hexdigest()
