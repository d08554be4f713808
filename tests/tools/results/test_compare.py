"""Comparisons: values computed by hand, scipy's tests, published tables, and simulations."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tn_fairseq.tools.results import compare as comparing
from tn_fairseq.tools.results.compare import compare, holm, mean_interval, power, seeds_needed
from tn_fairseq.tools.results.measures import PEOPLE
from tn_fairseq.tools.results.table import table_of

NORMAL = np.random.default_rng(5).normal(3.0, 2.0, 400)


def by_seed(measure: str = "accuracy", **arms: list[float] | dict[int, float]) -> pd.DataFrame:
    """A table with a value for each arm and seed."""
    values = {arm: of if isinstance(of, dict) else dict(enumerate(of, 1)) for arm, of in arms.items()}
    rows = [{"arm": arm, "seed": seed, "value": one} for arm, of in values.items() for seed, one in of.items()]
    return table_of(rows, measure=measure)


def by_item(measure: str = "GAP", clusters: list | None = None, **arms: np.ndarray) -> pd.DataFrame:
    """A table with a value for each arm and item, or for each arm, seed and item."""
    rows = []
    for arm, values in arms.items():
        for seed, of_seed in enumerate(np.atleast_2d(values)):
            names = [f"{clusters[n]}/{n}" if clusters is not None else str(n) for n in range(len(of_seed))]
            rows += [{"arm": arm, "seed": seed, "item": item, "value": one} for item, one in zip(names, of_seed)]
    return table_of(rows, measure=measure, data="data")


def rows_of(table: pd.DataFrame, *arguments: object, **more: object) -> dict[str, dict]:
    return {row["arm"]: row for row in compare(table, *arguments, **more).to_dict("records")}


# Seeds


def test_pairs_are_the_seeds_of_both_arms():
    arms = {"plain": {1: 10.0, 2: 20.0, 3: 99.0}, "new": {1: 12.0, 2: 24.0}, "one": {2: 21.0}, "none": {7: 1.0}}
    rows = rows_of(by_seed(**arms), "plain")
    new, one = rows["new"], rows["one"]
    assert (new["pairs"], new["difference"], new["value"], new["seeds"]) == (2, 3, 18, 2)
    # differences of 2 and 4: half the interval is 12.706 standard errors of 1
    ends = new["difference_low"], new["difference_high"]
    assert ends == pytest.approx((3 - 12.706, 3 + 12.706), abs=1e-3)
    assert one["difference"] == 1 and math.isnan(one["difference_low"]) and math.isnan(one["detectable"])
    assert math.isnan(rows["none"]["difference"]) and math.isnan(rows["plain"]["difference"])


def test_paired_differences_are_those_of_a_t_test():
    row = rows_of(by_seed(plain=[1, 2, 3, 4], new=[1.1, 1.8, 3.3, 4.0]), "plain")["new"]
    test = stats.ttest_1samp([0.1, -0.2, 0.3, 0.0], 0)
    expected = 0.05, *test.confidence_interval(0.95), test.pvalue
    assert (row["difference"], row["difference_low"], row["difference_high"], row["p"]) == pytest.approx(expected)


def test_the_figure_of_a_seed_is_the_mean_of_its_items():
    items = by_item("accuracy", plain=np.array([[1.0, 3], [4, 6]]), new=np.array([[2.0, 4], [7, 9]]))
    seeds = by_seed("accuracy", plain={0: 2, 1: 5}, new={0: 3, 1: 8}).assign(data="data")
    pd.testing.assert_frame_equal(compare(items, "plain"), compare(seeds, "plain"))


@pytest.mark.parametrize("how", ["pairs", "welch"])
def test_without_a_spread_there_is_only_a_difference(how):
    for arms in ({"plain": [80.0], "new": [82.0]}, {"plain": [80.0] * 2, "new": [82.0] * 2}):
        row = rows_of(by_seed(**arms), "plain", how)["new"]
        assert row["difference"] == 2 and all(math.isnan(row[key]) for key in ("p", "difference_low", "detectable"))
    assert math.isnan(mean_interval(np.array([7.0]))[0])


# unlike variances and numbers, and no spread on one side
@pytest.mark.filterwarnings("ignore:Precision loss")
@pytest.mark.parametrize("theirs", [np.random.default_rng(1).normal(80, 3, 9).tolist(), [80.0] * 4])
def test_independent_seeds_are_compared_by_welchs_t_test(theirs):
    ours = np.random.default_rng(2).normal(81, 1, 5).tolist()
    row = rows_of(by_seed(plain=theirs, new=ours), "plain", "welch")["new"]
    test = stats.ttest_ind(ours, theirs, equal_var=False)
    expected = [*test.confidence_interval(0.95), test.pvalue]
    assert [row["difference_low"], row["difference_high"], row["p"]] == pytest.approx(expected)


def test_seeds_needed_as_published():
    """Cohen (1988), table 2.4.1, and G*Power: effect sizes 2, 1, 0.8, 0.5 and 0.2."""
    assert [seeds_needed(sd) for sd in (0.5, 1, 1.25, 2, 5)] == [6, 17, 26, 64, 394]
    assert [seeds_needed(sd) for sd in (0, 1e-9, 0.05)] == [2] * 3  # a t test needs at least two
    for sd in (0.3, 1.93, 20):  # one seed less is too few
        assert power(seeds_needed(sd), sd) >= 0.8 > power(seeds_needed(sd) - 1, sd)
    assert power(5, sd=1e6) == pytest.approx(0.05, rel=1e-6)
    # variances 1 with 2 degrees of freedom and 0 with 1 are pooled: sd sqrt(2/3)
    row = rows_of(by_seed(plain=[5, 5], new=[4, 5, 6]), "plain", "welch")["new"]
    assert row["seeds_needed"] == seeds_needed(math.sqrt(2 / 3))


@pytest.mark.parametrize("n", [2, 30])
def test_the_detectable_difference_is_detected_in_80_percent_of_simulated_experiments(n):
    shifts = np.random.default_rng(1).normal(size=n)
    row = rows_of(by_seed(plain=[0] * n, new=shifts.tolist()), "plain")["new"]
    difference = row["detectable"] / shifts.std(ddof=1)
    values = np.random.default_rng(n).normal(difference, 1, (20000, n))
    seen = (stats.ttest_1samp(values, 0, axis=1).pvalue < 0.05).mean()
    assert seen == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 20000))


def test_holm_multiplies_by_the_number_of_tests_that_are_left():
    assert holm(np.array([0.01, 0.04, 0.03, 0.9])) == pytest.approx([0.04, 0.09, 0.09, 0.9])
    assert holm(np.array([0.6, 0.5])).tolist() == [1.0, 1.0] and holm(np.array([0.02])).tolist() == [0.02]
    # differences are corrected within a group of measures, without details such as the last one
    arms = {"plain": [1, 2, 3], "new": [1.5, 2.7, 3.2]}
    measures = ("accuracy", "loss", "prediction_rate", "masked_rate")
    found = compare(pd.concat([by_seed(measure, **arms) for measure in measures]), "plain")
    ratios = (found["holm"] / found["p"])[found["arm"] == "new"].tolist()
    assert ratios[:3] == pytest.approx([2, 2, 1]) and math.isnan(ratios[3])
    families = np.random.default_rng(1).uniform(size=(4000, 8))
    assert 0.035 < np.mean([holm(family).min() < 0.05 for family in families]) < 0.06


def test_equivalence_is_a_90_percent_interval_within_the_margin():
    plain, new = np.arange(4.0), np.arange(4) + [0.1, -0.2, 0.3, 0.0]
    end = 0.05 + stats.t.ppf(0.95, 3) * stats.sem(new - plain)
    for margins, expected in (
        ({"accuracy": end + 1e-6}, True),
        ({"masked language modeling on held-out text": end - 1e-6}, False),
    ):
        row = rows_of(by_seed(plain=plain.tolist(), new=new.tolist()), "plain", margins=margins)["new"]
        assert row["equivalent"] is expected and row["margin"] == list(margins.values())[0]
    # a true difference as large as the margin is called equivalent in 5% of the cases
    draws = np.random.default_rng(2).normal(1.0, 0.2, (600, 5))
    found = [comparing._paired(one, 1.0)["equivalent"] for one in draws]
    assert np.mean(found) == pytest.approx(0.05, abs=0.03)
    assert "equivalent" not in comparing._paired(np.array([0.5, 0.5]), 0.6)


# Items


def test_the_interval_of_a_mean_is_that_of_the_normal_approximation():
    row, half = rows_of(by_item(a=NORMAL), None, "items")["a"], 1.96 * NORMAL.std() / math.sqrt(400)
    assert (row["low"], row["high"]) == pytest.approx((NORMAL.mean() - half, NORMAL.mean() + half), abs=0.03)
    row = rows_of(by_item(a=np.full(30, 2.5)), None, "items")["a"]
    assert (row["value"], row["low"], row["high"], row["items"]) == (2.5, 2.5, 2.5, 30)


def test_copies_of_items_in_one_cluster_change_nothing():
    """Whatever their order: copies say nothing new. As independent items, they narrow the interval."""
    order = np.random.default_rng(1).permutation(4 * 400)
    copies, clusters = np.tile(NORMAL, 4)[order], np.tile(np.arange(400), 4)[order].tolist()
    single, clustered, independent = (
        rows_of(table, None, "items")["a"]
        for table in (by_item(a=NORMAL), by_item(a=copies, clusters=clusters), by_item(a=copies))
    )
    width = single["high"] - single["low"]
    assert clustered["value"] == pytest.approx(single["value"])
    assert clustered["high"] - clustered["low"] == pytest.approx(width, rel=0.1)
    assert independent["high"] - independent["low"] == pytest.approx(width / 2, rel=0.1)


def test_larger_clusters_count_more_and_a_single_one_has_no_interval():
    """A mean is over items: of clusters with 1, 0, 0 and four times 1, or of two draws of one of them."""
    row = rows_of(by_item(a=np.array([1.0, 0, 0, 1, 1, 1, 1]), clusters=list("abbcccc")), None, "items")["a"]
    assert row["value"] == pytest.approx(5 / 7) and (row["low"], row["high"]) == (0, 1)
    row = rows_of(by_item(a=NORMAL, b=NORMAL + 1, clusters=[1] * 400), "a", "items")["b"]
    assert row["difference"] == pytest.approx(1) and math.isnan(row["difference_low"]) and math.isnan(row["p"])


def test_the_intervals_of_clustered_items_cover_the_truth_in_95_percent_of_simulations(monkeypatch):
    """200 samples of 100 clusters with 6 items; half of the variance is between clusters."""
    monkeypatch.setattr(comparing, "RESAMPLES", 200)
    rng, clusters = np.random.default_rng(3), np.repeat(np.arange(100), 6)
    samples = {str(n): rng.normal(size=100)[clusters] + rng.normal(size=600) for n in range(200)}
    for names, expected in ((clusters.tolist(), (0.92, 0.98)), (None, (0, 0.75))):
        found = compare(by_item(clusters=names, **samples), None, "items")
        covered = ((found["low"] <= 0) & (found["high"] >= 0)).mean()
        assert expected[0] <= covered <= expected[1]


def test_the_p_values_of_differences_are_uniform_without_a_difference(monkeypatch):
    monkeypatch.setattr(comparing, "RESAMPLES", 200)
    samples = {str(n): of for n, of in enumerate(np.random.default_rng(4).normal(size=(150, 200)))}
    p = compare(by_item(plain=np.zeros(200), **samples), "plain", "items")["p"][1:]
    for level in (0.05, 0.3):
        assert (p < level).mean() == pytest.approx(level, abs=0.06)


def test_differences_are_those_of_items_that_all_arms_have():
    other = NORMAL + np.linspace(0.9, 1.1, 400)
    row = rows_of(by_item(plain=np.append(NORMAL, 99), new=other), "plain", "items")["new"]
    assert row["items"] == 400
    # the items vary a lot, but the difference hardly does
    assert row["difference"] == pytest.approx(1)
    assert 0.98 < row["difference_low"] < 1 < row["difference_high"] < 1.02


def test_seeds_are_averaged_and_their_spread_widens_the_interval():
    table = by_item(one=NORMAL, two=np.stack([NORMAL - 1, NORMAL + 1]), same=np.stack([NORMAL, NORMAL]))
    rows = rows_of(table, "one", "items")
    one, two, same = rows["one"], rows["two"], rows["same"]
    assert two["value"] == pytest.approx(one["value"]) and two["sd"] == pytest.approx(math.sqrt(2))
    assert two["high"] - two["low"] > 3 * (one["high"] - one["low"])
    assert (two["difference_low"], two["difference_high"]) == pytest.approx((-1, 1))
    assert (same["low"], same["high"], same["sd"]) == pytest.approx((one["low"], one["high"], 0))


def test_a_correlation_is_scipys_and_its_interval_covers_what_it_was_drawn_from():
    rng = np.random.default_rng(2)
    gold = rng.normal(size=500).round(1)  # with ties
    values = gold + rng.normal(size=500)
    row = rows_of(by_item("Spearman", a=values, **{PEOPLE: gold}), None, "items")["a"]
    assert row["value"] == pytest.approx(stats.spearmanr(gold, values).statistic)
    assert row["low"] < 0.69 < row["high"] and 0.06 < row["high"] - row["low"] < 0.14
    constant = by_item("Spearman", a=np.ones(3), **{PEOPLE: np.arange(3)})
    assert math.isnan(rows_of(constant, None, "items")["a"]["value"])
