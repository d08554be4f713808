"""Word pairs with a similarity that people gave them, and how well the input word embeddings agree with it.

Each line is two words and a number. Or the first line is the heading of SimLex-999 (Hill et al. 2015), and the number
is in its column.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ....core.errors import InputError
from ....core.files import read_text

SIMLEX_COLUMN = "SimLex999"
_REMEDY = "give a file of lines 'word word similarity', separated by tabs or spaces, such as SimLex-999.txt"


class WordPair(NamedTuple):
    """Two words and how similar people find them."""

    word: str
    other: str
    similarity: float


def read_word_pairs(path: str | Path) -> list[WordPair]:
    """Read a file of word pairs, in columns that are separated by tabs or spaces.

    Raises InputError, with the line, for a file that is missing or has another format, and for fewer than two pairs.
    """
    lines = read_text(path, _REMEDY, "utf-8-sig").splitlines()
    rows = [(number, line.split()) for number, line in enumerate(lines, start=1) if line.strip()]
    heading = rows.pop(0)[1] if rows and SIMLEX_COLUMN in rows[0][1] else ["word1", "word2", SIMLEX_COLUMN]
    pairs = []
    for number, fields in rows:
        try:
            cells = dict(zip(heading, fields, strict=True))
            pair = WordPair(cells["word1"], cells["word2"], float(cells[SIMLEX_COLUMN]))
        except (ValueError, KeyError):
            pair = WordPair("", "", math.nan)
        if not math.isfinite(pair.similarity):
            raise InputError(f"{path}, line {number}: not two words and a number; {_REMEDY}")
        pairs.append(pair)
    if len(pairs) < 2:
        raise InputError(f"{path}: contains {len(pairs)} word pairs, too few for a correlation; {_REMEDY}")
    return pairs


def one_piece_pairs(pairs: Sequence[WordPair], find: Callable[[str], int | None]) -> tuple[Tensor, list[WordPair]]:
    """The pairs of two different one-piece words: their ids in the dictionary, (P, 2), and the pairs."""
    ids, kept = [], []
    for pair in pairs:
        one, other = find(pair.word), find(pair.other)
        if one is not None and other is not None and one != other:
            ids.append((one, other))
            kept.append(pair)
    return torch.tensor(ids, dtype=torch.long).reshape(-1, 2), kept


def mean_cosine(embeddings: Tensor) -> float:
    """The mean cosine similarity of all pairs of different rows of (N, E); near 1 if the rows have collapsed."""
    units = torch.nn.functional.normalize(embeddings.double(), dim=-1)
    n = len(units)
    # the squared sum has the cosines of all ordered pairs, and of each row with itself
    return float((units.sum(dim=0).square().sum() - units.square().sum()) / (n * (n - 1)))
