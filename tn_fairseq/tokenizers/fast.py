"""Tokenizers of the ``tokenizers`` library: its ``tokenizer.json``, and GPT-2's files."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers

from ..core.errors import InputError, first_line
from ..core.files import read_bytes, read_json_object, read_text
from .base import (
    BERT_NAMES,
    REMEDY,
    ROBERTA_NAMES,
    TOKEN_FIELDS,
    Tokenizer,
    by_id,
    describe_size,
    find_special_ids,
    find_symbols,
    join,
    one_line,
)


@dataclass(eq=False, repr=False)
class FastTokenizer(Tokenizer):
    """A wrapper of a tokenizer of the ``tokenizers`` library, the ``backend``."""

    backend: tokenizers.Tokenizer

    def __post_init__(self) -> None:
        # A tokenizer.json can enable both, which would silently truncate and pad lines.
        self.backend.no_truncation()
        self.backend.no_padding()
        self.backend.encode_special_tokens = True  # a literal "[MASK]" is text

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state
        self.backend.encode_special_tokens = True  # the library does not pickle this setting

    def encode_chunk(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        with self._one_line_errors():
            return join(e.ids for e in self.backend.encode_batch_fast(lines, add_special_tokens=False))

    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        with self._one_line_errors():
            encoding = self.backend.encode(one_line(text), add_special_tokens=False)
        offsets = []
        for begin, end in encoding.offsets:
            stripped = text[begin:end].lstrip()
            begin = end - len(stripped)
            offsets.append((begin, begin + len(stripped.rstrip())))
        return np.array(encoding.ids, dtype=np.int32), np.array(offsets, dtype=np.int32).reshape(-1, 2)

    def encode_continuation(self, text: str) -> list[int]:
        first = re.split(r"\s", text, maxsplit=1)[0] if self._adds_to_all_words else text
        rest = text[len(first) :]
        with self._one_line_errors():
            ids = self._inside_a_line.encode(first, add_special_tokens=False).ids
            return ids + (self.backend.encode(rest, add_special_tokens=False).ids if rest.strip() else [])

    def decode(self, token_ids: Sequence[int]) -> str:
        return self.backend.decode(list(token_ids))

    @cached_property
    def _adds_to_all_words(self) -> bool:
        """Whether a space is added before every word. Inside a line, the first word must not get one."""
        return '"prepend_scheme":"always"' in self.backend.to_str()

    @cached_property
    def _inside_a_line(self) -> tokenizers.Tokenizer:
        content = self.backend.to_str()
        # the options of Metaspace and ByteLevel that add a space to the start of a text
        for value in ("first", "always"):
            content = content.replace(f'"prepend_scheme":"{value}"', '"prepend_scheme":"never"')
        content = content.replace('"add_prefix_space":true', '"add_prefix_space":false')
        backend = tokenizers.Tokenizer.from_str(content)
        backend.encode_special_tokens = True
        return backend

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        """Raise InputError for a tokenizer that loads but cannot encode, such as one without its unknown token."""
        try:
            yield
        except Exception as error:  # the library raises plain Exception
            reason = first_line(error)
            raise InputError(f"{self.description}: cannot encode the text ({reason}); save it again") from None


def load_tokenizer_json(path: Path) -> Tokenizer:
    files = {}
    for name in ("tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        if (path.parent / name).exists():
            # check them now, because users of the copy will read them
            (read_text if name == "vocab.txt" else read_json_object)(path.parent / name, REMEDY)
            files[name] = read_bytes(path.parent / name, REMEDY)
    return read_tokenizer_json(path, read_bytes(path, REMEDY), files)


def read_tokenizer_json(path: Path, content: bytes, files: dict[str, bytes]) -> FastTokenizer:
    """A tokenizer from the content of a ``tokenizer.json``, which ``files`` are copied with; ``path`` is for errors."""
    try:
        backend = tokenizers.Tokenizer.from_str(content.decode())
    except Exception as error:  # the library raises plain Exception
        raise InputError(f"{path}: not a tokenizer.json ({first_line(error)}); save the tokenizer again") from None
    pieces = dict(sorted((index, piece) for piece, index in backend.get_vocab(with_added_tokens=True).items()))
    ordered = by_id(pieces, path)  # before the library writes it, which takes 4 bytes for each id
    names = _special_names(path.parent, set(pieces.values()))
    special_ids = find_special_ids(pieces, names, path)
    symbols = find_symbols(pieces, special_ids, path)
    settings = json.loads(backend.to_str())
    for token in settings["added_tokens"]:
        # a user's own special token in a text is that token, as in transformers; a literal "[MASK]" is text
        token["special"] &= token["id"] in special_ids.values()
    backend = tokenizers.Tokenizer.from_str(json.dumps(settings))
    description = f"{type(backend.model).__name__} of {path.name}, {describe_size(pieces)}"
    if isinstance(backend.normalizer, normalizers.BertNormalizer):
        description += ", uncased" if backend.normalizer.lowercase else ", cased"
    files = {"tokenizer.json": content, **files}
    return FastTokenizer(description, files, ordered, special_ids, symbols, backend)


def _special_names(folder: Path, pieces: set[str]) -> dict[str, str]:
    """fairseq's special symbols to the tokenizer's: the names of BERT or RoBERTa that are among the pieces.

    If all of both are, or neither, the tokenizer's configuration decides, as in ``transformers``.
    """
    conventions = (BERT_NAMES, ROBERTA_NAMES)
    if sum(pieces.issuperset(names.values()) for names in conventions) != 1:
        for name in ("tokenizer_config.json", "special_tokens_map.json"):
            config = read_json_object(folder / name, REMEDY) if (folder / name).exists() else {}
            special_names: dict[str, str] = {}
            for symbol, field in TOKEN_FIELDS.items():
                token = config.get(field)
                piece = token.get("content") if isinstance(token, dict) else token
                if isinstance(piece, str) and piece in pieces:
                    special_names[symbol] = piece
            if len(special_names) == len(TOKEN_FIELDS):
                return special_names
    return max(conventions, key=lambda names: len(pieces.intersection(names.values())))


def load_gpt2(path: Path, vocabulary: dict) -> Tokenizer:
    """GPT-2's byte-level BPE: ``encoder.json``, whose content is ``vocabulary``, and ``vocab.bpe``."""
    merges_path, remedy = path.parent / "vocab.bpe", f"use the vocab.bpe that belongs to {path.name}"
    ids = vocabulary.values()
    if not all(type(index) is int and index >= 0 for index in ids) or len(set(ids)) != len(vocabulary):
        raise InputError(f"{path}: does not map each piece to a unique number; use GPT-2's encoder.json")
    if not vocabulary.keys() >= set(pre_tokenizers.ByteLevel.alphabet()):
        raise InputError(f"{path}: lacks pieces for some of the 256 bytes; use GPT-2's encoder.json")
    version, *lines = read_text(merges_path, remedy).replace("\r\n", "\n").removesuffix("\n").split("\n")
    if not version.startswith("#version"):
        # fairseq always skips the first line, so its encoder would lose a merge.
        raise InputError(f"{merges_path}, line 1: not '#version: ...'; {remedy}")
    merges: list[Any] = [tuple(line.split(" ")) for line in lines]
    try:
        backend = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    except Exception as error:  # the library raises plain Exception
        raise InputError(f"{merges_path}: does not fit {path.name} ({first_line(error)}); {remedy}") from None
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    files = {"encoder.json": read_bytes(path, REMEDY), "vocab.bpe": read_bytes(merges_path, remedy)}
    pieces = {index: piece for piece, index in vocabulary.items()}
    description = f"GPT-2 byte-level BPE of {path.name}, {describe_size(pieces)}, numbers in dict.txt"
    symbols = {index: str(index) for index in sorted(ids)}
    return FastTokenizer(description, files, by_id(pieces, path), {}, symbols, backend)
