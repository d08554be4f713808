"""Intervals: degenerate cases, and agreement with formulas."""

import math

import numpy as np
import pytest
from scipy import stats

from tn_fairseq.tools.evaluation import bootstrap
from tn_fairseq.tools.evaluation.bootstrap import Measure, compare_items, estimate, mean, rank_correlation

NORMAL = np.random.default_rng(5).normal(3.0, 2.0, (1, 400))


def with_gold(values: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """The values of the items with the same gold value for each seed: (seeds, items), (items,) -> (seeds, items, 2)."""
    return np.stack([np.broadcast_to(gold, values.shape), values], axis=2)


def test_values_without_spread_have_no_interval():
    (found,) = estimate([np.full((1, 30), 2.5)], mean)
    assert found == (2.5, 2.5, 2.5, *[None] * 5)


def test_the_interval_of_a_mean_is_that_of_the_normal_approximation():
    (found,) = estimate([NORMAL], mean)
    half = 1.96 * NORMAL.std() / math.sqrt(400)
    assert found.value == NORMAL.mean()
    assert (found.low, found.high) == (
        pytest.approx(found.value - half, abs=0.03),
        pytest.approx(found.value + half, abs=0.03),
    )


def test_the_interval_leaves_out_two_and_a_half_percent_at_each_end():
    numbers = iter(range(1001))  # the estimate, then the resamples 1 to 1000
    (found,) = estimate([np.zeros((1, 2))], lambda values: np.array([next(numbers)]))
    assert found[:3] == pytest.approx((0, 1 + 0.025 * 999, 1000 - 0.025 * 999))


def test_clusters_of_one_item_change_nothing(monkeypatch):
    """Also not in the last bit, whatever the names of the clusters."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 100)
    seeds, gold = np.concatenate([NORMAL - 1, NORMAL[:, ::-1]]), np.linspace(0, 1, 400)
    names = [f"{number:b}"[::-1] for number in range(1, 401)]
    for statistic, groups in (
        (mean, [NORMAL, seeds]),
        (rank_correlation, [with_gold(NORMAL, gold), with_gold(seeds, gold)]),
    ):
        assert estimate(groups, statistic, 0, names) == estimate(groups, statistic, 0)


def test_copies_of_items_in_one_cluster_change_nothing():
    """Whatever their order: copies say nothing new. As independent items, they narrow the interval."""
    order = np.random.default_rng(1).permutation(4 * 400)
    copies, clusters = np.tile(NORMAL, 4)[:, order], np.tile(np.arange(400), 4)[order]
    (single,) = estimate([NORMAL], mean)
    (clustered,) = estimate([copies], mean, clusters=clusters.tolist())
    (independent,) = estimate([copies], mean)
    half = (single.high - single.low) / 2
    assert clustered.value == pytest.approx(single.value)
    assert (clustered.high - clustered.low) / 2 == pytest.approx(half, rel=0.1)
    assert (independent.high - independent.low) / 2 == pytest.approx(half / 2, rel=0.1)


def test_larger_clusters_count_more():
    """A mean is over items: of clusters with 1, 0, 0 and four times 1, or of two draws of one of them."""
    (found,) = estimate([np.array([[1.0, 0, 0, 1, 1, 1, 1]])], mean, clusters="abbcccc")
    assert found.value == pytest.approx(5 / 7) and (found.low, found.high) == (0, 1)


def test_a_single_cluster_has_no_interval():
    one, other = estimate([NORMAL, NORMAL + 1], mean, 0, clusters=[1] * 400)
    assert one == (NORMAL.mean(), *[None] * 7) and other.difference == pytest.approx(1)
    assert other.low is other.high is other.difference_low is other.difference_high is other.p is None


def test_the_intervals_of_clustered_items_cover_the_truth_in_95_percent_of_simulations(monkeypatch):
    """300 samples of 100 clusters with 6 items; half of the variance is between clusters."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 200)
    rng, clusters = np.random.default_rng(3), np.repeat(np.arange(100), 6)
    samples = [(rng.normal(size=100)[clusters] + rng.normal(size=600))[None] for _ in range(300)]

    def coverage(clusters: list[int] | None) -> float:
        found = estimate(samples, mean, clusters=clusters)
        return np.mean([one.low <= 0 <= one.high for one in found])

    # the standard error is 0.013; with 5% outside at each end, it would be 0.89
    assert coverage(clusters.tolist()) == pytest.approx(0.95, abs=0.02)
    assert coverage(None) < 0.75


def test_the_p_values_of_differences_are_uniform_without_a_difference(monkeypatch):
    monkeypatch.setattr(bootstrap, "RESAMPLES", 200)
    samples = np.random.default_rng(4).normal(size=(500, 1, 200))
    found = estimate([np.zeros((1, 200)), *samples], mean, baseline=0)[1:]
    for level in (0.05, 0.3):
        assert np.mean([one.p < level for one in found]) == pytest.approx(level, abs=0.03)
    # as far from zero as the end of an interval; 200 resamples estimate the spread with an error of 5%
    _, far = estimate([np.zeros((1, 400)), NORMAL - NORMAL.mean() + 1.96 / 20 * NORMAL.std()], mean, baseline=0)
    assert far.p == pytest.approx(0.05, abs=0.02)


def test_differences_are_paired():
    other = NORMAL + np.linspace(0.9, 1.1, 400)
    same, shifted = estimate([NORMAL, other], mean, baseline=0)
    assert same.difference is None
    # the items vary a lot, but the difference hardly does
    assert shifted.difference == pytest.approx(1) and 0.98 < shifted.difference_low < 1 < shifted.difference_high < 1.02
    back, _ = estimate([NORMAL, other], mean, baseline=1)
    assert back.difference == pytest.approx(-1)


def test_seeds_are_averaged_and_their_spread_widens_the_interval():
    seeds = np.concatenate([NORMAL - 1, NORMAL + 1])
    one, two = estimate([NORMAL, seeds], mean, baseline=0)
    assert two.value == pytest.approx(one.value) and two.seed_sd == pytest.approx(math.sqrt(2))
    assert two.high - two.low > 3 * (one.high - one.low)
    assert (two.difference_low, two.difference_high) == pytest.approx((-1, 1))
    # equal seeds add nothing
    single, double = estimate([NORMAL, np.concatenate([NORMAL, NORMAL])], mean)
    assert double[:3] == pytest.approx(single[:3]) and double.seed_sd == 0


def test_rank_correlation_is_scipys():
    values = np.random.default_rng(1).integers(0, 9, (3, 50)).astype(float)  # with ties
    expected = [stats.spearmanr(values[0], row).statistic for row in values[1:]]
    assert rank_correlation(with_gold(values[1:], values[0])) == pytest.approx(expected)
    assert np.isnan(rank_correlation(with_gold(np.array([[5.0, 5, 5]]), np.array([1.0, 2, 3])))).tolist() == [True]


def test_the_interval_of_a_correlation_covers_what_it_was_drawn_from():
    rng = np.random.default_rng(2)
    gold = rng.normal(size=500)
    values = (gold + rng.normal(size=500))[None]
    (found,) = estimate([with_gold(values, gold)], rank_correlation)
    assert found.value == pytest.approx(stats.spearmanr(gold, values[0]).statistic)
    assert found.low < 0.69 < found.high and 0.06 < found.high - found.low < 0.14


def test_all_values_of_an_item_are_resampled_together():
    """Two values of each item that differ by 1 have a difference without spread."""
    drop = Measure(
        "SQuAD under swap", "EM drop", unit="%", statistic=lambda values: mean(values[..., 0] - values[..., 1])
    )
    (row,) = compare_items(drop, {"a": np.stack([NORMAL, NORMAL - 1], axis=2)})
    assert (row.value, row.low, row.high) == pytest.approx((1, 1, 1))
    assert (row.name, row.data, row.measure, row.unit, row.items) == ("a", "SQuAD under swap", "EM drop", "%", 400)


def test_a_new_measure_is_one_function():
    """Of the values of the items; its rows have intervals and differences as all others."""
    median = Measure("data", "median", statistic=lambda values: np.median(values, axis=1))
    plain, other = compare_items(median, {"plain": NORMAL, "other": NORMAL + 1}, "plain")
    assert plain.value == np.median(NORMAL) and plain.baseline is plain.difference is None
    assert (other.difference, other.difference_low, other.difference_high) == pytest.approx((1, 1, 1))
    assert plain.low < plain.value < plain.high and other.baseline == "plain" and other.holm is None
