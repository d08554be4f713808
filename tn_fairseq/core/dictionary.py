"""The model's dictionary: fairseq's ``dict.txt`` with ``<mask>`` as its last symbol.

Only ``load_dictionary`` needs fairseq. Whatever needs no more than the symbols also works without it.
"""

import hashlib
import io
import re
from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Union

from .errors import InputError
from .files import read_text

if TYPE_CHECKING:
    from fairseq.data import Dictionary

UNKNOWN, MASK = "<unk>", "<mask>"
# fairseq's, which begin every dictionary, in its order
SPECIAL_SYMBOLS = ("<s>", "<pad>", "</s>", UNKNOWN)
_OVERWRITE = " #fairseq:overwrite"  # after the count of a symbol that is in the dictionary already


class Symbols(Protocol):
    """The symbols of a dictionary, which begin with ``nspecial`` special ones; fairseq's ``Dictionary`` has them."""

    symbols: list[str]
    nspecial: int

    def __len__(self) -> int: ...


@dataclass
class PlainSymbols:
    """Symbols without fairseq's ``Dictionary``."""

    symbols: list[str]
    nspecial: int = len(SPECIAL_SYMBOLS)

    def __len__(self) -> int:
        return len(self.symbols)


def special_ids(dictionary: Symbols) -> list[int]:
    """The ids of fairseq's special symbols and ``<mask>``."""
    return [i for i, symbol in enumerate(dictionary.symbols) if i < dictionary.nspecial or symbol == MASK]


def symbols_of_pieces(pieces: Collection[str]) -> list[str]:
    """The symbols in ``dict.txt`` of a tokenizer's pieces, which are all different.

    A symbol is the piece itself, unless fairseq reads back something else: line breaks, and its own special symbols.
    These are escaped in angle brackets: ``<\\n>``, ``<<s>>``.
    """
    taken = {*SPECIAL_SYMBOLS, MASK, *pieces}
    symbols = []
    for piece in pieces:
        symbol = piece
        if re.search(r"[\r\n]", piece) or piece in (*SPECIAL_SYMBOLS, MASK):
            symbol = "<{}>".format(piece.replace("\r", "\\r").replace("\n", "\\n"))
            while symbol in taken:
                symbol = f"<{symbol}>"
            taken.add(symbol)
        symbols.append(symbol)
    return symbols


def load_dictionary(path: Union[str, Path]) -> "Dictionary":
    """Read ``dict.txt`` and append ``<mask>``, as fairseq's masked-LM tasks do.

    Raises InputError if the file is missing, is not UTF-8, or does not consist of lines ``<symbol> <count>``.
    """
    from fairseq.data import Dictionary

    dictionary = Dictionary()
    for symbol, count in _read(path):
        dictionary.add_symbol(symbol, n=count, overwrite=True)
    dictionary.add_symbol(MASK)
    return dictionary


def read_symbols(path: Union[str, Path]) -> PlainSymbols:
    """The symbols of ``load_dictionary(path)``, without fairseq. Raises InputError as it does."""
    symbols = [symbol for symbol, _ in _read(path)]
    return PlainSymbols([*SPECIAL_SYMBOLS, *symbols, *(() if MASK in symbols else (MASK,))])


def _read(path: Union[str, Path]) -> list[tuple[str, int]]:
    """The symbols in ``dict.txt`` with their counts, parsed as fairseq does."""
    remedy = "give the dict.txt of a folder that tn-fairseq data binarize wrote (fairseq-train: the folder)"
    entries, known = [], set(SPECIAL_SYMBOLS)
    for number, line in enumerate(io.StringIO(read_text(path, remedy), newline=None), start=1):
        line = line.rstrip()
        fields = line.removesuffix(_OVERWRITE)
        try:
            symbol, count = fields.rsplit(" ", 1)
            entries.append((symbol, int(count)))
        except ValueError:
            fault = "not a fairseq dictionary ('<symbol> <count>')"
            raise InputError(f"{path}, line {number}: {fault}; {remedy}") from None
        if symbol in known and fields == line:
            raise InputError(f"{path}, line {number}: {symbol!r} is in the dictionary twice; {remedy}")
        known.add(symbol)
    if not entries:
        raise InputError(f"{path}: holds no symbols; {remedy}")
    return entries


def without_mask(dictionary: "Dictionary") -> "Dictionary":
    """A copy without the ``<mask>`` that ``load_dictionary`` appends, to be saved as ``dict.txt``."""
    copy = deepcopy(dictionary)
    if copy.symbols[-1] == MASK:
        copy.symbols.pop()
        copy.count.pop()
        del copy.indices[MASK]
    return copy


def fingerprint(dictionary: Symbols) -> str:
    """The SHA-256 of the dictionary's symbols in order (64 hexadecimal digits); counts do not matter."""
    return hashlib.sha256("\n".join(dictionary.symbols).encode()).hexdigest()
