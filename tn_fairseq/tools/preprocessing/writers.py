"""Write what fairseq reads: sentences as ``.bin`` and ``.idx``, or as text, and the vocabulary next to them."""

import json
import os
import struct
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder, best_fitting_int_dtype

from ...core.dictionary import load_dictionary, without_mask
from ...core.errors import InputError
from ...tokenizers.base import Tokenizer

INDEX_ROWS = 1 << 20  # rows of an index that are processed at a time
LENGTHS = "lengths.json"  # in the data of a task for fine-tuning: the options that decided how long its rows are


class Vocabulary:
    """A tokenizer, with the released ``dict.txt`` at ``dict_path``, or else with the tokenizer's own dictionary.

    ``<mask>`` is left out of the ``dictionary``, because fairseq's tasks append it. ``table`` maps token ids to indices
    in it, in the type of a .bin file. Raises InputError for a file that cannot be read, or is of another tokenizer.
    """

    def __init__(self, tokenizer: Tokenizer, dict_path: str | Path | None):
        self.tokenizer = tokenizer
        self.dictionary = without_mask(tokenizer.dictionary() if dict_path is None else load_dictionary(dict_path))
        self.eos, self.unk = self.dictionary.eos(), self.dictionary.unk()
        self.table = tokenizer.lookup_table(self.dictionary).astype(best_fitting_int_dtype(len(self.dictionary)))

    def write(self, folder: Path) -> None:
        """Write ``dict.txt`` and the tokenizer's files to a folder."""
        self.write_tokenizer(folder)
        self.dictionary.save(str(folder / "dict.txt"))

    def write_tokenizer(self, folder: Path) -> None:
        """Write the tokenizer's files to a new folder ``tokenizer`` in ``folder``."""
        (folder / "tokenizer").mkdir()
        for name, content in self.tokenizer.files.items():
            (folder / "tokenizer" / name).write_bytes(content)


def write_lengths(folder: Path, **lengths: int) -> None:
    """Write ``lengths.json``."""
    (folder / LENGTHS).write_text(json.dumps(lengths) + "\n", encoding="utf-8")


class BinaryWriter(MMapIndexedDatasetBuilder):
    """fairseq's builder, but it takes many sentences at once and keeps no lengths in memory."""

    def __init__(self, prefix: Path, dictionary: Dictionary):
        super().__init__(f"{prefix}.bin", dtype=best_fitting_int_dtype(len(dictionary)))
        with MMapIndexedDataset.Index.writer(f"{prefix}.idx", self._dtype):
            pass  # writes the header
        self._index = open(f"{prefix}.idx", "r+b")  # noqa: SIM115, closed in close()
        self._count, self._count_position = 0, self._index.seek(0, os.SEEK_END)
        self._index.write(struct.pack("<Q", 0))  # close() writes the number of sentences here

    def append(self, ids: np.ndarray, lengths: np.ndarray) -> None:
        """Append sentences: (tokens,) indices and (sentences,) lengths."""
        self._data_file.write(ids.astype(self._dtype, copy=False).data)
        self._index.write(lengths.astype(np.int32, copy=False).data)
        self._count += len(lengths)

    def close(self) -> None:
        """Append the offset of each sentence to the index, in parts; fairseq would hold all of them in memory."""
        self._data_file.close()
        self._index.flush()
        start = 0
        for row in range(0, self._count, INDEX_ROWS):
            place, rows = self._count_position + 8 + 4 * row, min(INDEX_ROWS, self._count - row)
            sizes = np.fromfile(self._index.name, np.int32, rows, offset=place)
            ends = start + np.cumsum(sizes, dtype=np.int64) * np.dtype(self._dtype).itemsize
            self._index.write(np.concatenate([[start], ends[:-1]]).data)
            start = ends[-1]
        self._index.seek(self._count_position)
        self._index.write(struct.pack("<Q", self._count))
        self._index.close()


class TextWriter:
    """The pieces as text, one sentence per line: the input of ``fairseq-preprocess``.

    Raises InputError for a piece that fairseq does not find in a line, because it splits lines at all white space.
    """

    def __init__(self, prefix: Path, dictionary: Dictionary):
        self._file = open(f"{prefix}.txt", "w", encoding="utf-8", newline="\n")  # noqa: SIM115, closed in close()
        self._symbols = np.array(dictionary.symbols, dtype=object)
        self._splits = np.array([symbol.split() != [symbol] for symbol in dictionary.symbols])

    def append(self, ids: np.ndarray, lengths: np.ndarray) -> None:
        """Append sentences: (tokens,) indices and (sentences,) lengths."""
        if self._splits[ids].any():
            piece = f"the piece {self._symbols[ids[self._splits[ids]][0]]!r}"
            problem = f"the text has {piece}, but fairseq-preprocess splits lines at all white space"
            raise InputError(f"--text-only: {problem}; binarize without --text-only")
        for sentence in np.split(ids, np.cumsum(lengths)[:-1]):
            self._file.write(" ".join(self._symbols[sentence[:-1]]) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
