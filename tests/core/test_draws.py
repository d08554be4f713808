import numpy as np
import pytest
import torch

from tn_fairseq.core.draws import Draws, draw, uniform_for_draws


def test_draws_by_hand():
    """Probabilities of 1/4, 1/2 and 1/4: the random number falls on the first, the second and the last."""
    logits = torch.tensor([[0.25, 0.5, 0.25], [1.0, 0.0, 0.0]]).log()
    uniform = torch.tensor([[0.1, 0.9, 0.3, 0.74], [0.0, 0.5, 0.999999, 0.2]])
    found = draw(logits, uniform)
    assert found.words.tolist() == [0, 1, 2, 0] and found.counts.tolist() == [1, 2, 1, 4]
    words, counts = found.padded(4)
    assert words.tolist() == [[0, 1, 2], [0, 0, 0]] and counts.tolist() == [[1, 2, 1], [4, 0, 0]]
    empty = Draws(np.zeros(0, dtype=int), np.zeros(0, dtype=int)).padded(4)
    assert [tensor.shape for tensor in empty] == [(0, 0), (0, 0)]


@pytest.mark.parametrize("size", [7, 3000])
def test_words_are_drawn_as_often_as_they_are_likely(size):
    """Chi-square over the likely words; p = 0.0001."""
    logits = 2 * torch.randn(1, size, generator=torch.Generator().manual_seed(1))
    count = 40_000
    found = draw(logits, torch.rand(1, count, generator=torch.Generator().manual_seed(2), dtype=torch.float64))
    expected = count * logits.softmax(dim=1)[0].double().numpy()
    seen = np.zeros(size)
    seen[found.words] = found.counts
    likely = expected > 20
    statistic = ((seen - expected)[likely] ** 2 / expected[likely]).sum()
    assert seen.sum() == count and statistic < likely.sum() + 5 * np.sqrt(2 * likely.sum())


def test_random_numbers_depend_on_the_place_only():
    rows, columns = np.array([3, 3, 900]), np.array([0, 7, 7])
    everything = uniform_for_draws(1, 2, rows, columns, 5)
    assert torch.equal(uniform_for_draws(1, 2, rows[1:], columns[1:], 5), everything[1:])
    others = [uniform_for_draws(seed, version, rows, columns, 5) for seed, version in ((2, 2), (1, 3))]
    numbers = torch.cat([everything, *others]).flatten().tolist()
    assert len(set(numbers)) == len(numbers) and all(0 <= number < 1 for number in numbers)
