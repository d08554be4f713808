"""Word vectors as a NumPy matrix with a list of its words, as packages on PyPI contain them."""

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from ..errors import InputError, first_line
from ..files import read_text

_FOLDER = "--vectors needs a folder with one matrix (.npy) and one list of its words (.txt or .parquet)"
_WORDS = "give the list of the matrix's words, a .txt file with one word per line or a .parquet file with one column"


def read_vector_folder(folder: Path, needed: Collection[str]) -> tuple[dict[str, np.ndarray], str]:
    """Read the unit vectors (dimension,), float32, of the words in ``needed`` from ``folder``, and describe its files.

    The folder has one matrix (words, dimension) of floating-point numbers in NumPy's format, and one list of the words
    of its rows: a text file, or a Parquet file, which needs pyarrow. If a word occurs twice, the first vector counts.
    The matrix is mapped into memory, and nothing is unpickled. Raises InputError with the file, and with the row of a
    vector that is not finite or has no direction.
    """
    matrix_path = _only_file(folder, [".npy"])
    words_path = _only_file(folder, [".txt", ".parquet"])
    matrix = _read_matrix(matrix_path)
    words = _read_words(words_path)
    if len(words) != len(matrix):
        raise InputError(
            f"{words_path}: contains {len(words)} words, but {matrix_path.name} has {len(matrix)} rows; {_WORDS}"
        )
    rows: dict[str, int] = {}
    for row, word in enumerate(words):
        if word in needed:
            rows.setdefault(word, row)
    vectors = matrix[list(rows.values())].astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1)
    faulty = ~(np.isfinite(lengths) & (lengths > 0))
    if faulty.any():
        word, row = list(rows.items())[faulty.argmax()]
        fault = "all numbers are zero" if lengths[faulty.argmax()] == 0 else "contains a number that is not finite"
        raise InputError(f"{matrix_path}, row {row} ({word!r}): {fault}; delete the row and its word")
    units = (vectors / lengths[:, None]).astype(np.float32)
    version = (
        f"{matrix_path.name} with {words_path.name}, {len(matrix)} vectors of dimension {matrix.shape[1]}, "
        f"sha256 {_digest(matrix_path, words_path)}"
    )
    return dict(zip(rows, units, strict=True)), version


def _only_file(folder: Path, suffixes: Sequence[str]) -> Path:
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix in suffixes)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; {_FOLDER}") from None
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "no such file"
        raise InputError(f"{folder}: files that end in {' or '.join(suffixes)}: {names}; {_FOLDER}")
    return found[0]


def _read_matrix(path: Path) -> np.ndarray:
    try:
        matrix = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; {_FOLDER}") from None
    except Exception as error:  # a damaged header fails in many ways
        raise InputError(f"{path}: not a matrix in NumPy's format ({first_line(error)}); {_FOLDER}") from None
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or matrix.shape[1] == 0:
        raise InputError(
            f"{path}: {matrix.dtype} values of shape {matrix.shape}, must be floating-point numbers of shape "
            f"(words, dimension); {_FOLDER}"
        )
    return matrix


def _read_words(path: Path) -> list[str]:
    if path.suffix == ".txt":
        # not splitlines, because words of published files contain rare line separators
        return [line.removesuffix("\r") for line in read_text(path, _WORDS).removesuffix("\n").split("\n")]
    try:
        from pyarrow import ArrowException, parquet, types
    except ImportError:
        raise InputError(
            f"{path}: reading Parquet files needs pyarrow; get it with pip install 'tn_fairseq[parquet]'"
        ) from None
    try:
        table = parquet.read_table(path)
        kinds = table.schema.types
        if len(kinds) == 1 and (types.is_string(kinds[0]) or types.is_large_string(kinds[0])):
            return table.column(0).to_pylist()
    except (ArrowException, OSError, ValueError) as error:  # ValueError: a word is not UTF-8
        raise InputError(f"{path}: not a Parquet file, or damaged ({first_line(error)}); {_WORDS}") from None
    columns = ", ".join(f"{field.name} ({field.type})" for field in table.schema)
    raise InputError(f"{path}: its columns are {columns}, must be one column of text; {_WORDS}")


def _digest(*paths: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
