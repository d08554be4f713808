import numpy as np
import pytest
import torch
from fairseq.data import ConcatDataset
from helpers import write_data_bin, write_split

from tn_fairseq.core.errors import InputError
from tn_fairseq.data import segments
from tn_fairseq.data.data_bin import load_sentences
from tn_fairseq.data.segments import PART, SegmentPairDataset, cut_segments, token_types


class Draws:
    """Gives the listed numbers: at each step, those of the next sequence of every part that has text left."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def random(self, size):
        numbers = np.array(self.steps.pop(0)).T
        assert numbers.shape == size
        return numbers


def draw(segments=0.5, target=0.5, crosses=0.6):
    return segments, target, 0.0, crosses  # the third is the random length, here the shortest


ONE, SHORT, CROSSES = {"segments": 0.05}, {"target": 0.01}, {"crosses": 0.4}


@pytest.mark.parametrize(
    "longest, lengths, draws, expected",
    [
        # half of 24 tokens is rounded down to (24 - 3) // 2 = 10, so the second sentence reaches it
        (24, [6, 4, 14], [[draw()], [draw()]], [(0, 6, 15), (21, 3, 0)]),
        # half of 23 tokens is (23 - 3) // 2 = 10: the second sentence crosses it
        (23, [6, 6, 8, 4], [[draw(**CROSSES)], [draw()]], [(0, 12, 8), (20, 4, 0)]),
        (23, [6, 6, 8, 4], [[draw()], [draw()]], [(0, 6, 14), (20, 4, 0)]),
        (23, [6, 6, 8, 4], [[draw(**ONE)], [draw()]], [(0, 21, 0), (21, 3, 0)]),
        # a document ends
        (23, [6, 6, 0, 8], [[draw(), draw()]], [(0, 6, 6), (12, 8, 0)]),
        # what does not fit begins the next sequence: 25 tokens wait, and 20 fit
        (23, [8, 8, 9], [[draw()], [draw()]], [(0, 8, 12), (20, 5, 0)]),
        # a sentence of more than 20 tokens is cut into tens
        (23, [26], [[draw()], [draw()]], [(0, 10, 10), (20, 6, 0)]),
        # the target length of the second sequence is 5, and half of it 1: 4 tokens are left, and 3 more reach it
        (23, [12, 12, 3, 3, 9], [[draw()], [draw(**SHORT)], [draw()]], [(0, 12, 8), (20, 4, 3), (27, 3, 9)]),
        # there is no text, or none but the ends of documents
        (23, [], [], []),
        (23, [0, 0], [], []),
    ],
)
def test_sequences_by_hand(longest, lengths, draws, expected):
    rng = Draws(*draws)
    cuts = cut_segments(np.array(lengths, dtype=np.int64), longest, rng)
    assert list(zip(*cuts)) == expected and not rng.steps


@pytest.mark.parametrize("shortest, longest", [(1, 60), (50, 300)])
def test_nothing_is_lost_and_one_sequence_in_ten_has_one_segment(shortest, longest):
    lengths = np.random.default_rng(1).integers(shortest, longest, size=20_000, endpoint=True)
    cuts = cut_segments(lengths, 128, np.random.default_rng(1))
    ends = cuts.begin + cuts.first + cuts.second
    assert cuts.begin[0] == 0 and np.array_equal(cuts.begin[1:], ends[:-1]) and ends[-1] == lengths.sum()
    assert (cuts.first > 0).all() and (cuts.first + cuts.second + np.where(cuts.second, 3, 2) <= 128).all()
    assert (cuts.second == 0).mean() == pytest.approx(0.1 if longest < 128 else 0.13, abs=0.02)
    short = (cuts.first + cuts.second < 60).mean()
    assert 0.005 < short < 0.05  # one in twenty has a random length, which is rarely reached exactly


def test_a_random_length_is_uniform():
    cuts = cut_segments(np.ones(400_000, dtype=np.int64), 20, np.random.default_rng(1))
    shares = np.bincount(cuts.first + cuts.second) / len(cuts.begin)
    # sentences of one token reach the target exactly; the last sequence of a part has any length
    assert shares[5:17] == pytest.approx(np.full(12, 0.05 / 16 + 1 / PART / 20), abs=0.001)


def test_a_long_document_is_cut_in_parts_at_the_same_time(monkeypatch):
    class Counting:
        def __init__(self):
            self.rng, self.calls = np.random.default_rng(1), 0

        def random(self, size):
            self.calls += 1
            return self.rng.random(size)

    rng = Counting()
    lengths = np.random.default_rng(1).integers(1, 60, size=100_000)
    cuts = cut_segments(lengths, 128, rng)
    assert len(cuts.begin) > 200 * PART and rng.calls < 1.3 * PART
    monkeypatch.setattr(segments, "PART", 10 * PART)
    assert len(cuts.begin) < 1.01 * len(cut_segments(lengths, 128, rng).begin)


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


def test_rows_are_the_single_sequences_padded(sentences, dictionary):
    pairs = SegmentPairDataset(sentences, dictionary, longest=30, seed=1)
    indices = np.append(np.arange(len(pairs))[::-1], 0)
    tokens, lengths = pairs.rows(indices)
    assert len(set(lengths)) > 1 and lengths.tolist() == pairs.sizes[indices].tolist()
    for row, length, index in zip(tokens, lengths, indices, strict=True):
        assert row[:length].tolist() == pairs[index].tolist() and (row[length:] == dictionary.pad()).all()


def test_text_in_several_files_or_chunks_is_read_as_one(sentences, dictionary, tmp_path, monkeypatch):
    both = SegmentPairDataset(ConcatDataset([sentences, sentences]), dictionary, longest=16, seed=1)
    words = [token for index in range(len(both)) for token in both[index].tolist() if token >= dictionary.nspecial]
    assert words == 2 * list(range(dictionary.nspecial, dictionary.nspecial + 61))
    monkeypatch.setattr(segments, "_CHUNK", 4)
    chunks = SegmentPairDataset(sentences, dictionary, longest=16, seed=1)
    words = [token for index in range(len(chunks)) for token in chunks[index].tolist() if token >= dictionary.nspecial]
    assert words == list(range(dictionary.nspecial, dictionary.nspecial + 61))


def test_a_separator_inside_a_sentence_is_refused(dictionary, tmp_path):
    write_data_bin(tmp_path)
    words = dictionary.symbols[dictionary.nspecial :]
    write_split(tmp_path, "train", dictionary, [[*words[:3], "</s>", *words[3:5]], []])
    pairs = SegmentPairDataset(load_sentences(tmp_path / "train", "binarize"), dictionary, longest=16, seed=1)
    with pytest.raises(InputError, match="a sentence contains </s>"):
        pairs[0]


def test_the_state_takes_less_than_a_fifth_of_a_byte_per_token(dictionary, tmp_path):
    write_data_bin(tmp_path, sentences=20_000)
    sentences = load_sentences(tmp_path / "train", "binarize")
    pairs = SegmentPairDataset(sentences, dictionary, longest=128, seed=1)
    arrays = [value for value in vars(pairs).values() if isinstance(value, np.ndarray)]
    assert sum(array.nbytes for array in arrays) == 16 * len(pairs)
    assert all(array.base is None for array in arrays)  # views keep more


def test_the_seed_decides_where_segments_end(sentences, dictionary):
    def first_segments(seed):
        return SegmentPairDataset(sentences, dictionary, longest=16, seed=seed).first.tolist()

    assert first_segments(1) == first_segments(1)
    assert len({tuple(first_segments(seed)) for seed in range(8)}) > 1


def test_token_types_change_after_the_first_separator():
    tokens = torch.tensor([[0, 7, 2, 8, 2, 1], [0, 7, 8, 9, 2, 1]])
    assert token_types(tokens, separator=2).tolist() == [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1]]
