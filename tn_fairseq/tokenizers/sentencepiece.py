"""Models of the ``sentencepiece`` library."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import sentencepiece

from ..core.dictionary import MASK
from ..core.errors import InputError
from ..core.files import read_bytes
from .base import REMEDY, Tokenizer, find_symbols, join, one_line

# A protobuf message followed by another one means both merged. This one is ModelProto(normalizer_spec=NormalizerSpec(
# add_dummy_prefix=False)): field 3, of 2 bytes; in it, field 3, of value 0.
_NO_DUMMY_PREFIX = b"\x1a\x02\x18\x00"


@dataclass(eq=False, repr=False)
class SentencePieceTokenizer(Tokenizer):
    """A wrapper of a model of the ``sentencepiece`` library."""

    _processor: sentencepiece.SentencePieceProcessor

    def encode_chunk(self, lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        return join(self._processor.encode(lines, out_type=int, num_threads=1))

    def encode_continuation(self, text: str) -> list[int]:
        # the library removes the space at the start, and adds it again as the prefix
        processor = self._processor if text[:1].isspace() else self._inside_a_line
        return processor.encode(text, out_type=int)

    def decode(self, token_ids: Sequence[int]) -> str:
        return self._processor.decode(list(token_ids))

    @cached_property
    def _inside_a_line(self) -> sentencepiece.SentencePieceProcessor:
        return sentencepiece.SentencePieceProcessor(model_proto=self.files["sentencepiece.model"] + _NO_DUMMY_PREFIX)

    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        line = one_line(text)
        ids = self._processor.encode(line, out_type=int)
        _, origins = self._processor.normalize(line, with_offsets=True)
        origins = np.array(origins)  # position in the text of each normalized character, and the end
        # The library's own offsets are empty for the first part of a split character.
        spans, end = [], 0  # in the normalized text
        for index, piece in zip(ids, self._processor.encode(line, out_type=str), strict=True):
            if self._processor.is_byte(index):
                begin = end - ("<0x80>" <= piece <= "<0xBF>")  # a continuation byte
                end = begin + 1
                spans.append((begin, end))
            else:
                end += len(piece)
                begin = end - len(piece.lstrip("▁"))
                spans.append((begin, begin + len(piece.strip("▁"))))
        first, last = np.array(spans, dtype=np.int64).reshape(-1, 2).T
        begins = origins[first]
        ends = origins[np.searchsorted(origins, origins[last - 1], side="right").clip(max=len(origins) - 1)]
        offsets = np.stack([begins, np.where(last > first, ends, begins)], axis=1)
        return np.array(ids, dtype=np.int32), offsets.astype(np.int32)


def load_sentencepiece(path: Path) -> Tokenizer:
    content = read_bytes(path, REMEDY)
    try:
        if not content:
            raise OSError  # an empty model would load, and then print errors on every call
        processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    except (RuntimeError, OSError):
        raise InputError(f"{path}: not a SentencePiece model; train it again, or give the .model file") from None
    pieces = {index: processor.id_to_piece(index) for index in range(len(processor))}
    ids = {
        "<s>": processor.bos_id(),
        "<pad>": processor.pad_id(),
        "</s>": processor.eos_id(),
        "<unk>": processor.unk_id(),
        MASK: next((index for mask in (MASK, "[MASK]") for index, piece in pieces.items() if piece == mask), -1),
    }
    special_ids = {symbol: index for symbol, index in ids.items() if index >= 0}
    # The library trains without <pad> by default; fairseq's own <pad> replaces it.
    missing = [symbol for symbol in ids if symbol not in (*special_ids, "<pad>", MASK)]
    if missing:
        raise InputError(f"{path}: lacks the special tokens {', '.join(missing)}; train a model that has them")
    symbols = find_symbols(pieces, special_ids, path)
    description = f"SentencePiece of {path.name}, {len(pieces):,} pieces"
    files = {"sentencepiece.model": content}
    return SentencePieceTokenizer(description, files, list(pieces.values()), special_ids, symbols, processor)
