"""Datasets: binarised text in, masked batches out."""

import os
import struct

from fairseq.data import Dictionary, FairseqDataset, data_utils
from fairseq.data.indexed_dataset import MMapIndexedDataset

from ..errors import InputError


def load_sentences(
    path: str | os.PathLike, script: str, dictionary: Dictionary | None = None, combine: bool = False
) -> FairseqDataset:
    """The sentences that ``script`` wrote to ``path``.bin and .idx; ``dictionary`` and ``combine`` are fairseq's.

    Raises InputError where the files are missing, damaged, or do not belong together.
    """
    try:
        sentences = data_utils.load_indexed_dataset(str(path), dictionary, combine=combine)
    except (OSError, ValueError, AssertionError, struct.error) as error:
        raise InputError(f"{path}.idx: not a fairseq dataset ({error}); run {script} again") from None
    if sentences is None:
        raise InputError(f"there is no {path}.bin with its {path}.idx; write them with {script}")
    if isinstance(sentences, MMapIndexedDataset):
        expected = int(sentences.sizes.sum()) * sentences._index.dtype().itemsize
        if os.path.getsize(f"{path}.bin") != expected:
            raise InputError(f"{path}.bin is not the {expected:,} bytes that its .idx says; run {script} again")
    return sentences
