import random

import pytest
import torch
from helpers import write_data_bin, write_split

from tn_fairseq.data import load_sentences
from tn_fairseq.data.segments import Cut, SegmentPairDataset, cut_segments, token_types


class Draws(random.Random):
    """Gives the listed numbers in turn."""

    def __init__(self, *numbers):
        super().__init__()
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)

    def randint(self, low, high):
        return (low, high)[self.numbers.pop(0)]


TWO, ONE, FULL, SHORT = 0.5, 0.05, 0.5, 0.01  # segments, and the length of the next sequence
CROSSES, STAYS = 0.4, 0.6  # whether the sentence that crosses half the length goes to the first segment


@pytest.mark.parametrize(
    "longest, lengths, draws, expected",
    [
        # half of 24 tokens is rounded down to (24 - 3) // 2 = 10, so the second sentence reaches it
        (24, [6, 4, 14], [TWO, STAYS, FULL, TWO, FULL], [(0, 6, 15), (21, 3, 0)]),
        # half of 23 tokens is (23 - 3) // 2 = 10: the second sentence crosses it
        (23, [6, 6, 8, 4], [TWO, CROSSES, FULL, TWO, FULL], [(0, 12, 8), (20, 4, 0)]),
        (23, [6, 6, 8, 4], [TWO, STAYS, FULL, TWO, FULL], [(0, 6, 14), (20, 4, 0)]),
        (23, [6, 6, 8, 4], [ONE, FULL, TWO, FULL], [(0, 21, 0), (21, 3, 0)]),
        # a document ends
        (23, [6, 6, 0, 8], [TWO, STAYS, FULL, TWO, FULL], [(0, 6, 6), (12, 8, 0)]),
        # what does not fit begins the next sequence: 25 tokens wait, and 20 fit
        (23, [8, 8, 9], [TWO, STAYS, FULL, TWO, FULL], [(0, 8, 12), (20, 5, 0)]),
        # a sentence of more than 20 tokens is cut into tens
        (23, [26], [TWO, FULL, TWO, FULL], [(0, 10, 10), (20, 6, 0)]),
        # the target length of the second sequence is 5, and half of it 1: 4 tokens are left, and 3 more reach it
        (23, [12, 12, 3, 3, 9], [TWO, SHORT, 0, TWO, FULL, TWO, STAYS, FULL], [(0, 12, 8), (20, 4, 3), (27, 3, 9)]),
    ],
)
def test_sequences_by_hand(longest, lengths, draws, expected):
    rng = Draws(*draws)
    cuts = list(cut_segments(lengths, longest, rng))
    assert cuts == [Cut(*cut) for cut in expected] and not rng.numbers


@pytest.mark.parametrize("shortest, longest", [(1, 60), (50, 300)])
def test_nothing_is_lost_and_one_sequence_in_ten_has_one_segment(shortest, longest):
    rng = random.Random(1)
    lengths = [rng.randint(shortest, longest) for _ in range(20_000)]
    cuts = list(cut_segments(lengths, 128, rng))
    end = 0
    for cut in cuts:
        assert cut.begin == end and cut.first > 0
        assert cut.first + cut.second + (3 if cut.second else 2) <= 128
        end = cut.begin + cut.first + cut.second
    assert end == sum(lengths)
    assert sum(not cut.second for cut in cuts) / len(cuts) == pytest.approx(0.1 if longest < 128 else 0.13, abs=0.02)
    short = sum(cut.first + cut.second < 60 for cut in cuts) / len(cuts)
    assert 0.005 < short < 0.05  # one in twenty has a random length, which is rarely reached exactly


@pytest.fixture
def sentences(tmp_path, dictionary):
    write_data_bin(tmp_path)
    words = dictionary.symbols[dictionary.nspecial :]
    text = [words[:5], words[5:12], [], words[12:60], words[60:61], []]
    write_split(tmp_path, "train", dictionary, text)
    return load_sentences(tmp_path / "train", "binarize", dictionary)


def test_a_sequence_is_two_segments_of_one_document(sentences, dictionary):
    pairs = SegmentPairDataset(sentences, dictionary, longest=16, seed=1)
    seen = []
    for index in range(len(pairs)):
        tokens = pairs[index].tolist()
        assert len(tokens) == pairs.sizes[index] <= 16
        assert tokens[0] == dictionary.bos() and tokens[-1] == dictionary.eos()
        assert tokens.count(dictionary.eos()) == 1 + (pairs.second[index] > 0)
        if pairs.second[index]:
            assert tokens[1 + pairs.first[index]] == dictionary.eos()
        seen += [token for token in tokens if token >= dictionary.nspecial]
        assert (dictionary.nspecial + 11 in tokens) <= (dictionary.nspecial + 12 not in tokens)  # of two documents
    assert seen == list(range(dictionary.nspecial, dictionary.nspecial + 61))


def test_the_seed_decides_where_segments_end(sentences, dictionary):
    def first_segments(seed):
        return SegmentPairDataset(sentences, dictionary, longest=16, seed=seed).first.tolist()

    assert first_segments(1) == first_segments(1)
    assert len({tuple(first_segments(seed)) for seed in range(8)}) > 1


def test_token_types_change_after_the_first_separator():
    tokens = torch.tensor([[0, 7, 2, 8, 2, 1], [0, 7, 8, 9, 2, 1]])
    assert token_types(tokens, separator=2).tolist() == [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1]]
