"""The base class of all tokenizers, and the names of special tokens."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.dictionary import MASK, symbols_of_pieces
from ..core.errors import InputError

if TYPE_CHECKING:
    from fairseq.data import Dictionary

# how to fix a tokenizer's file, in error messages
REMEDY = "give the folder or file of a saved tokenizer"
BERT_SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA_SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", MASK)
# fairseq's special symbols and their names in the two conventions
BERT_NAMES = dict(zip(ROBERTA_SPECIAL_TOKENS, ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")))
ROBERTA_NAMES = {symbol: symbol for symbol in ROBERTA_SPECIAL_TOKENS}

# the fields of fairseq's special symbols in tokenizer_config.json
TOKEN_FIELDS = dict(zip(ROBERTA_SPECIAL_TOKENS, ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token")))
# ids without a piece, each a row of a model: more of them are a mistake
_MOST_GAPS = 1 << 20


@dataclass(eq=False, repr=False)
class Tokenizer(ABC):
    """A trained tokenizer.

    ``description`` is a one-line description. ``files`` maps file names to the contents from which ``load_tokenizer``
    can load it again. ``pieces`` are all pieces in the order of their ids, with special tokens as the tokenizer spells
    them, and "" for an id without a piece. ``special_ids`` maps those of fairseq's special symbols that the vocabulary
    has to token ids. ``symbols`` maps every other token id to its symbol in ``dict.txt``, in the order of the ids.
    """

    description: str
    files: dict[str, bytes]
    pieces: list[str]
    special_ids: dict[str, int]
    symbols: dict[int, str]

    @abstractmethod
    def encode_chunk(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Concatenated token ids of all lines, (tokens,) int32, and the number of tokens per line, (lines,) int64."""

    @abstractmethod
    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Token ids of a text of any number of lines, (tokens,) int32, and their offsets in it, (tokens, 2) int32.

        Offsets are start and end in characters of ``text``, without white space at both ends; a token of only white
        space has an empty range. A character that is split between tokens is in the range of each of them.
        """

    @abstractmethod
    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of token ids without special tokens."""

    @abstractmethod
    def encode_continuation(self, text: str) -> list[int]:
        """Token ids of a text that continues a line: unlike at the start of a line, no space is added before it."""

    def dictionary(self) -> "Dictionary":
        """The dictionary to save as ``dict.txt``, without ``<mask>``, because fairseq's tasks append it."""
        from fairseq.data import Dictionary  # takes seconds to import, and reading a tokenizer does not need it

        dictionary = Dictionary()
        for symbol in self.symbols.values():
            dictionary.add_symbol(symbol)
        return dictionary

    def lookup_table(self, dictionary: "Dictionary") -> np.ndarray:
        """The dictionary index of each token id, (vocabulary size,) int64; special tokens become ``<unk>``.

        Raises InputError if the dictionary lacks a symbol.
        """
        self._check_symbols(dictionary)
        # A tokenizer that splits only at white space still maps a literal "[MASK]" to the special token.
        table = np.full(self._size, dictionary.unk(), dtype=np.int64)
        for token, symbol in self.symbols.items():
            table[token] = dictionary.index(symbol)
        return table

    def token_ids(self, dictionary: "Dictionary") -> np.ndarray:
        """The token id of each dictionary symbol, (len(dictionary),) int64, all different.

        Symbols that are not in the vocabulary get the ids after its last one, in the dictionary's order. Raises
        InputError if the dictionary lacks a symbol of the tokenizer.
        """
        self._check_symbols(dictionary)
        ids = self.special_ids | {symbol: token for token, symbol in self.symbols.items()}
        new_ids = count(self._size)
        return np.array([ids[s] if s in ids else next(new_ids) for s in dictionary.symbols], dtype=np.int64)

    @property
    def _size(self) -> int:
        """The highest token id plus 1."""
        return max([*self.symbols, *self.special_ids.values()]) + 1

    def _check_symbols(self, dictionary: "Dictionary") -> None:
        missing = [symbol for symbol in self.symbols.values() if symbol not in dictionary]
        if missing:
            lacks = f"lacks {len(missing):,} of the tokenizer's {len(self.symbols):,} symbols, such as {missing[0]!r}"
            raise InputError(f"the dictionary {lacks}; give the --dict of this tokenizer, or omit --dict")


def find_special_ids(pieces: dict[int, str], names: dict[str, str], path: Path) -> dict[str, int]:
    """fairseq's special symbols to token ids; ``names`` maps them to the tokenizer's spelling. All must be there."""
    ids = {piece: index for index, piece in pieces.items()}
    missing = [name for name in names.values() if name not in ids]
    if missing:
        raise InputError(f"{path}: lacks the special tokens {', '.join(missing)}; use a vocabulary that has them")
    return {symbol: ids[name] for symbol, name in names.items()}


def find_symbols(pieces: Mapping[int, str], special_ids: Mapping[str, int], path: Path) -> dict[int, str]:
    """Token ids to their symbols in ``dict.txt``, without special tokens; raises InputError if there are no others."""
    special = set(special_ids.values())
    ordinary = {index: piece for index, piece in pieces.items() if index not in special}
    if not ordinary:
        raise InputError(f"{path}: contains only special tokens; train a vocabulary")
    return dict(zip(ordinary, symbols_of_pieces(ordinary.values()), strict=True))


def by_id(pieces: Mapping[int, str], path: Path) -> list[str]:
    """All pieces in the order of their ids, with "" for an id without a piece; raises InputError for a huge id."""
    if max(pieces) - len(pieces) > _MOST_GAPS:
        raise InputError(f"{path}: has only {len(pieces):,} pieces, but the id {max(pieces):,}; {REMEDY}")
    return [pieces.get(index, "") for index in range(max(pieces) + 1)]


def describe_size(pieces: Mapping[int, str]) -> str:
    """How many pieces there are, and how many ids have none."""
    gaps = max(pieces) + 1 - len(pieces)
    return f"{len(pieces):,} pieces" + f" and {gaps:,} ids without a piece" * (gaps > 0)


def one_line(text: str) -> str:
    """The text with line breaks replaced by spaces; its length does not change."""
    return text.replace("\r\n", "  ").replace("\n", " ")


def join(sentences: Iterable[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate lists of ids; return the ids and the lengths."""
    sentences = list(sentences)
    lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
    return np.fromiter(chain.from_iterable(sentences), dtype=np.int32, count=lengths.sum()), lengths
