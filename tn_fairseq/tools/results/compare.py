"""Compare arms with a baseline: pairs of seeds, independent seeds (Welch), or items and seeds (a bootstrap).

An interval is of 95%. Over seeds it is Student's, over items the percentiles of 1,000 resamples. Each resample draws
clusters of items with replacement, the same for all arms, so that differences are paired, and for each arm seeds.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import brentq

from .measures import PEOPLE, measure_of, names_of

KEY = ["start", "data", "measure", "part"]  # a figure; the arms are compared in it
NUMBERS = [
    *("value", "low", "high", "sd", "median", "best"),
    *("pairs", "difference", "difference_low", "difference_high", "p", "holm"),
    *("margin", "equivalent", "detectable", "seeds_needed"),
]
COLUMNS = [*KEY, "arm", "seeds", "items", *NUMBERS]
CONFIDENCE, POWER, RESAMPLES = 0.95, 0.8, 1000
Row = dict[str, Any]


def compare(
    table: pd.DataFrame,
    baseline: str | None = None,
    how: str = "pairs",
    margins: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """A row for each figure and arm: its mean and spread, and its difference from the ``baseline``.

    ``how`` is ``pairs`` (of the seeds that both have; paired t test), ``welch`` (Welch's t test) or ``items``. A figure
    of a seed is the mean of its items. What is unknown is NaN: all intervals of one seed, or if all seeds agree. ``p``
    is two-sided, ``holm`` is p after Holm's correction for all rows of a group of measures that are no details, and
    ``equivalent`` says whether two one-sided 5% t tests show that the difference is within the margin of its title or
    group. ``detectable`` is the smallest true difference that is found with a probability of 0.8, and ``seeds_needed``
    the seeds on each side that find one of 1.0.
    """
    rows: list[Row] = []
    for key, figure in table[table["measure"].isin(names_of())].groupby(KEY, sort=False):
        about = dict(zip(KEY, key, strict=True))
        measure = measure_of(about["measure"])
        title = measure.titled(about["data"], about["part"], unit=False)
        margin = (margins or {}).get(title, (margins or {}).get(measure.group, math.nan))
        if how == "items":
            figure_rows = _by_items(figure, baseline, measure.correlation)
        else:
            figure_rows = _by_seeds(figure, baseline, how == "welch", margin)
        rows += [about | row for row in figure_rows]
    return corrected(pd.DataFrame(rows, columns=COLUMNS))


def corrected(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The comparisons with Holm's p values, over all that are no details of each start and group."""
    measures = comparisons["measure"].map(measure_of)
    families = [
        None if measure.detail or math.isnan(p) else (start, measure.group)
        for start, measure, p in zip(comparisons["start"], measures, comparisons["p"])
    ]
    holm_p = pd.Series(math.nan, comparisons.index)
    for _, p in comparisons["p"].groupby(pd.Series(families, comparisons.index)):
        holm_p[p.index] = holm(p.to_numpy())
    return comparisons.assign(holm=holm_p)


def holm(p: np.ndarray) -> np.ndarray:
    """p values corrected by Holm's method for the number of tests, (n): one below 0.05 is significant in its family."""
    order = np.argsort(p, kind="stable")
    result = np.empty(len(p))
    result[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return result


def clear(row: Mapping[str, Any]) -> bool:
    """Whether the interval of a difference excludes zero."""
    return row["difference_low"] > 0 or row["difference_high"] < 0


# Seeds


def _by_seeds(figure: pd.DataFrame, baseline: str | None, welch: bool, margin: float) -> list[Row]:
    by_arm = {arm: rows.groupby("seed", sort=False)["value"].mean() for arm, rows in figure.groupby("arm", sort=False)}
    rows, spreads = [], []
    for arm, values in by_arm.items():
        row: Row = dict.fromkeys(NUMBERS, math.nan) | {"arm": arm, "seeds": len(values), "pairs": 0}
        row |= {"value": values.mean(), "sd": values.std()}
        row |= {"median": values.median(), "best": values.max()} if welch else {}
        row["low"], row["high"] = mean_interval(values.to_numpy())
        if baseline in by_arm and arm != baseline:
            plain = by_arm[baseline]
            row["margin"] = margin
            if welch:
                row |= _welch(values.to_numpy(), plain.to_numpy())
            else:
                differences = (values - plain).dropna().to_numpy()
                row |= _paired(differences, margin)
                spreads.append((len(differences) - 1, differences.std(ddof=1) if len(differences) > 1 else 0))
        rows.append(row)
    # the smallest detectable difference follows from the standard deviation that all arms share
    freedom = sum(n for n, _ in spreads if n > 0)
    sd = math.sqrt(sum(n * sd**2 for n, sd in spreads if n > 0) / freedom) if freedom else 0
    for row in rows:
        if sd and row["pairs"] > 1:
            row["detectable"] = _detectable_shift(row["pairs"]) * sd / math.sqrt(row["pairs"])
    return rows


def mean_interval(values: np.ndarray) -> tuple[float, float]:
    """Student's 95% interval of the mean; NaN for fewer than two values."""
    if len(values) < 2:
        return math.nan, math.nan
    width = _quantile(len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return values.mean() - width, values.mean() + width


@cache
def _quantile(freedom: int) -> float:
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))  # of scipy, slow enough to matter for thousands of rows


def _paired(differences: np.ndarray, margin: float) -> Row:
    row: Row = {"pairs": len(differences)}
    if len(differences):
        row["difference"] = differences.mean()
    # a few pairs may agree by chance, which does not mean that there is no spread
    if len(differences) < 2 or np.ptp(differences) == 0:
        return row
    row["difference_low"], row["difference_high"] = mean_interval(differences)
    error, freedom = differences.std(ddof=1) / math.sqrt(len(differences)), len(differences) - 1
    row["p"] = 2 * stats.t.sf(abs(differences.mean()) / error, freedom)
    if not math.isnan(margin):  # the end that is nearer has the larger p
        row["equivalent"] = bool(stats.t.sf((margin - abs(differences.mean())) / error, freedom) < 1 - CONFIDENCE)
    return row


def _welch(ours: np.ndarray, theirs: np.ndarray) -> Row:
    row: Row = {"pairs": 0, "difference": ours.mean() - theirs.mean()}
    if min(len(ours), len(theirs)) < 2 or np.ptp(ours) == np.ptp(theirs) == 0:
        return row
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # one side may be constant
        test = stats.ttest_ind(ours, theirs, equal_var=False)
    interval = test.confidence_interval(CONFIDENCE)
    squares = (len(ours) - 1) * ours.var(ddof=1) + (len(theirs) - 1) * theirs.var(ddof=1)
    pooled_sd = math.sqrt(squares / (len(ours) + len(theirs) - 2))
    row |= {"difference_low": interval.low, "difference_high": interval.high, "p": test.pvalue}
    return row | {"seeds_needed": seeds_needed(pooled_sd)}


def seeds_needed(sd: float) -> int:
    """The fewest seeds per side with which a two-sided 5% t test finds a true difference of 1.0, with power 0.8."""
    if sd == 0:
        return 2
    # the number for a test with known standard deviation; a t test needs at least as many
    quantiles = stats.norm.ppf((1 + CONFIDENCE) / 2) + stats.norm.ppf(POWER)
    n = max(2, int(2 * (quantiles * sd) ** 2))
    while power(n, sd) < POWER:
        n += 1
    return n


def power(n: int, sd: float) -> float:
    """The probability that a two-sided 5% t test with n seeds per side detects a true difference of 1.0."""
    freedom, shift = 2 * n - 2, 1 / (sd * math.sqrt(2 / n))
    critical = stats.t.ppf((1 + CONFIDENCE) / 2, freedom)
    return float(stats.nct.sf(critical, freedom, shift) + stats.nct.cdf(-critical, freedom, shift))


@cache
def _detectable_shift(n: int) -> float:
    """The smallest mean of n paired differences that a two-sided 5% t test detects, in standard errors."""
    critical = _quantile(n - 1)
    # the opposite tail is negligible
    return float(brentq(lambda shift: stats.nct.sf(critical, n - 1, shift) - POWER, 0, 1.5 * critical))


# Items


def _by_items(figure: pd.DataFrame, baseline: str | None, correlation: bool) -> list[Row]:
    people = figure[figure["arm"] == PEOPLE].set_index("item")["value"] if correlation else None
    wide = {
        arm: rows.pivot(index="item", columns="seed", values="value")
        for arm, rows in figure[figure["arm"] != PEOPLE].groupby("arm", sort=False)
    }
    # an item that is undefined for an arm is left out for all
    items = [item for item in dict.fromkeys(figure["item"]) if all(item in one.index for one in wide.values())]
    values = {arm: one.loc[items].dropna().to_numpy().T for arm, one in wide.items()}  # (seeds, items)
    if not items or len({by_seed.shape[1] for by_seed in values.values()}) > 1:
        return []
    gold = None if people is None else people.loc[items].to_numpy()
    measured = {arm: _figures(by_seed, gold) for arm, by_seed in values.items()}
    resampled = _resampled(values, gold, [item.rpartition("/")[0] or item for item in items])
    rows = []
    for arm, by_seed in measured.items():
        row: Row = dict.fromkeys(NUMBERS, math.nan) | {"arm": arm, "seeds": len(by_seed), "items": len(items)}
        row |= {"value": by_seed.mean(), "sd": by_seed.std(ddof=1) if len(by_seed) > 1 else math.nan}
        row["low"], row["high"] = _percentiles(resampled[arm])
        if baseline is not None and baseline in measured and arm != baseline:
            differences = resampled[arm] - resampled[baseline]
            row["difference"] = by_seed.mean() - measured[baseline].mean()
            row["difference_low"], row["difference_high"] = low, high = _percentiles(differences)
            defined = differences[~np.isnan(differences)]
            spread = defined.std(ddof=1) if len(defined) > 1 else 0
            row["p"] = 2 * stats.norm.sf(abs(row["difference"]) / spread) if spread else math.nan
            # a normal approximation: 1.96 and 0.84 standard errors
            row["detectable"] = (high - low) / (2 * 1.96) * (1.96 + 0.84)
        rows.append(row)
    return rows


def _figures(values: np.ndarray, gold: np.ndarray | None) -> np.ndarray:
    """The figure of each seed from its items: (seeds, items) -> (seeds); NaN for a correlation with a constant."""
    if gold is None:
        return values.mean(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ranks = stats.rankdata(gold)
        return np.array([np.corrcoef(ranks, stats.rankdata(seed))[0, 1] for seed in values])


def _resampled(
    values: Mapping[str, np.ndarray], gold: np.ndarray | None, clusters: Sequence[str]
) -> dict[str, np.ndarray]:
    """The mean figure of each arm in each resample; the resamples are always the same."""
    seeds = np.random.default_rng(2)
    resampled = {arm: np.full(RESAMPLES, np.nan) for arm in values}
    for number, chosen in enumerate(_resamples(clusters)):
        for arm, by_seed in values.items():
            figures = _figures(by_seed[:, chosen], None if gold is None else gold[chosen])
            resampled[arm][number] = figures[seeds.integers(len(figures), size=len(figures))].mean()
    return resampled


def _resamples(clusters: Sequence[str]) -> Iterator[np.ndarray]:
    """The items of the drawn clusters by resample, from the cluster of each item; no resamples of a single cluster."""
    numbers, count = pd.factorize(np.array(clusters, dtype=object))[0], len(set(clusters))
    order, sizes = np.argsort(numbers, kind="stable"), np.bincount(numbers)
    starts = np.cumsum(sizes) - sizes  # of the clusters in the order
    random = np.random.default_rng(1)
    for _ in range(RESAMPLES if count > 1 else 0):
        drawn = random.integers(count, size=count)
        lengths = sizes[drawn]
        shifts = starts[drawn] - np.cumsum(lengths) + lengths
        yield order[np.arange(lengths.sum()) + np.repeat(shifts, lengths)]


def _percentiles(resampled: np.ndarray) -> tuple[float, float]:
    """The ends of the interval over the resamples in which the figure is defined; NaN if it is in none."""
    if np.isnan(resampled).all():
        return math.nan, math.nan
    outside = 50 * (1 - CONFIDENCE)
    low, high = np.nanpercentile(resampled, [outside, 100 - outside])
    return float(low), float(high)
