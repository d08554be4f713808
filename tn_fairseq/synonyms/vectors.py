"""Word vectors in files: a text file of GloVe or word2vec, or a NumPy matrix with a list of its words."""

import hashlib
import os
import re
import statistics
from codecs import BOM_UTF8
from collections.abc import Collection, Sequence
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from ..core.errors import InputError, first_line
from ..core.files import read_text, sha256
from .neighbors import Vectors

_TEXT = "--vectors needs an uncompressed text file of GloVe or word2vec, or a folder"
_CONVERT = (
    "convert it with gensim: KeyedVectors.load_word2vec_format(FILE, binary=True).save_word2vec_format('vectors.txt')"
)
_SAMPLE_LINES = 100  # that decide the dimension
_SAMPLE_BYTES = 1000  # that tell text from binary numbers
_FOLDER = (
    "--vectors needs a folder with one matrix (.npy) and one list of the words of its rows: .txt with one word per "
    "line, or .parquet with one column; convert other vectors of gensim: KeyedVectors.load(FILE)"
    ".save_word2vec_format('vectors.txt')"
)


class _Found(NamedTuple):
    rows: dict[str, tuple[np.ndarray, str]]  # the vector of a word, and where it is, for error messages
    version: str
    not_utf8: int = 0


def read_vectors(path: str | Path, wanted: Sequence[str]) -> tuple[Vectors, int]:
    """Read the vectors of the words in ``wanted`` from a text file or a folder, and scale them to length 1.

    Also returns how many lines of a text file were skipped because their word is not UTF-8, which published files
    contain. A word that is not in the file gets the vector of its lowercase form (an uncased file for a cased
    dictionary). If a word occurs twice, the first vector counts. Raises InputError with the line or row of a vector
    that is not finite or has no direction, if no word in ``wanted`` has a vector, and for an invalid file.
    """
    needed = {form for word in wanted for form in (word, word.lower())}
    read = _read_folder if Path(path).is_dir() else _read_text
    try:
        rows, version, not_utf8 = read(Path(path), needed)
    except OSError as error:
        raise InputError(f"{error.filename or path}: {error.strerror}; {_TEXT}") from None
    forms = {word: form for word in wanted for form in (word.lower(), word) if form in rows}
    if not forms:
        raise InputError(
            f"{path}: contains none of the dictionary's whole words; give vectors of its language with --vectors"
        )
    matrix = np.stack([rows[form][0] for form in forms.values()]).astype(np.float64)
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(matrix, axis=1)
    for form, length in zip(forms.values(), lengths, strict=True):
        if not 0 < length < np.inf:
            fault = "all numbers are zero" if length == 0 else "contains a number that is not finite"
            raise InputError(f"{rows[form][1]}: {fault}; correct or delete this vector")
    return Vectors(list(forms), (matrix / lengths[:, None]).astype(np.float32), version), not_utf8


def _read_text(path: Path, needed: Collection[str]) -> _Found:
    """Read the words in ``needed`` from lines ``word x1 ... xn``, after an optional line ``count dimension``.

    Every line must end in the same number of numbers. They are counted from the right, because words can be phrases
    with numbers (``windows 7``) or white space.
    """
    rows: dict[str, tuple[np.ndarray, str]] = {}
    digest = hashlib.sha256()
    count, not_utf8, dimension, promised = 0, 0, 0, None
    with open(path, "rb") as file, progress(path) as shown:
        sample = list(islice(file, _SAMPLE_LINES))
        for number, line in enumerate(chain(sample, file), start=1):
            digest.update(line)
            shown.update(len(line))
            fields = line.split()
            place = f"{path}, line {number}"
            if number == 1:
                fields = line.removeprefix(BOM_UTF8).split()
                if line.startswith(b"\x1f\x8b"):
                    raise InputError(f"{path}: compressed with gzip; decompress it, for example with gunzip")
                if len(fields) == 2 and all(map(bytes.isdigit, fields)):
                    promised, dimension = map(int, fields)
                    if re.search(rb"[\0-\x08\x0e-\x1f]", b"".join(sample[1:])[:_SAMPLE_BYTES]):
                        raise InputError(f"{path}: the binary format of word2vec; {_CONVERT}")
                    continue
                # of most lines, because a word that ends in a number makes it one more
                dimension = statistics.mode(map(_numbers_at_end, sample))
                if dimension < 1 or not _numbers_at_end(line):
                    raise InputError(f"{place}: not a word followed by numbers; {_TEXT}")
            count += 1
            if count == 1:
                _check_language(place, line.decode(errors="replace"), f"sed -n 's|^/c/en/||p' {path.name}")
            size = len(fields) - dimension  # of the word
            if size < 0 or size == 0 and not line[:1].isspace():
                numbers = max(len(fields) - 1, 0)
                raise InputError(f"{place}: {numbers} numbers, not {dimension} as before; download it again")
            try:
                word = b" ".join(fields[:size]).decode()
            except UnicodeDecodeError:
                not_utf8 += 1
                continue
            if word in needed and word not in rows:
                try:
                    rows[word] = np.array([float(field) for field in fields[size:]]), place
                except ValueError as error:
                    raise InputError(f"{place}: {error}; correct or delete this vector") from None
    if not count:
        raise InputError(f"{path}: contains no vectors; {_TEXT}")
    if promised not in (None, count):
        raise InputError(f"{path}: its first line promises {promised} vectors, but it has {count}; download it again")
    version = f"{path.name}, {count} vectors of dimension {dimension}, sha256 {digest.hexdigest()}"
    return _Found(rows, version, not_utf8)


def _check_language(place: str, line: str, command: str) -> None:
    if line.startswith("/c/"):
        word = line.split()[0]
        raise InputError(
            f"{place}: {word} is a word with its language, as in ConceptNet; remove it, such as with {command}"
        )


def _numbers_at_end(line: bytes) -> int:
    fields = line.split()
    numbers = list(takewhile(_is_number, reversed(fields)))
    return min(len(numbers), len(fields) - (not line[:1].isspace())) if fields else 0


def progress(path: Path) -> tqdm:
    """A progress bar over the bytes of a file."""
    name, size = path.name, os.path.getsize(path)
    return tqdm(total=size, unit="B", unit_scale=True, desc=f"Reading {name}", leave=False, disable=None)


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_folder(folder: Path, needed: Collection[str]) -> _Found:
    """Read the words in ``needed`` from a matrix (words, dimension) in NumPy's format, and the list of its words.

    The matrix is mapped into memory, and nothing is unpickled.
    """
    matrix_path, words_path = _only_file(folder, ".npy"), _only_file(folder, ".txt", ".parquet")
    try:
        matrix = np.lib.format.open_memmap(matrix_path, mode="r")
    except Exception as error:  # a damaged header fails in many ways
        raise InputError(f"{matrix_path}: not a matrix in NumPy's format ({first_line(error)}); {_FOLDER}") from None
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or matrix.shape[1] == 0:
        raise InputError(
            f"{matrix_path}: {matrix.dtype} values of shape {matrix.shape}, must be floating-point numbers of shape "
            f"(words, dimension); {_FOLDER}"
        )
    words = _read_words(words_path)
    if len(words) != len(matrix):
        names = f"{len(words)} words, but {matrix_path.name} has {len(matrix)} rows"
        raise InputError(f"{words_path}: contains {names}; {_FOLDER}")
    change = f"sed -i 's|^/c/en/||' {words_path.name}"
    if words_path.suffix == ".parquet":
        change = "pandas.read_parquet(FILE).replace('^/c/en/', '', regex=True).to_parquet(FILE)"
    _check_language(f"{words_path}, row 0", words[0] if words else "", change)
    rows = {word: row for row, word in reversed(list(enumerate(words))) if word in needed}  # the first of equal ones
    digest = hashlib.sha256(b"".join(bytes.fromhex(sha256(path)) for path in (matrix_path, words_path))).hexdigest()
    size = f"{len(matrix)} vectors of dimension {matrix.shape[1]}"
    version = f"{matrix_path.name} with {words_path.name}, {size}, sha256 {digest}"
    return _Found({word: (matrix[row], f"{matrix_path}, row {row} ({word!r})") for word, row in rows.items()}, version)


def _only_file(folder: Path, *suffixes: str) -> Path:
    paths = sorted(path for path in folder.iterdir() if path.suffix in suffixes)
    if len(paths) != 1:
        names = ", ".join(path.name for path in paths) or "no such file"
        raise InputError(f"{folder}: files that end in {' or '.join(suffixes)}: {names}; {_FOLDER}")
    return paths[0]


def _read_words(path: Path) -> list[str]:
    if path.suffix == ".txt":
        # not splitlines, because words of published files contain rare line separators
        text = read_text(path, _FOLDER, "utf-8-sig")
        return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    from pyarrow import ArrowException, parquet

    try:
        table = parquet.read_table(path)
        columns = list(table.to_pydict().values())
    except (ArrowException, OSError, ValueError) as error:  # ValueError: a word is not UTF-8
        raise InputError(f"{path}: not a Parquet file, or damaged ({first_line(error)}); {_FOLDER}") from None
    kinds = list(map(str, table.schema.types))
    if kinds not in (["string"], ["large_string"]):
        raise InputError(f"{path}: columns of type {', '.join(kinds)}, must be one column of text; {_FOLDER}")
    return columns[0]
