"""Word pairs with a similarity that people gave them, and how well the input word embeddings agree with it.

The files have lines ``word word similarity``, separated by tabs or spaces: WordSim-353 (its part for similarity,
Agirre et al. 2009) and MEN (Bruni et al. 2014, natural form). SimLex-999 (Hill et al. 2015) as published has a heading
and more columns.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ....core.errors import InputError
from ....core.files import read_text

SIMLEX_COLUMN = "SimLex999"
_REMEDY = "give a file of lines 'word word similarity', such as SimLex-999.txt"


class WordPair(NamedTuple):
    """Two words and how similar people find them."""

    word: str
    other: str
    similarity: float


def read_word_pairs(path: str | Path) -> list[WordPair]:
    """Read a file of word pairs.

    Raises InputError, with the line, for a file that is missing or has another format, and for fewer than two pairs.
    """
    lines = read_text(path, _REMEDY, "utf-8-sig").splitlines()
    heading = lines[0].split() if lines else []
    columns, place = (len(heading), heading.index(SIMLEX_COLUMN)) if SIMLEX_COLUMN in heading else (3, 2)
    pairs = []
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields or SIMLEX_COLUMN in fields:
            continue
        try:
            similarity = float(fields[place])
        except (IndexError, ValueError):
            similarity = math.nan
        if len(fields) != columns or not math.isfinite(similarity):
            raise InputError(f"{path}, line {number}: not two words and a number; {_REMEDY}")
        pairs.append(WordPair(fields[0], fields[1], similarity))
    if len(pairs) < 2:
        raise InputError(f"{path}: contains {len(pairs)} word pairs, too few for a correlation; {_REMEDY}")
    return pairs


def one_piece_pairs(pairs: Sequence[WordPair], find: Callable[[str], int | None]) -> tuple[Tensor, np.ndarray]:
    """The dictionary ids of the pairs of two different one-piece words, (P, 2), and their similarities, (P,)."""
    ids, similarities = [], []
    for pair in pairs:
        one, other = find(pair.word), find(pair.other)
        if one is not None and other is not None and one != other:
            ids.append((one, other))
            similarities.append(pair.similarity)
    return torch.tensor(ids, dtype=torch.long).reshape(-1, 2), np.array(similarities)


def mean_cosine(embeddings: Tensor) -> float:
    """The mean cosine similarity of all pairs of different rows of (N, E); near 1 if the rows have collapsed."""
    units = torch.nn.functional.normalize(embeddings.double(), dim=-1)
    n = len(units)
    # the squared sum has the cosines of all ordered pairs, and of each row with itself
    return float((units.sum(dim=0).square().sum() - units.square().sum()) / (n * (n - 1)))
