"""Write what fairseq reads: sentences as ``.bin`` and ``.idx``, or as text, and the vocabulary next to them."""

import io
import json
import os
import struct
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder, best_fitting_int_dtype

from ..dictionary import MASK, load_dictionary
from ..tokenizers.base import Tokenizer

INDEX_ROWS = 1 << 20  # rows of an index that are processed at a time
LENGTHS = "lengths.json"  # in the data of a task for fine-tuning: the options that decided how long its rows are


def choose_dictionary(tokenizer: Tokenizer, path: str | Path | None) -> tuple[Dictionary, np.ndarray]:
    """The released ``dict.txt`` at ``path``, or else the tokenizer's dictionary, and the index of each token id in it.

    ``<mask>`` is left out, because fairseq's tasks append it. Raises InputError for a file that cannot be read, or is
    of another tokenizer.
    """
    if path is None:
        dictionary = tokenizer.dictionary()
    else:
        dictionary = load_dictionary(path)
        if dictionary.symbols[-1] == MASK:
            dictionary.symbols.pop()
            dictionary.count.pop()
            del dictionary.indices[MASK]
    return dictionary, tokenizer.lookup_table(dictionary)


def dict_txt(dictionary: Dictionary) -> bytes:
    """The dictionary as the content of a ``dict.txt``."""
    text = io.StringIO()
    dictionary.save(text)
    return text.getvalue().encode()


def write_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """Write the tokenizer's files to a new folder ``tokenizer`` in ``folder``."""
    (folder / "tokenizer").mkdir()
    for name, content in tokenizer.files.items():
        (folder / "tokenizer" / name).write_bytes(content)


def write_lengths(folder: Path, **lengths: int) -> None:
    """Write ``lengths.json``."""
    (folder / LENGTHS).write_text(json.dumps(lengths) + "\n", encoding="utf-8")


class BinaryWriter(MMapIndexedDatasetBuilder):
    """fairseq's builder, but it takes many sentences at once and keeps no lengths in memory."""

    def __init__(self, prefix: Path, dictionary: Dictionary):
        super().__init__(f"{prefix}.bin", dtype=best_fitting_int_dtype(len(dictionary)))
        self._index_path = f"{prefix}.idx"
        with MMapIndexedDataset.Index.writer(self._index_path, self._dtype):
            pass  # writes the header
        self._index = open(self._index_path, "r+b")  # noqa: SIM115, closed in close()
        self._count_position = self._index.seek(0, os.SEEK_END)
        self._index.write(struct.pack("<Q", 0))  # the number of sentences, written by close()

    def append(self, ids: np.ndarray, lengths: np.ndarray) -> None:
        """Append sentences: (tokens,) indices and (sentences,) lengths."""
        self._data_file.write(ids.astype(self._dtype, copy=False).data)
        self._index.write(lengths.astype(np.int32, copy=False).data)

    def close(self) -> None:
        """Append the offset of each sentence to the index, in parts; fairseq would hold all of them in memory."""
        self._data_file.close()
        first = self._count_position + 8
        count = (self._index.seek(0, os.SEEK_END) - first) // 4
        start = 0
        for row in range(0, count, INDEX_ROWS):
            self._index.seek(first + 4 * row)
            sizes = np.frombuffer(self._index.read(4 * min(INDEX_ROWS, count - row)), dtype=np.int32)
            ends = start + np.cumsum(sizes, dtype=np.int64) * np.dtype(self._dtype).itemsize
            self._index.seek(0, os.SEEK_END)
            self._index.write(np.concatenate([[start], ends[:-1]]).data)
            start = int(ends[-1])
        self._index.seek(self._count_position)
        self._index.write(struct.pack("<Q", count))
        self._index.close()


class TextWriter:
    """The pieces as text, one sentence per line: the input of ``fairseq-preprocess``."""

    def __init__(self, prefix: Path, dictionary: Dictionary):
        self._file = open(f"{prefix}.txt", "w", encoding="utf-8", newline="\n")  # noqa: SIM115, closed in close()
        self._symbols = np.array(dictionary.symbols, dtype=object)

    def append(self, ids: np.ndarray, lengths: np.ndarray) -> None:
        """Append sentences: (tokens,) indices and (sentences,) lengths."""
        for sentence in np.split(ids, np.cumsum(lengths)[:-1]):
            self._file.write(" ".join(self._symbols[sentence[:-1]]) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
