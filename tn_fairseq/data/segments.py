"""Sequences of two segments of one document, ``<s> A </s> B </s>``, as ELECTRA and BERT are trained."""

from typing import NamedTuple

import numpy as np
from fairseq.data import Dictionary, FairseqDataset
from torch import Tensor

from ..core.errors import InputError
from .blocks import BlockDataset, Text

# from Google's build_pretraining_dataset.py
SINGLE_SEGMENT_PROB, RANDOM_LENGTH_PROB, SHORTEST = 0.1, 0.05, 5
PART = 100  # sequences, after which a longer document is read as if a new one began
_CHUNK = 1 << 18  # sentences that are cut at a time, to save memory; none of their sequences continues in the next


class Cuts(NamedTuple):
    """Where the text of each sequence is: the segments follow each other, and the second may be empty. (N) each."""

    begin: np.ndarray  # position of the first token in the text, without the sentences' </s>
    first: np.ndarray  # tokens in the first segment
    second: np.ndarray  # tokens in the second


def cut_segments(lengths: np.ndarray, longest: int, rng: np.random.Generator) -> Cuts:
    """Cut text into pairs of segments with at most ``longest`` tokens, three of them special, as Google's ELECTRA does.

    ``lengths``, (S), are the tokens of each sentence without ``</s>``; 0 ends a document. The first segment takes
    sentences up to half the length, and half of the time also the sentence that crosses it. One sequence in ten has a
    single segment, and one in twenty has a random target length. Google's code drops the tokens that do not fit. Here,
    they begin the next sequence, and a sentence that is longer than a sequence is cut into halves of a sequence.
    """
    ends = _piece_ends(lengths, longest)
    begins, stops = _parts(ends, lengths, longest)
    ends = np.append(ends, np.iinfo(np.int64).max)  # so that there is always an end after a position
    cuts = []
    while len(begins):  # the next sequence of each part that has text left
        single, short, length, crosses = rng.random((4, len(begins)))
        random_length = SHORTEST + (length * (longest - SHORTEST + 1)).astype(np.int64)
        target = np.where(short < RANDOM_LENGTH_PROB, random_length, longest)
        # text up to the end of the piece that reaches the target
        waiting = np.minimum(ends[ends.searchsorted(begins + target)], stops) - begins
        reaching = ends.searchsorted(begins + (target - 3) // 2)  # the piece that reaches half the target
        before, after = ends[reaching - 1] - begins, ends[reaching] - begins
        first = np.where((before > 0) & (crosses >= 0.5), before, after)
        first = np.where(single < SINGLE_SEGMENT_PROB, waiting, np.minimum(first, waiting))
        first = np.minimum(first, longest - 2)
        second = np.minimum(waiting - first, np.maximum(longest - 3 - first, 0))
        cuts.append((begins, first, second))
        begins = begins + first + second
        left = begins < stops
        begins, stops = begins[left], stops[left]
    begin, first, second = np.concatenate(cuts, axis=1) if cuts else np.zeros((3, 0), dtype=np.int64)
    order = begin.argsort()
    return Cuts(begin[order], first[order], second[order])


def _piece_ends(lengths: np.ndarray, longest: int) -> np.ndarray:
    """0 and the ends of the pieces that segments consist of: sentences, or halves of a sequence."""
    ends, half = lengths.cumsum(), (longest - 3) // 2
    too_long = np.flatnonzero(lengths > longest - 3)
    inside = (lengths[too_long] - 1) // half  # ends inside each of these sentences
    begins = np.repeat(ends[too_long] - lengths[too_long], inside)
    return np.append(0, np.insert(ends, np.repeat(too_long, inside), begins + half * (1 + _count_up(inside))))


def _parts(ends: np.ndarray, lengths: np.ndarray, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Begins and ends of the parts that are cut by themselves: documents, or ``PART`` sequences of long ones."""
    documents = _distinct(np.concatenate([[0], lengths.cumsum()[lengths == 0], ends[-1:]]))
    counts = -(-np.diff(documents) // (PART * longest))
    near = np.repeat(documents[:-1], counts) + PART * longest * _count_up(counts)
    begins = _distinct(np.append(ends[ends.searchsorted(near)], ends[-1]))
    return begins[:-1], begins[1:]


def _distinct(increasing: np.ndarray) -> np.ndarray:
    return increasing[np.diff(increasing, prepend=-1) > 0]


def _count_up(counts: np.ndarray) -> np.ndarray:
    """0, 1, ... below each of the counts, one after another."""
    return np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)


def token_types(tokens: Tensor, separator: int) -> Tensor:
    """0 up to the first ``separator`` of each row, which ends the first segment, and 1 after it: (B, T) -> (B, T)."""
    separators = tokens.eq(separator)
    return (separators.cumsum(dim=1) > separators).long()


class SegmentPairDataset(BlockDataset):
    """The pairs of segments in a dataset of sentences that end with ``</s>``; a lone ``</s>`` ends a document."""

    def __init__(self, sentences: FairseqDataset, dictionary: Dictionary, longest: int, seed: int):
        super().__init__()
        self.text = Text(sentences)
        self.dictionary = dictionary
        rng = np.random.default_rng(seed)
        small = np.promote_types(np.uint16, np.min_scalar_type(2 * longest))
        chunks, offset = [], 0
        for start in range(0, len(sentences), _CHUNK):
            lengths = sentences.sizes[start : start + _CHUNK].astype(np.int64) - 1
            begin, first, second = cut_segments(lengths, longest, rng)
            # positions in the files, where each sentence before them has another token, its </s>
            sentence_ends, last = lengths.cumsum(), begin + first + second - 1
            begin_in_files = begin + sentence_ends.searchsorted(begin, side="right")
            spans = last + sentence_ends.searchsorted(last, side="right") + 1 - begin_in_files
            chunks.append((begin_in_files + offset, *(lengths.astype(small) for lengths in (spans, first, second))))
            offset += lengths.sum() + len(lengths)
        self.begins, self.spans, self.first, self.second = map(np.concatenate, zip(*chunks))
        self.sizes = 2 + self.first + self.second + (self.second > 0)

    def rows(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Raises InputError if a sentence contains ``</s>``."""
        bos, pad, eos = self.dictionary.bos(), self.dictionary.pad(), self.dictionary.eos()
        spans, first, lengths = (of[indices][:, None] for of in (self.spans, self.first, self.sizes))
        columns = np.arange(spans.max(), dtype=spans.dtype)  # as small as spans, which makes comparisons faster
        text = self.text.take(self.begins[indices][:, None] + columns)
        words = text[(columns < spans) & (text != eos)]
        columns = np.arange(lengths.max(), dtype=lengths.dtype)
        is_word = (columns > 0) & (columns < lengths - 1) & (columns != first + 1)
        if len(words) != np.count_nonzero(is_word):
            raise InputError(
                "a sentence contains </s> as a word; find it with grep -n '</s>', delete it, and binarize the text "
                "again"
            )
        tokens = np.where(columns < lengths, eos, pad)
        tokens[:, 0] = bos
        tokens[is_word] = words
        return tokens, lengths[:, 0].astype(np.int64)

    def inputs(self, tokens: Tensor) -> dict[str, Tensor]:
        """More inputs of the model, which reads segments, for tokens (B, T)."""
        return {"token_types": token_types(tokens, self.dictionary.eos())}
