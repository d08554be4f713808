"""The metrics of GLUE, in percent."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

Values = np.ndarray | Sequence[float]

_CLASSES: dict[str, Callable[[Values, Values], float]] = {
    "accuracy": accuracy_score,
    "f1": partial(f1_score, zero_division=0),  # of class 1
}
_CORRELATIONS: dict[str, Callable[[Values, Values], float]] = {
    "matthews": matthews_corrcoef,
    "spearman": lambda targets, predictions: stats.spearmanr(predictions, targets).statistic,
    "pearson": lambda targets, predictions: stats.pearsonr(predictions, targets).statistic,
}


def metric(name: str, predictions: Values, targets: Values) -> float:
    """A metric by name; predictions and targets are class ids or scores, (examples,).

    A correlation is 0 if it is undefined, because one side is constant or holds NaN.
    """
    if name in _CLASSES:
        return 100 * float(_CLASSES[name](targets, predictions))
    if np.ptp(predictions) == 0 or np.ptp(targets) == 0:
        return 0.0
    correlation = 100 * float(_CORRELATIONS[name](targets, predictions))
    return 0.0 if math.isnan(correlation) else correlation
