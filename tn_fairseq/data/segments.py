"""Sequences of two segments of one document, ``<s> A </s> B </s>``, as ELECTRA and BERT are trained."""

import random
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset
from torch import Tensor

# from Google's build_pretraining_dataset.py
SINGLE_SEGMENT_PROB, RANDOM_LENGTH_PROB, SHORTEST = 0.1, 0.05, 5
_CHUNK = 1 << 20  # sentences; a list of all of them could take gigabytes


class Cut(NamedTuple):
    """Where the text of one sequence is: the segments follow each other, and the second may be empty."""

    begin: int  # position of the first token in the text, without the sentences' </s>
    first: int  # tokens in the first segment
    second: int  # tokens in the second


def cut_segments(lengths: Iterable[int], longest: int, rng: random.Random) -> Iterator[Cut]:
    """Cut text into pairs of segments with at most ``longest`` tokens, three of them special, as Google's ELECTRA does.

    ``lengths`` are the tokens of each sentence without ``</s>``; 0 ends a document. The first segment takes sentences
    up to half the length, and half of the time also the sentence that crosses it. One sequence in ten has a single
    segment, and one in twenty has a random target length. Google's code drops the tokens that do not fit. Here, they
    begin the next sequence, and a sentence that is longer than a sequence is cut into halves of a sequence.
    """
    begin = 0
    target = longest
    pieces: list[int] = []  # waiting text: complete sentences, or parts of them
    waiting = 0

    def next_sequence() -> Cut:
        nonlocal begin, target, pieces, waiting
        half = waiting + 1 if rng.random() < SINGLE_SEGMENT_PROB else (target - 3) // 2
        first = 0
        for piece in pieces:
            if first and first + piece >= half and (first >= half or rng.random() >= 0.5):
                break
            first += piece
        first = min(first, longest - 2)
        second = min(waiting - first, max(longest - 3 - first, 0))
        cut = Cut(begin, first, second)
        begin += first + second
        waiting -= first + second
        pieces = _last(pieces, waiting)
        target = rng.randint(SHORTEST, longest) if rng.random() < RANDOM_LENGTH_PROB else longest
        return cut

    for length in lengths:
        piece = length if length <= longest - 3 else (longest - 3) // 2
        for taken in range(0, length, piece or 1):
            pieces.append(min(piece, length - taken))
            waiting += pieces[-1]
            while waiting >= target:
                yield next_sequence()
        while not length and waiting:
            yield next_sequence()
    while waiting:
        yield next_sequence()


def _last(pieces: list[int], tokens: int) -> list[int]:
    """The pieces that hold the last tokens, the first of them cut if necessary."""
    kept: list[int] = []
    while tokens:
        kept.insert(0, min(pieces[len(pieces) - 1 - len(kept)], tokens))
        tokens -= kept[0]
    return kept


def token_types(tokens: Tensor, separator: int) -> Tensor:
    """0 up to the first ``separator`` of each row, which ends the first segment, and 1 after it: (B, T) -> (B, T)."""
    separators = tokens.eq(separator).long()
    return (separators.cumsum(dim=1) - separators).clamp(max=1)


class SegmentPairDataset(FairseqDataset):
    """The pairs of segments in a dataset of sentences that end with ``</s>``; a lone ``</s>`` ends a document."""

    def __init__(self, sentences: FairseqDataset, dictionary: Dictionary, longest: int, seed: int):
        super().__init__()
        self.sentences = sentences
        self.dictionary = dictionary
        lengths = np.asarray(sentences.sizes, dtype=np.int64) - 1
        self.sentence_begins = np.concatenate([[0], lengths.cumsum()])
        chunks = (lengths[start : start + _CHUNK].tolist() for start in range(0, len(lengths), _CHUNK))
        cuts = cut_segments(chain.from_iterable(chunks), longest, random.Random(seed))
        flat = np.fromiter((number for cut in cuts for number in cut), dtype=np.int64)
        self.begins, self.first, self.second = flat.reshape(-1, 3).T
        self.sizes = 2 + self.first + self.second + (self.second > 0)

    def __len__(self) -> int:
        return len(self.begins)

    def __getitem__(self, index: int) -> Tensor:
        middle = self.begins[index] + self.first[index]
        bos, eos = torch.tensor([self.dictionary.bos()]), torch.tensor([self.dictionary.eos()])
        parts = [bos, self._text(self.begins[index], middle), eos]
        if self.second[index]:
            parts += [self._text(middle, middle + self.second[index]), eos]
        return torch.cat(parts)

    def inputs(self, tokens: Tensor) -> dict[str, Tensor]:
        """More inputs of the model, which reads segments, for tokens (B, T)."""
        return {"token_types": token_types(tokens, self.dictionary.eos())}

    def _text(self, begin: int, end: int) -> Tensor:
        parts = []
        sentence = int(np.searchsorted(self.sentence_begins, begin, side="right")) - 1
        while begin < end:
            start, stop = self.sentence_begins[sentence : sentence + 2]
            parts.append(self.sentences[sentence][begin - start : min(end, stop) - start])
            begin = stop
            sentence += 1
        return torch.cat(parts)
