"""Datasets: from binarized text to masked batches."""

import os
import struct

import numpy as np
from fairseq.data import Dictionary, FairseqDataset, data_utils
from fairseq.data.indexed_dataset import MMapIndexedDataset

from ..core.errors import InputError

_TOKENS = 1 << 24  # counted at a time


def load_sentences(
    path: str | os.PathLike, command: str, dictionary: Dictionary | None = None, combine: bool = False
) -> FairseqDataset:
    """The sentences in ``path``.bin and .idx; ``dictionary`` and ``combine`` are passed to fairseq.

    ``command`` is the preprocessing command that writes such files; errors name it.

    Raises InputError if the files are missing, damaged, or do not belong together.
    """
    try:
        sentences = data_utils.load_indexed_dataset(str(path), dictionary, combine=combine)
    except (OSError, ValueError, AssertionError, struct.error) as error:
        raise InputError(f"{path}.idx: not a fairseq dataset ({error}); run tn-fairseq data {command} again") from None
    if sentences is None:
        raise InputError(f"there is no {path}.bin with a {path}.idx; write them with tn-fairseq data {command}")
    if isinstance(sentences, MMapIndexedDataset):
        expected = int(sentences.sizes.sum()) * sentences._index.dtype().itemsize
        if os.path.getsize(f"{path}.bin") != expected:
            raise InputError(
                f"{path}.bin does not have the {expected:,} bytes of its .idx; run tn-fairseq data {command} again"
            )
    return sentences


def count_symbols(path: str | os.PathLike, dictionary: Dictionary) -> np.ndarray:
    """How often each symbol occurs in ``path``.bin, (V), without fairseq's special symbols; raises InputError."""
    sentences = load_sentences(path, "binarize", dictionary)
    if not isinstance(sentences, MMapIndexedDataset):
        raise InputError(f"{path}.idx: not of fairseq's format mmap; run tn-fairseq data binarize again")
    tokens = np.memmap(f"{path}.bin", dtype=sentences._index.dtype, mode="r")
    counts = np.zeros(len(dictionary), dtype=np.int64)
    for start in range(0, len(tokens), _TOKENS):
        counts += np.bincount(tokens[start : start + _TOKENS], minlength=len(dictionary))
    counts[: dictionary.nspecial] = 0
    return counts
