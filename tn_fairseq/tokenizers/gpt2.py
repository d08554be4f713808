"""GPT-2's byte-level BPE: ``encoder.json`` and ``vocab.bpe``."""

from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from ..errors import InputError, first_line
from ..files import read_bytes, read_text
from .base import REMEDY, Tokenizer
from .fast import FastTokenizer


def load_gpt2(path: Path, vocabulary: dict) -> Tokenizer:
    merges_path = path.parent / "vocab.bpe"
    if not merges_path.exists():
        raise InputError(f"{merges_path}: no such file; put the vocab.bpe of {path.name} in the same folder")
    ids = vocabulary.values()
    if not all(type(index) is int and index >= 0 for index in ids) or len(set(ids)) != len(vocabulary):
        raise InputError(f"{path}: does not map each piece to a unique number; use GPT-2's encoder.json")
    if not vocabulary.keys() >= set(pre_tokenizers.ByteLevel.alphabet()):
        raise InputError(f"{path}: lacks pieces for some of the 256 bytes; use GPT-2's encoder.json")
    version, *lines = read_text(merges_path, REMEDY).replace("\r\n", "\n").removesuffix("\n").split("\n")
    if not version.startswith("#version"):
        # fairseq always skips the first line, so its encoder would lose a merge.
        raise InputError(f"{merges_path}, line 1: not '#version: ...'; use the vocab.bpe that belongs to {path.name}")
    merges: list[Any] = [tuple(line.split(" ")) for line in lines]
    for number, merge in enumerate(merges, 2):
        if len(merge) != 2:
            raise InputError(f"{merges_path}, line {number}: not two pieces; use the file that belongs to {path.name}")
    try:
        backend = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    except Exception as error:  # the library raises plain Exception
        raise InputError(
            f"{merges_path}: does not fit {path.name} ({first_line(error)}); use files of the same release"
        ) from None
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    files = {"encoder.json": read_bytes(path, REMEDY), "vocab.bpe": read_bytes(merges_path, REMEDY)}
    description = f"GPT-2 byte-level BPE of {path.name}, {len(vocabulary):,} pieces, numbers in dict.txt"
    pieces = {index: piece for piece, index in vocabulary.items()}
    return FastTokenizer(backend, description, files, pieces, {}, {index: str(index) for index in ids})
