"""Spread, intervals and power: values computed by hand, scipy's tests, published tables and simulations."""

import math

import numpy as np
import pytest
from scipy import stats

from tn_fairseq.tools.reporting.statistics import (
    Difference,
    Summary,
    compare,
    compare_paired,
    detectable_difference,
    holm,
    is_equivalent,
    mean_interval,
    power,
    seeds_needed,
    summarize,
)


def test_summaries():
    # deviations from 4: -3 -1 0 4
    sd = pytest.approx(math.sqrt(26 / 3), rel=1e-15)
    assert summarize([1, 3, 4, 8]) == Summary(n=4, mean=4, sd=sd, median=3.5)
    assert summarize([88.3]) == Summary(1, 88.3, pytest.approx(math.nan, nan_ok=True), 88.3)
    assert summarize([88.3] * 3).sd == 0


def test_interval_of_a_mean_matches_a_t_test():
    values = np.random.default_rng(3).normal(7, 2, 5).tolist()
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert mean_interval(values) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert mean_interval([7.05] * 3) == (7.05, 7.05)
    assert mean_interval([7.05]) == mean_interval([]) == (None, None)


# unlike variances and numbers, and no spread on one side
@pytest.mark.filterwarnings("ignore:Precision loss")
@pytest.mark.parametrize("theirs", [np.random.default_rng(1).normal(80, 3, 9).tolist(), [80.0] * 4])
def test_interval_matches_welchs_t_test(theirs):
    ours = np.random.default_rng(2).normal(81, 1, 5).tolist()
    found = compare(ours, theirs)
    test = stats.ttest_ind(ours, theirs, equal_var=False)
    expected = test.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert found.p == pytest.approx(test.pvalue, rel=1e-9)
    assert found.difference == pytest.approx(np.mean(ours) - np.mean(theirs))
    other = compare(theirs, ours)
    assert (other.low, other.high) == pytest.approx((-found.high, -found.low), rel=1e-12)


def test_pooled_standard_deviation_is_weighted_by_degrees_of_freedom():
    # variances 1 with 2 degrees of freedom and 0 with 1: sd sqrt(2/3)
    assert compare([4, 5, 6], [5, 5]).seeds_needed == seeds_needed(math.sqrt(2 / 3))
    assert compare([5, 5], [4, 5, 6]).seeds_needed == seeds_needed(math.sqrt(2 / 3))


@pytest.mark.parametrize(
    ("ours", "theirs", "difference"),
    [
        ([82.0], [80.0, 81.0], 1.5),
        ([82.0, 83.0], [80.0], 2.5),
        ([82.0] * 3, [80.0] * 2, 2.0),
        ([0.0] * 2, [0.0] * 2, 0),
    ],
)
def test_a_single_seed_or_no_spread_at_all_gives_only_a_difference(ours, theirs, difference):
    assert compare(ours, theirs) == Difference(difference)


def test_seeds_needed_as_published():
    """Cohen (1988), table 2.4.1, and G*Power: effect sizes 2, 1, 0.8, 0.5 and 0.2."""
    assert [seeds_needed(sd) for sd in (0.5, 1, 1.25, 2, 5)] == [6, 17, 26, 64, 394]
    assert [seeds_needed(sd) for sd in (0, 1e-9, 1e-3, 0.05)] == [2] * 4  # a t test needs at least two


@pytest.mark.parametrize("sd", [0.3, 0.7, 1.3, 1.93, 4, 20])
def test_one_seed_less_is_too_few(sd):
    n = seeds_needed(sd)
    assert power(n, sd) >= 0.8 > power(n - 1, sd)


def test_a_negligible_difference_is_detected_in_five_percent_of_cases():
    assert power(5, sd=1e6) == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize("n, sd", [(2, 0.5), (6, 0.5), (17, 1.0)])
def test_power_matches_simulated_experiments(n, sd):
    rng = np.random.default_rng(n)
    ours, theirs = rng.normal(1, sd, (20000, n)), rng.normal(0, sd, (20000, n))
    seen = (stats.ttest_ind(ours, theirs, axis=1).pvalue < 0.05).mean()
    assert power(n, sd) == pytest.approx(seen, abs=4 * math.sqrt(seen * (1 - seen) / 20000))


@pytest.mark.parametrize("n", [2, 3, 5, 30])
def test_the_detectable_difference_is_detected_in_80_percent_of_simulated_experiments(n):
    difference = detectable_difference(n, sd=2.0)
    assert difference == pytest.approx(2 * detectable_difference(n, sd=1.0))
    values = np.random.default_rng(n).normal(difference, 2, (20000, n))
    seen = (stats.ttest_1samp(values, 0, axis=1).pvalue < 0.05).mean()
    assert seen == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 20000))
    assert detectable_difference(1, 1.0) is None


def test_holm_multiplies_by_the_number_of_tests_that_are_left():
    assert holm([0.01, 0.04, 0.03, 0.9]) == pytest.approx([0.04, 0.09, 0.09, 0.9])
    assert holm([0.6, 0.5]) == [1.0, 1.0] and holm([0.02]) == [0.02] and holm([]) == []


def test_holm_makes_a_false_claim_in_at_most_five_percent_of_families():
    p_values = np.random.default_rng(1).uniform(size=(4000, 8))
    claims = np.mean([min(holm(family)) < 0.05 for family in p_values.tolist()])
    assert 0.035 < claims < 0.06 < np.mean(p_values.min(axis=1) < 0.05)


def test_paired_differences_are_those_of_a_t_test():
    differences = [0.1, -0.2, 0.3, 0.0]
    test = stats.ttest_1samp(differences, 0)
    found, interval = compare_paired(differences), test.confidence_interval(0.95)
    assert (found.difference, found.low, found.high) == pytest.approx((0.05, interval.low, interval.high))
    assert found.p == pytest.approx(2 * stats.t.sf(0.05 / stats.sem(differences), 3)) == test.pvalue
    assert compare_paired([1.5]) == compare_paired([1.5, 1.5]) == Difference(1.5)


def test_equivalence_is_a_90_percent_interval_within_the_margin():
    differences = [0.1, -0.2, 0.3, 0.0]
    mean, error = np.mean(differences), stats.sem(differences)
    end = abs(mean) + stats.t.ppf(0.95, 3) * error
    assert is_equivalent(differences, end + 1e-6) and not is_equivalent(differences, end - 1e-6)
    # a true difference as large as the margin is called equivalent in 5% of the cases
    found = [is_equivalent(one, 1.0) for one in np.random.default_rng(2).normal(1.0, 0.2, (2000, 5))]
    assert np.mean(found) == pytest.approx(0.05, abs=0.02)


def test_without_a_spread_nothing_is_equivalent():
    assert not is_equivalent([0.5, 0.5], 0.6) and not is_equivalent([0.0], 1.0)
