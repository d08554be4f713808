"""The dictionary and the tokenizer of a data-bin, and whether released weights have the same tokenizer."""

from itertools import zip_longest
from pathlib import Path

from fairseq.data import Dictionary

from ..core.dictionary import load_dictionary
from ..core.errors import InputError
from ..tokenizers import load_tokenizer
from ..tokenizers.base import Tokenizer
from ..tokenizers.pretrained import PROBE, load_pretrained

_PROBE_WORDS = 100


def read_data_bin(data_bin: Path) -> tuple[Dictionary, Tokenizer]:
    """Read ``dict.txt`` and ``tokenizer/``; raises InputError if they are missing or invalid."""
    dictionary = load_dictionary(data_bin / "dict.txt")
    folder = data_bin / "tokenizer"
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give a DATA_BIN that tn-fairseq data binarize wrote")
    return dictionary, load_tokenizer(folder)


def check_tokenizer(
    folder: Path, dictionary: Dictionary, tokenizer: Tokenizer, data_bin: Path, new_symbols: bool = False
) -> None:
    """Raises InputError if the folder's tokenizer has other pieces than the data-bin's, or splits text differently.

    With ``new_symbols``, only the data-bin's tokenizer counts, and its dictionary may have more symbols.
    """
    remedy = f"binarize the data with tn-fairseq data binarize --tokenizer {folder}"
    # an exported tokenizer also has the symbols that only the dictionary has, after its own pieces
    size = len(tokenizer.pieces)
    added = [symbol for symbol, token in zip(dictionary.symbols, tokenizer.token_ids(dictionary)) if token >= size]
    ours = tokenizer.pieces if new_symbols else [*tokenizer.pieces, *added]
    loaded = load_pretrained(folder)
    for token, (their, our) in enumerate(zip_longest(loaded.pieces, ours)):
        # no text has white space at the end of a piece of WordPiece, and vocab.txt loses it
        if their is None or our is None or their.rstrip() != our.rstrip():
            raise InputError(f"{folder}: token {token} is {their!r}, but {our!r} in {data_bin}; {remedy}")
    words = [piece for piece in ours if piece.isalpha()][:_PROBE_WORDS]
    # shows whether both treat case, accents, Chinese characters and spaces alike
    probe = [*PROBE, " ".join(words), " ".join(words).upper(), " ".join(words).title()]
    if loaded.encode_chunk(probe)[0].tolist() != tokenizer.encode_chunk(probe)[0].tolist():
        raise InputError(
            f"{folder}: its tokenizer has the same pieces as {data_bin} but splits text differently (lower case, "
            f"accents?): {loaded.description}, not {tokenizer.description}; {remedy}"
        )
