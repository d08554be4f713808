"""The two orders of a vocabulary: the dictionary's, and the tokenizer's, which ``transformers`` uses for its rows."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq.data import Dictionary
from torch import Tensor

from ..dictionary import MASK, load_dictionary
from ..errors import PREPROCESSING, InputError
from ..tokenizers import load_tokenizer
from ..tokenizers.base import Tokenizer

# with words of the vocabulary, shows whether two tokenizers treat case, accents, Chinese characters and spaces alike
_PROBE = "C'est l'été: É un caffè, 東京 ﬁt\u00a0Straße\tno_one IBM-PC 3.14"
_PROBE_WORDS = 100


class Vocabulary(NamedTuple):
    """The vocabulary of a data-bin folder, V symbols."""

    dictionary: Dictionary
    tokenizer: Tokenizer
    token_ids: Tensor  # (V), the token id of each dictionary symbol
    pieces: list[str]  # V, in the order of the token ids


def load_vocabulary(data_bin: Path) -> Vocabulary:
    """Read ``dict.txt`` and ``tokenizer/``; raises InputError if they are missing or do not match."""
    return _vocabulary(*read_data_bin(data_bin))


def folder_vocabulary(folder: Path) -> Vocabulary:
    """The vocabulary of data binarized with the tokenizer in a folder of ``save_pretrained``."""
    tokenizer = load_tokenizer(folder)
    dictionary = tokenizer.dictionary()
    dictionary.add_symbol(MASK)
    return _vocabulary(dictionary, tokenizer)


def read_data_bin(data_bin: Path) -> tuple[Dictionary, Tokenizer]:
    """Read ``dict.txt`` and ``tokenizer/``; raises InputError if they are missing or invalid."""
    dictionary = load_dictionary(data_bin / "dict.txt")
    folder = data_bin / "tokenizer"
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give a DATA_BIN that {PREPROCESSING} binarize wrote")
    return dictionary, load_tokenizer(folder)


def recorded_data(checkpoint: Path, state: Mapping[str, Any], option: str) -> Path:
    """The data-bin of a checkpoint's training; raises InputError, which names ``option``, if it no longer exists."""
    data_bin = Path(state["cfg"]["task"]["data"].split(os.pathsep)[0])
    if not data_bin.is_dir():
        raise InputError(f"{checkpoint}: its data, {data_bin}, no longer exists; give its new folder with {option}")
    return data_bin


def _vocabulary(dictionary: Dictionary, tokenizer: Tokenizer) -> Vocabulary:
    token_ids = tokenizer.token_ids(dictionary)
    pieces = [*tokenizer.pieces, *[""] * (len(dictionary) - len(tokenizer.pieces))]
    for index, token in enumerate(token_ids):
        # symbols that the tokenizer lacks come after its own pieces and keep their names
        pieces[token] = pieces[token] or dictionary.symbols[index]
    return Vocabulary(dictionary, tokenizer, torch.from_numpy(token_ids), pieces)


def check_tokenizer(folder: Path, vocabulary: Vocabulary, data_bin: Path) -> None:
    """Raises InputError if the folder's tokenizer has other pieces than the data-bin's, or splits text differently."""
    remedy = f"binarize the data with {PREPROCESSING} binarize --tokenizer {folder}"
    tokenizer = load_tokenizer(folder)
    theirs, ours = tokenizer.pieces, vocabulary.pieces
    for token, (their, our) in enumerate(zip(theirs, ours)):
        if their != our:
            raise InputError(f"{folder}: token {token} is {their!r}, but {our!r} in {data_bin}; {remedy}")
    if len(theirs) != len(ours):
        longer = folder if len(theirs) > len(ours) else data_bin
        token, surplus = min(len(theirs), len(ours)), max(theirs, ours, key=len)
        raise InputError(f"{folder}: token {token} is {surplus[token]!r} in {longer} only; {remedy}")
    words = [piece for piece in ours if piece.isalpha()][:_PROBE_WORDS]
    probe = [_PROBE, " ".join(words), " ".join(words).upper(), " ".join(words).title()]
    if tokenizer.encode_chunk(probe)[0].tolist() != vocabulary.tokenizer.encode_chunk(probe)[0].tolist():
        raise InputError(
            f"{folder}: its tokenizer has the same pieces as {data_bin} but splits text differently (lower case, "
            f"accents?): {tokenizer.description}, not {vocabulary.tokenizer.description}; {remedy}"
        )
