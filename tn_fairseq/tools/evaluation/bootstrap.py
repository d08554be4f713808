"""Intervals of measures over items (targets, word pairs, questions) and seeds, by resampling both.

Each resample draws clusters of items with replacement, the same for all checkpoints, so that differences are paired. A
cluster holds the items that have something in common, such as the questions on one paragraph: they are alike, so the
measure varies more than if all items were independent. Each resample also draws seeds with replacement for each
checkpoint that has several, and averages over them.
"""

import textwrap
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from ..reporting.layout import WIDTH
from ..reporting.statistics import CONFIDENCE, holm

RESAMPLES = 1000
# the measure of each seed from its values, (seeds, items) -> (seeds,)
Statistic = Callable[[np.ndarray], np.ndarray]


class Estimate(NamedTuple):
    """A measure averaged over seeds, its standard deviation over seeds, and its difference from the baseline.

    ``low`` and ``high`` are the ends of 95% intervals. ``difference_p`` is the two-sided p value of a normal
    distribution with the standard deviation of the resampled differences. None where it is undefined.
    """

    value: float | None
    low: float | None
    high: float | None
    seed_sd: float | None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    difference_p: float | None = None


def mean(values: np.ndarray) -> np.ndarray:
    """The mean over items: (seeds, items) -> (seeds,)."""
    return values.mean(axis=1)


def rank_correlation(values: np.ndarray) -> np.ndarray:
    """Spearman's correlation of the first row with each other row: (1 + seeds, items) -> (seeds,); NaN if constant."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.corrcoef(stats.rankdata(values, axis=1))[0, 1:]


def estimate(
    groups: Sequence[np.ndarray],
    statistic: Statistic,
    baseline: int | None = None,
    gold: np.ndarray | None = None,
    clusters: Sequence[Hashable] | None = None,
) -> list[Estimate]:
    """Estimate a measure for each checkpoint, and its difference from the checkpoint number ``baseline``.

    ``groups`` are the values of each checkpoint, (seeds, items). ``gold``, (items,), is the first row for the statistic
    if it is given. ``clusters`` names the cluster of each item, (items,); by default, each item is one. The baseline
    has no difference, and a single cluster no intervals. The resamples are always the same.
    """
    of_item = range(groups[0].shape[1]) if clusters is None else clusters
    numbers = {cluster: number for number, cluster in enumerate(dict.fromkeys(of_item))}
    of_cluster = np.array([numbers[cluster] for cluster in of_item])
    order, sizes = np.argsort(of_cluster, kind="stable"), np.bincount(of_cluster)
    starts = np.cumsum(sizes) - sizes  # of the clusters in the order

    def members(drawn: np.ndarray) -> np.ndarray:
        """The items of the clusters that are drawn."""
        lengths = sizes[drawn]
        shifts = starts[drawn] - np.cumsum(lengths) + lengths
        return order[np.arange(lengths.sum()) + np.repeat(shifts, lengths)]

    def measure(chosen: Any) -> list[np.ndarray]:
        first = [] if gold is None else [gold[None, chosen]]
        return [statistic(np.concatenate([*first, values[:, chosen]])) for values in groups]

    random, of_seeds = np.random.default_rng(1), np.random.default_rng(2)
    found = measure(slice(None))
    resampled = np.full((len(groups), RESAMPLES), np.nan)
    for number in range(RESAMPLES if len(sizes) > 1 else 0):
        for group, values in enumerate(measure(members(random.integers(len(sizes), size=len(sizes))))):
            resampled[group, number] = values[of_seeds.integers(len(values), size=len(values))].mean()
    estimates = []
    for group, values in enumerate(found):
        seed_sd = np.std(values, ddof=1) if len(values) > 1 else np.nan
        row: list[float] = [values.mean(), *_interval(resampled[group]), seed_sd]
        if baseline is not None and baseline != group:
            difference = values.mean() - found[baseline].mean()
            differences = resampled[group] - resampled[baseline]
            row += [difference, *_interval(differences), _p_value(difference, differences)]
        estimates.append(Estimate(*(None if np.isnan(number) else number for number in row)))
    return estimates


def significant(p_values: Mapping[str, float | None]) -> str:
    """For a terminal of 120 columns: which of the named differences remain after Holm's correction for all of them."""
    tested = {name: p for name, p in p_values.items() if p is not None}
    if not tested:
        return ""
    names = [name for name, p in zip(tested, holm(list(tested.values()))) if p < 1 - CONFIDENCE]
    found = f"After Holm's correction, {len(names)} of {len(tested)} differences are significant"
    return "\n".join(textwrap.wrap(f"{found}{': ' if names else ''}{'; '.join(names)}.", WIDTH))


def _interval(resampled: np.ndarray) -> tuple[float, float]:
    """The percentiles of the resamples in which the measure is defined; NaN if it is in none."""
    if np.isnan(resampled).all():
        return np.nan, np.nan
    outside = 50 * (1 - CONFIDENCE)
    low, high = np.nanpercentile(resampled, [outside, 100 - outside])
    return low, high


def _p_value(difference: float, resampled: np.ndarray) -> float:
    """The two-sided p value of a difference from its resamples; NaN if they do not vary or are undefined."""
    defined = resampled[~np.isnan(resampled)]
    spread = defined.std(ddof=1) if len(defined) > 1 else 0
    return 2 * float(stats.norm.sf(abs(difference) / spread)) if spread else np.nan
