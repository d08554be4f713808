"""Word vectors as a source of synonyms: the nearest neighbors of each word by cosine."""

import hashlib
import os
from pathlib import Path
from typing import Callable, Collection, Iterator, NamedTuple, Sequence

import numpy as np
import torch
from tqdm import tqdm

from ..errors import InputError
from ..vocabulary import casing
from .vector_folder import read_vector_folder

_ROWS_AT_A_TIME = 1024  # compare this many words with all words at a time


class Vectors(NamedTuple):
    """The words that have a vector, their unit vectors (words, dimension), float32, and a description of the source.

    ``not_utf8`` counts the lines of a text file that were skipped because their word is not UTF-8.
    """

    words: list[str]
    matrix: np.ndarray
    version: str
    not_utf8: int = 0


def read_vectors(path: str | Path, wanted: Sequence[str]) -> Vectors:
    """Read the vectors of the words in ``wanted`` from a GloVe or word2vec *text* file, or a folder with a matrix.

    A word that is not in the file gets the vector of its lowercase form (an uncased file for a cased dictionary). See
    ``read_text_vectors`` and ``read_vector_folder`` for the formats. Raises InputError as they do, and if no word in
    ``wanted`` has a vector.
    """
    needed = {form for word in wanted for form in (word, word.lower())}
    not_utf8 = 0
    if Path(path).is_dir():
        rows, version = read_vector_folder(Path(path), needed)
    else:
        rows, version, not_utf8 = read_text_vectors(path, needed)
    spelled = {word: next((form for form in (word, word.lower()) if form in rows), None) for word in wanted}
    found = {word: rows[form] for word, form in spelled.items() if form is not None}
    if not found:
        raise InputError(
            f"{path}: contains none of the dictionary's whole words; give vectors of its language with --vectors"
        )
    return Vectors(list(found), np.stack(list(found.values())), version, not_utf8)


def read_text_vectors(path: str | Path, needed: Collection[str]) -> tuple[dict[str, np.ndarray], str, int]:
    """Read the unit vectors of the words in ``needed`` from a text file of lines ``word x1 ... xn``.

    Also returns a description of the file, and how many lines were skipped because their word is not UTF-8, which
    published files contain. word2vec's header line (``count dimension``) is optional. If a word occurs twice, the first
    vector counts. Every line must have the same number of numbers, but GloVe's words can contain spaces (``. . .``);
    the values are checked only for needed words. Raises InputError with the file and the line.
    """
    rows: dict[str, np.ndarray] = {}
    digest = hashlib.sha256()
    number, not_utf8, dimension, promised = 0, 0, None, None
    try:
        with open(path, "rb") as file, _progress(path) as progress:
            for number, line in enumerate(file, start=1):
                digest.update(line)
                progress.update(len(line))
                fields = line.split()
                if number == 1 and len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit():
                    promised, dimension = int(fields[0]), int(fields[1])
                    continue
                if dimension is None:
                    dimension = _dimension(path, number, fields)
                word = _word(path, number, fields, dimension)
                not_utf8 += word is None
                if word is not None and word in needed and word not in rows:
                    rows[word] = _unit_vector(path, number, fields[-dimension:])
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}; --vectors needs a text file of GloVe or word2vec, or a folder"
        ) from None
    count = number - (promised is not None)
    if count <= 0:
        raise InputError(f"{path}: contains no vectors; --vectors needs a text file of GloVe or word2vec")
    if promised is not None and promised != count:
        raise InputError(f"{path}: its first line promises {promised} vectors, but it has {count}; download it again")
    version = f"{Path(path).name}, {count} vectors of dimension {dimension}, sha256 {digest.hexdigest()}"
    return rows, version, not_utf8


def nearest_neighbors(
    vectors: Vectors, top_k: int, min_similarity: float | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Yield each word of ``vectors`` with its ``top_k`` nearest others by cosine, nearest first.

    Neighbors have the casing pattern of the word (lower, Capitalized, UPPER, mixed), and a similarity of at least
    ``min_similarity`` if given.
    """
    members: dict[str, list[int]] = {}
    for row, word in enumerate(vectors.words):
        members.setdefault(casing(word), []).append(row)
    for group in members.values():
        matrix = torch.from_numpy(vectors.matrix[group])
        neighbors = min(top_k, len(group) - 1)
        for start in range(0, len(group), _ROWS_AT_A_TIME):
            similarity = matrix[start : start + _ROWS_AT_A_TIME] @ matrix.T
            similarity.diagonal(start).fill_(-torch.inf)  # the word itself
            best = similarity.topk(neighbors)
            for offset, (values, columns) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):
                yield (
                    vectors.words[group[start + offset]],
                    [
                        vectors.words[group[column]]
                        for value, column in zip(values, columns, strict=True)
                        if min_similarity is None or value >= min_similarity
                    ],
                )


def at_least(vectors: Vectors, min_similarity: float) -> Callable[[str, str], bool]:
    """A function that tells whether two words have a cosine of at least ``min_similarity``; both need a vector."""
    rows = {word: row for row, word in enumerate(vectors.words)}
    matrix = vectors.matrix
    return lambda word, other: (
        word in rows and other in rows and bool(matrix[rows[word]] @ matrix[rows[other]] >= min_similarity)
    )


def _progress(path: str | Path) -> tqdm:
    name = Path(path).name
    return tqdm(
        total=os.path.getsize(path), unit="B", unit_scale=True, desc=f"Reading {name}", leave=False, disable=None
    )


def _dimension(path: str | Path, number: int, fields: list[bytes]) -> int:
    """How many numbers the first line has; raises InputError if it is not a word followed by numbers."""
    if len(fields) < 2 or not all(map(_is_number, fields[1:])):
        raise InputError(
            f"{path}, line {number}: not a word followed by numbers; "
            "--vectors needs an uncompressed text file of GloVe or word2vec"
        )
    return len(fields) - 1


def _word(path: str | Path, number: int, fields: list[bytes], dimension: int) -> str | None:
    """The word of a line, or None if it is not UTF-8; raises InputError unless ``dimension`` numbers follow."""
    excess = len(fields) - dimension - 1
    if excess < 0 or any(map(_is_number, fields[1 : 1 + excess])):
        raise InputError(
            f"{path}, line {number}: {max(len(fields) - 1, 0)} numbers, not {dimension} as before; download it again"
        )
    try:
        return b" ".join(fields[: 1 + excess]).decode()
    except UnicodeDecodeError:
        return None


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _unit_vector(path: str | Path, number: int, fields: list[bytes]) -> np.ndarray:
    """The numbers of a line as a vector of length 1; raises InputError if they have no direction."""
    try:
        vector = np.array([float(field) for field in fields])
    except ValueError as error:
        raise InputError(f"{path}, line {number}: {error}; correct or delete the line") from None
    length = np.linalg.norm(vector)
    if not np.isfinite(length):
        raise InputError(f"{path}, line {number}: contains a number that is not finite; correct or delete the line")
    if length == 0:
        raise InputError(f"{path}, line {number}: all numbers are zero; delete the line")
    return (vector / length).astype(np.float32)
