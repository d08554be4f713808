"""Two orders of one vocabulary: the dictionary's, and the tokenizer's own, in which ``transformers`` keeps its rows."""

from pathlib import Path
from typing import NamedTuple

import torch
from fairseq.data import Dictionary
from torch import Tensor

from ..dictionary import load_dictionary
from ..errors import InputError
from ..tokenization import Tokenizer, load_tokenizer

# with words of the vocabulary itself, this shows whether case, accents, Chinese characters and white space are treated
# alike
_PROBE = "C'est l'été: É un caffè, 東京 ﬁt\u00a0Straße\tno_one IBM-PC 3.14"
_PROBE_WORDS = 100


class Vocabulary(NamedTuple):
    """The vocabulary of a data-bin folder, V symbols."""

    dictionary: Dictionary
    tokenizer: Tokenizer
    token_ids: Tensor  # (V), the token id of each dictionary symbol
    pieces: list[str]  # V, in the order of the token ids


def load_vocabulary(data_bin: Path) -> Vocabulary:
    """Read ``dict.txt`` and ``tokenizer/``; raises InputError where they are missing or do not fit each other."""
    dictionary = load_dictionary(data_bin / "dict.txt")
    folder = data_bin / "tokenizer"
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name a DATA_BIN that binarize.py wrote")
    tokenizer = load_tokenizer(folder)
    token_ids = tokenizer.token_ids(dictionary)
    pieces = [*tokenizer.pieces, *[""] * (len(dictionary) - len(tokenizer.pieces))]
    for index, token in enumerate(token_ids):
        # what the tokenizer lacks stands after its own pieces, under the dictionary's name
        pieces[token] = pieces[token] or dictionary.symbols[index]
    return Vocabulary(dictionary, tokenizer, torch.from_numpy(token_ids), pieces)


def check_tokenizer(folder: Path, vocabulary: Vocabulary, data_bin: Path) -> None:
    """Raises InputError where the folder's tokenizer has other pieces than the data-bin's, or splits in another way."""
    remedy = f"binarize the data with preprocess/binarize.py --tokenizer {folder}"
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
            f"{folder}: its tokenizer has the same pieces as {data_bin} but splits text in another way (lower case, "
            f"accents?): {tokenizer.description}, not {vocabulary.tokenizer.description}; {remedy}"
        )
