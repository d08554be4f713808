"""Intervals of measures over items (targets, word pairs, questions) and seeds, by resampling both.

Each resample draws clusters of items with replacement, the same for all checkpoints, so that differences are paired. A
cluster holds the items that have something in common, such as the questions on one paragraph: they are alike, so the
measure varies more than if all items were independent. Each resample also draws seeds with replacement for each
checkpoint that has several, and averages over them.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np
from scipy import stats

from ..reporting.comparison import Comparison
from ..reporting.statistics import CONFIDENCE

RESAMPLES = 1000
# the measure of each seed from its values, (seeds, items) or, with several values of an item, (seeds, items, values) ->
# (seeds,)
Statistic = Callable[[np.ndarray], np.ndarray]


class Estimate(NamedTuple):
    """A measure averaged over seeds, its standard deviation over seeds, and its difference from the baseline.

    ``low`` and ``high`` are the ends of 95% intervals. ``p`` is the two-sided p value of a normal distribution with the
    standard deviation of the resampled differences. None where it is undefined.
    """

    value: float | None
    low: float | None
    high: float | None
    seed_sd: float | None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p: float | None = None


def mean(values: np.ndarray) -> np.ndarray:
    """The mean over items: (seeds, items) -> (seeds,)."""
    return values.mean(axis=1)


def rank_correlation(values: np.ndarray) -> np.ndarray:
    """Spearman's correlation of the two values of the items: (seeds, items, 2) -> (seeds,); NaN if one is constant."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.array([np.corrcoef(ranks, rowvar=False)[0, 1] for ranks in stats.rankdata(values, axis=1)])


@dataclass(frozen=True)
class Measure:
    """What is measured of a checkpoint, as in ``Comparison``, and how it follows from the values of the items."""

    data: str
    name: str
    part: str = ""
    unit: str = ""
    statistic: Statistic = mean
    detail: bool = False


def compare_items(
    measure: Measure,
    groups: Mapping[str, np.ndarray],
    baseline: str | None = None,
    clusters: Sequence[Hashable] | None = None,
) -> list[Comparison]:
    """A row for each checkpoint: the measure with its interval, and its paired difference from the baseline.

    ``groups`` are the values by the checkpoint's name, and ``clusters`` as in ``estimate``. Items that are NaN for the
    first checkpoint are left out for all; there are no rows without items. There is no difference without a
    ``baseline``, or if it is not in the groups.
    """
    names = list(groups)
    first = groups[names[0]]
    defined = ~np.isnan(first).any(axis=tuple(axis for axis in range(first.ndim) if axis != 1))
    if not defined.any():
        return []
    baseline_index = names.index(baseline) if baseline in names else None
    kept = None if clusters is None else list(compress(clusters, defined))
    estimates = estimate([values[:, defined] for values in groups.values()], measure.statistic, baseline_index, kept)
    return [
        Comparison(
            name=name,
            data=measure.data,
            measure=measure.name,
            part=measure.part,
            unit=measure.unit,
            detail=measure.detail,
            seeds=len(groups[name]),
            items=int(defined.sum()),
            baseline=None if baseline_index in (None, number) else baseline,
            **estimated._asdict(),
        )
        for number, (name, estimated) in enumerate(zip(names, estimates))
    ]


def estimate(
    groups: Sequence[np.ndarray],
    statistic: Statistic,
    baseline: int | None = None,
    clusters: Sequence[Hashable] | None = None,
) -> list[Estimate]:
    """Estimate a measure for each checkpoint, and its difference from the checkpoint number ``baseline``.

    ``groups`` are the values of each checkpoint, (seeds, items) or (seeds, items, values). ``clusters`` names the
    cluster of each item, (items,); by default, each item is one. The baseline has no difference, and a single cluster
    no intervals. The resamples are always the same.
    """
    seed_rng = np.random.default_rng(2)
    measured = [statistic(values) for values in groups]
    resampled = np.full((len(groups), RESAMPLES), np.nan)
    for number, chosen in enumerate(_resamples(range(groups[0].shape[1]) if clusters is None else clusters)):
        for group, values in enumerate(groups):
            by_seed = statistic(values[:, chosen])
            resampled[group, number] = by_seed[seed_rng.integers(len(by_seed), size=len(by_seed))].mean()
    estimates = []
    for group, values in enumerate(measured):
        seed_sd = np.std(values, ddof=1) if len(values) > 1 else np.nan
        row: list[float] = [values.mean(), *_interval(resampled[group]), seed_sd]
        if baseline is not None and baseline != group:
            difference = values.mean() - measured[baseline].mean()
            differences = resampled[group] - resampled[baseline]
            row += [difference, *_interval(differences), _p_value(difference, differences)]
        estimates.append(Estimate(*(None if np.isnan(number) else float(number) for number in row)))
    return estimates


def _resamples(clusters: Sequence[Hashable]) -> Iterator[np.ndarray]:
    """The items of the drawn clusters by resample, from the cluster of each item; no resamples for a single cluster."""
    numbers = {cluster: number for number, cluster in enumerate(dict.fromkeys(clusters))}
    cluster_numbers = np.array([numbers[cluster] for cluster in clusters])
    order, sizes = np.argsort(cluster_numbers, kind="stable"), np.bincount(cluster_numbers)
    starts = np.cumsum(sizes) - sizes  # of the clusters in the order
    random = np.random.default_rng(1)
    for _ in range(RESAMPLES if len(sizes) > 1 else 0):
        drawn = random.integers(len(sizes), size=len(sizes))
        lengths = sizes[drawn]
        shifts = starts[drawn] - np.cumsum(lengths) + lengths
        yield order[np.arange(lengths.sum()) + np.repeat(shifts, lengths)]


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
