"""Word pairs with a similarity that people gave them, and how well the input word embeddings agree with it.

Each line starts with two words. The similarity is the first number after them, or the column SimLex999 if a heading
has one. So one reader is enough for WordSim-353 (Finkelstein et al. 2002; its part for similarity: Agirre et al. 2009),
MEN (Bruni et al. 2014, natural form), SimLex-999 (Hill et al. 2015), SimVerb-3500 (Gerz et al. 2016) and others.
"""

import csv
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ....core.errors import InputError
from ....core.files import read_text

SIMLEX_COLUMN = "SimLex999"
_SEPARATORS = "\t", ",", ";"  # else spaces
_REMEDY = "give a file of lines 'word word similarity', such as SimLex-999.txt"


class WordPair(NamedTuple):
    """Two words and how similar people find them."""

    word: str
    other: str
    similarity: float


def read_word_pairs(path: str | Path) -> list[WordPair]:
    """Read a file of word pairs, in columns that are separated by tabs, commas, semicolons or spaces.

    Raises InputError, with the line, for a file that is missing or has another format, and for fewer than two pairs.
    """
    lines = read_text(path, _REMEDY, "utf-8-sig").splitlines()
    filled = [(number, line.strip(" ")) for number, line in enumerate(lines, start=1) if line.strip()]
    separator = next((each for each in _SEPARATORS if filled and filled[0][1].count(each) > 1), None)
    rows = [(number, _split(line, separator)) for number, line in filled]
    heading = rows.pop(0)[1] if rows and _is_heading(rows[0][1]) else []
    named = heading.index(SIMLEX_COLUMN) if SIMLEX_COLUMN in heading else None
    place = _first_number(rows[0][1]) if rows and named is None else named
    pairs = []
    for number, fields in rows:
        text = fields[place] if place is not None and len(fields) > place else ""
        similarity = _number(text) if named is not None or _first_number(fields) == place else None
        if similarity is None or any(not word or _number(word) is not None for word in fields[:2]):
            raise InputError(f"{path}, line {number}: not two words and a number; {_REMEDY}")
        pairs.append(WordPair(fields[0], fields[1], similarity))
    if len(pairs) < 2:
        raise InputError(f"{path}: contains {len(pairs)} word pairs, too few for a correlation; {_REMEDY}")
    return pairs


def _is_heading(fields: Sequence[str]) -> bool:
    """Whether a line begins with names such as word1 and word2, or Word 1 and Word 2."""
    return len(fields) > 1 and all(re.fullmatch(r"word[ _]?[12ab]?", field.casefold()) for field in fields[:2])


def _split(line: str, separator: str | None) -> list[str]:
    """The columns of a line; none if it is not valid CSV."""
    try:
        fields = line.split() if separator is None else next(csv.reader([line], delimiter=separator))
    except csv.Error:
        return []
    return [field.strip() for field in fields]


def _first_number(fields: Sequence[str]) -> int | None:
    """The index of the first number after two words; None if there is none."""
    return next((place for place, field in enumerate(fields) if place > 1 and _number(field) is not None), None)


def _number(text: str) -> float | None:
    """The finite number that a text is, or None."""
    try:
        return float(text) if math.isfinite(float(text)) else None
    except ValueError:
        return None


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
