"""The metrics of GLUE, in percent."""

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

Metric = Callable[[np.ndarray | Sequence[float], np.ndarray | Sequence[float]], float]


def _per_cent(metric: Callable[[np.ndarray, np.ndarray], float]) -> Metric:
    @wraps(metric)
    def checked(predictions: Any, targets: Any) -> float:
        predictions, targets = np.asarray(predictions), np.asarray(targets)
        if predictions.shape != targets.shape or predictions.ndim != 1 or not predictions.size:
            raise ValueError(
                f"predictions {predictions.shape} and targets {targets.shape}: must be non-empty lists of one length"
            )
        return 100 * float(metric(predictions, targets))

    return checked


@_per_cent
def accuracy(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Accuracy of class ids; both (examples,). Raises ValueError for different lengths and for no examples."""
    return accuracy_score(targets, predictions)


@_per_cent
def f1(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Binary F1 of class 1, 0 if it is neither predicted nor a target; both (examples,). Raises ValueError as above."""
    return f1_score(targets, predictions, zero_division=0)


@_per_cent
def matthews(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Matthews correlation of class ids, 0 if either is constant; both (examples,). Raises ValueError as above."""
    return 0.0 if _constant(predictions, targets) else matthews_corrcoef(targets, predictions)


@_per_cent
def spearman(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Spearman's rank correlation, 0 for constant scores or NaN; both (examples,). Raises ValueError as above."""
    return _correlation(stats.spearmanr, predictions, targets)


@_per_cent
def pearson(predictions: np.ndarray, targets: np.ndarray) -> float:
    """Pearson's correlation, 0 for constant scores or NaN; both (examples,). Raises ValueError as above."""
    return _correlation(stats.pearsonr, predictions, targets)


def _constant(predictions: np.ndarray, targets: np.ndarray) -> bool:
    """Whether a correlation is undefined."""
    return bool(np.ptp(predictions) == 0 or np.ptp(targets) == 0)


def _correlation(function: Callable, predictions: np.ndarray, targets: np.ndarray) -> float:
    if _constant(predictions, targets):
        return 0.0
    correlation = float(function(predictions, targets).statistic)
    return 0.0 if math.isnan(correlation) else correlation


METRICS: dict[str, Metric] = {metric.__name__: metric for metric in (accuracy, f1, matthews, spearman, pearson)}
