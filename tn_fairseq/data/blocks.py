"""Blocks of text that are read for a complete batch at once."""

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset
from fairseq.data.indexed_dataset import MMapIndexedDataset
from torch import Tensor

from ..core.errors import InputError
from .data_bin import files_of


class Text:
    """The tokens of sentences one after another, as in their files."""

    def __init__(self, sentences: FairseqDataset):
        """Raises InputError for sentences in a format of fairseq other than mmap."""
        self.files = files_of(sentences)
        if not all(isinstance(file, MMapIndexedDataset) for file in self.files):
            raise InputError("the data are not of fairseq's format mmap; run tn-fairseq data binarize again")
        self.ends = np.cumsum([file.sizes.sum() for file in self.files])

    def take(self, positions: np.ndarray) -> np.ndarray:
        """The tokens at positions, of any shape; those after the end are any tokens."""
        tokens = _take(self.files[0], positions)
        for file, begin in zip(self.files[1:], self.ends):
            tokens = np.where(positions < begin, tokens, _take(file, np.maximum(positions - begin, 0)))
        return tokens


def _take(file: MMapIndexedDataset, positions: np.ndarray) -> np.ndarray:
    # a view of the mapped file, which is not kept, so that a dataset that is pickled holds only the file's name
    return np.frombuffer(file._bin_buffer, dtype=file._index.dtype).take(positions, mode="clip")


class BlockDataset(FairseqDataset):
    """Blocks of token ids; subclasses define `sizes` and `rows`."""

    sizes: np.ndarray

    def rows(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The blocks of the given indices, (B) -> padded tokens, (B, T) int64, and lengths, (B) int64."""
        raise NotImplementedError

    def inputs(self, tokens: Tensor) -> dict[str, Tensor]:
        """More inputs of the model, from the padded text, (B, T)."""
        return {}

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> Tensor:
        return torch.from_numpy(self.rows(np.array([index]))[0][0])


class ContiguousBlocks(BlockDataset):
    """Blocks of contiguous text, which begin with ``<s>``."""

    def __init__(self, sentences: FairseqDataset, slices: np.ndarray, dictionary: Dictionary, longest: int):
        """`slices`, (N, 2), are the begin and end of each block in the text; longer ones are cut to `longest`."""
        super().__init__()
        self.text = Text(sentences)
        self.first_symbol, self.padding_index = dictionary.bos(), dictionary.pad()
        self.begins = slices[:, 0]
        lengths = np.minimum(slices[:, 1] - slices[:, 0], longest - 1) + 1
        self.sizes = lengths.astype(np.promote_types(np.uint16, np.min_scalar_type(longest)))

    def rows(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lengths = self.sizes[indices].astype(np.int64)
        columns = np.arange(lengths.max())
        begins = self.begins[indices].astype(np.int64)
        text = self.text.take(begins[:, None] + columns - 1)
        tokens = np.where(columns < lengths[:, None], text, self.padding_index).astype(np.int64)
        tokens[:, 0] = self.first_symbol
        return tokens, lengths
