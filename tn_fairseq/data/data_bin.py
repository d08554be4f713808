"""Files of binarized text."""

import os
import struct
from collections.abc import Sequence

import numpy as np
from fairseq.data import ConcatDataset, Dictionary, FairseqDataset, data_utils
from fairseq.data.indexed_dataset import MMapIndexedDataset

from ..core.errors import InputError

_TOKENS = 1 << 24  # counted at a time


def load_sentences(
    path: str | os.PathLike, command: str, dictionary: Dictionary | None = None, combine: bool = False
) -> FairseqDataset:
    """The sentences in ``path``.bin and .idx, and with ``combine`` also in ``path``1.bin, ``path``2.bin, and so on.

    ``command`` is the preprocessing command that writes such files; errors name it.

    Raises InputError if the files are missing, damaged, or do not belong together.
    """
    try:
        sentences = data_utils.load_indexed_dataset(str(path), dictionary, combine=combine)
    except (OSError, ValueError, AssertionError, struct.error) as error:
        raise InputError(f"{path}.idx: not a fairseq dataset ({error}); run tn-fairseq data {command} again") from None
    if sentences is None:
        raise InputError(f"there is no {path}.bin with a {path}.idx; write them with tn-fairseq data {command}")
    for number, file in enumerate(files_of(sentences)):
        if isinstance(file, MMapIndexedDataset):
            name, expected = f"{path}{number or ''}.bin", int(file.sizes.sum()) * file._index.dtype().itemsize
            if os.path.getsize(name) != expected:
                raise InputError(
                    f"{name} does not have the {expected:,} bytes of its .idx; run tn-fairseq data {command} again"
                )
    return sentences


def files_of(sentences: FairseqDataset) -> Sequence[FairseqDataset]:
    """The files of sentences, in their order."""
    return sentences.datasets if isinstance(sentences, ConcatDataset) else [sentences]


def count_symbols(path: str | os.PathLike, dictionary: Dictionary) -> np.ndarray:
    """How often each symbol occurs in the training text ``path``, (V), without fairseq's special symbols.

    Raises InputError for files that cannot be read.
    """
    counts = np.zeros(len(dictionary), dtype=np.int64)
    for file in files_of(load_sentences(path, "binarize", dictionary, combine=True)):
        if not isinstance(file, MMapIndexedDataset):
            raise InputError(f"{path}.idx: not of fairseq's format mmap; run tn-fairseq data binarize again")
        tokens = np.frombuffer(file._bin_buffer, dtype=file._index.dtype)
        for start in range(0, len(tokens), _TOKENS):
            counts += np.bincount(tokens[start : start + _TOKENS], minlength=len(dictionary))
    counts[: dictionary.nspecial] = 0
    return counts
