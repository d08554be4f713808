"""Intervals: degenerate cases, and agreement with formulas."""

import math

import numpy as np
import pytest
from scipy import stats

from tn_fairseq.evaluation.bootstrap import estimate, mean, rank_correlation

NORMAL = np.random.default_rng(5).normal(3.0, 2.0, (1, 400))


def test_values_without_spread_have_no_interval():
    (found,), differences = estimate([np.full((1, 30), 2.5)], mean)
    assert found[:3] == (2.5, 2.5, 2.5) and math.isnan(found.seed_sd) and differences == []


def test_the_interval_of_a_mean_is_that_of_the_normal_approximation():
    (found,), _ = estimate([NORMAL], mean)
    half = 1.96 * NORMAL.std() / math.sqrt(400)
    assert found.value == NORMAL.mean()
    assert (found.low, found.high) == (
        pytest.approx(found.value - half, abs=0.03),
        pytest.approx(found.value + half, abs=0.03),
    )


def test_the_interval_leaves_out_two_and_a_half_percent_at_each_end():
    numbers = iter(range(1001))  # the estimate, then the resamples 1 to 1000
    (found,), _ = estimate([np.zeros((1, 1))], lambda values: np.array([next(numbers)]))
    assert found[:3] == pytest.approx((0, 1 + 0.025 * 999, 1000 - 0.025 * 999))


def test_differences_are_paired():
    other = NORMAL + np.linspace(0.9, 1.1, 400)
    _, (same, shifted) = estimate([NORMAL, other], mean, baseline=0)
    assert same == (0, 0, 0)
    # the items vary a lot, but the difference hardly does
    assert shifted.difference == pytest.approx(1) and 0.98 < shifted.low < 1 < shifted.high < 1.02
    _, (back, _) = estimate([NORMAL, other], mean, baseline=1)
    assert back.difference == pytest.approx(-1)


def test_seeds_are_averaged_and_their_spread_widens_the_interval():
    seeds = np.concatenate([NORMAL - 1, NORMAL + 1])
    (one, two), (_, difference) = estimate([NORMAL, seeds], mean, baseline=0)
    assert two.value == pytest.approx(one.value) and two.seed_sd == pytest.approx(math.sqrt(2))
    assert two.high - two.low > 3 * (one.high - one.low)
    assert difference.low == pytest.approx(-1) and difference.high == pytest.approx(1)
    # equal seeds add nothing
    (single, double), _ = estimate([NORMAL, np.concatenate([NORMAL, NORMAL])], mean)
    assert double[:3] == pytest.approx(single[:3]) and double.seed_sd == 0


def test_rank_correlation_is_scipys():
    values = np.random.default_rng(1).integers(0, 9, (3, 50)).astype(float)  # with ties
    expected = [stats.spearmanr(values[0], row).statistic for row in values[1:]]
    assert rank_correlation(values) == pytest.approx(expected)
    assert np.isnan(rank_correlation(np.array([[1.0, 2, 3], [5, 5, 5]]))).tolist() == [True]


def test_the_interval_of_a_correlation_covers_what_it_was_drawn_from():
    rng = np.random.default_rng(2)
    gold = rng.normal(size=500)
    values = (gold + rng.normal(size=500))[None]
    (found,), _ = estimate([values], rank_correlation, gold=gold)
    assert found.value == pytest.approx(stats.spearmanr(gold, values[0]).statistic)
    assert found.low < 0.69 < found.high and 0.06 < found.high - found.low < 0.14
