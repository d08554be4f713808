"""Spread over seeds, intervals of differences, and the number of seeds needed to detect a difference."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from scipy import stats
from scipy.optimize import brentq
from scipy.special import stdtr, stdtrit

CONFIDENCE, POWER, DIFFERENCE = 0.95, 0.8, 1.0


@dataclass(frozen=True)
class Summary:
    """Summary of the scores of ``n`` seeds; ``sd`` divides by n - 1 and is NaN for one seed."""

    n: int
    mean: float
    sd: float
    median: float


@dataclass(frozen=True)
class Difference:
    """A difference of means, its 95% interval and p value, and the seeds per side to detect a true difference of 1.0.

    All but the difference are None if the spread is unknown: for a single seed, or if the seeds agree.
    """

    difference: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    seeds_needed: int | None = None


def summarize(values: Sequence[float]) -> Summary:
    """Summarize the scores of at least one seed."""
    sd = statistics.stdev(values) if len(values) > 1 else math.nan
    return Summary(len(values), statistics.fmean(values), sd, statistics.median(values))


def mean_interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Student's 95% interval of the mean; None and None for fewer than two values."""
    if len(values) < 2:
        return None, None
    summary = summarize(values)
    if summary.sd == 0:
        return summary.mean, summary.mean
    # a hundred times as fast as scipy.stats, and a study has thousands
    width = float(stdtrit(summary.n - 1, (1 + CONFIDENCE) / 2)) * summary.sd / math.sqrt(summary.n)
    return summary.mean - width, summary.mean + width


def compare_paired(differences: Sequence[float]) -> Difference:
    """The mean of at least one paired difference, with Student's interval and p value, without ``seeds_needed``."""
    summary = summarize(differences)
    # a few pairs may agree by chance, which does not mean that there is no spread
    if summary.n < 2 or summary.sd == 0:
        return Difference(summary.mean)
    p = 2 * float(stdtr(summary.n - 1, -abs(summary.mean) * math.sqrt(summary.n) / summary.sd))
    return Difference(summary.mean, *mean_interval(differences), p)


def holm(p_values: Sequence[float]) -> list[float]:
    """p values corrected by Holm's method for the number of tests: one below 0.05 is significant in its family."""
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected


def is_equivalent(differences: Sequence[float], margin: float) -> bool:
    """Whether two one-sided 5% t tests show that the mean of paired differences is within plus or minus ``margin``.

    A single pair, or a few that agree, show nothing.
    """
    summary = summarize(differences)
    if summary.n < 2 or summary.sd == 0:
        return False
    distance = margin - abs(summary.mean)  # to the nearer end, whose test has the larger p
    return bool(stdtr(summary.n - 1, -distance * math.sqrt(summary.n) / summary.sd) < 1 - CONFIDENCE)


def compare(values: Sequence[float], baseline: Sequence[float]) -> Difference:
    """Compare the means of two independent samples by Welch's t test, which assumes no common variance."""
    ours, theirs = summarize(values), summarize(baseline)
    difference = ours.mean - theirs.mean
    # a few seeds may agree by chance, which does not mean that there is no spread
    if min(ours.n, theirs.n) < 2 or ours.sd == theirs.sd == 0:
        return Difference(difference)
    variances = ours.sd**2 / ours.n, theirs.sd**2 / theirs.n
    error = math.sqrt(sum(variances))
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / (ours.n - 1) + variances[1] ** 2 / (theirs.n - 1))
    low, high = stats.t.interval(CONFIDENCE, freedom, difference, error)
    p = 2 * stats.t.sf(abs(difference) / error, freedom)
    squares = (ours.n - 1) * ours.sd**2 + (theirs.n - 1) * theirs.sd**2
    pooled_sd = math.sqrt(squares / (ours.n + theirs.n - 2))
    return Difference(difference, float(low), float(high), float(p), seeds_needed(pooled_sd))


def seeds_needed(sd: float) -> int:
    """The fewest seeds per side for which a two-sided 5% t test detects DIFFERENCE with probability 0.8."""
    if sd == 0:
        return 2
    # the number for a test with known standard deviation; a t test needs at least as many
    quantiles = stats.norm.ppf((1 + CONFIDENCE) / 2) + stats.norm.ppf(POWER)
    n = max(2, int(2 * (quantiles * sd / DIFFERENCE) ** 2))
    while power(n, sd) < POWER:
        n += 1
    return n


def power(n: int, sd: float) -> float:
    """The probability that a two-sided 5% t test with n seeds per side detects a true difference of DIFFERENCE."""
    freedom, shift = 2 * n - 2, DIFFERENCE / (sd * math.sqrt(2 / n))
    critical = stats.t.ppf((1 + CONFIDENCE) / 2, freedom)
    return float(stats.nct.sf(critical, freedom, shift) + stats.nct.cdf(-critical, freedom, shift))


def detectable_difference(n: int, sd: float) -> float | None:
    """The smallest mean of ``n`` paired differences that a two-sided 5% t test detects with probability 0.8.

    ``sd`` is the standard deviation of the differences. None for fewer than two pairs.
    """
    return _detectable_shift(n) * sd / math.sqrt(n) if n > 1 else None


@cache
def _detectable_shift(n: int) -> float:
    """The smallest detectable mean of ``n`` paired differences, in standard errors."""
    critical = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)

    def missing(shift: float) -> float:  # the opposite tail is negligible
        return stats.nct.sf(critical, n - 1, shift) - POWER

    return float(brentq(missing, 0, 1.5 * critical))
