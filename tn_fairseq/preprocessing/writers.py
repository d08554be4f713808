"""Write sentences to files: fairseq's ``.bin`` and ``.idx``, or text."""

import os
import struct
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder, best_fitting_int_dtype

INDEX_ROWS = 1 << 20  # rows of an index that are processed at a time


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
