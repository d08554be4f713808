"""The metrics of GLUE: values computed by hand, and the scores of constant or invalid predictions."""

import math
import warnings

import numpy as np
import pytest

from tn_fairseq.tools.evaluation.metrics import metric

#          TP  TP  TP  FN  FP  FP  TN  TN  TN  TN
TARGETS = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
PREDICTED = [1, 1, 1, 0, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "name, predictions, targets, value",
    [
        ("accuracy", PREDICTED, TARGETS, 70),
        ("accuracy", [0, 1, 2, 2], [0, 1, 2, 1], 75),
        ("f1", PREDICTED, TARGETS, 100 * 2 * 3 / (2 * 3 + 1 + 2)),
        ("matthews", PREDICTED, TARGETS, 100 * (3 * 4 - 2 * 1) / math.sqrt(5 * 4 * 6 * 5)),
        ("matthews", [0, 1, 0], [1, 0, 1], -100),
        # deviations from the means: -3 -2 -1 6 and -1.5 .5 -.5 1.5
        ("pearson", [1.0, 2.0, 3.0, 10.0], [1.0, 3.0, 2.0, 4.0], 100 * 13 / math.sqrt(50 * 5)),
        # ranks 1 2 3 4 and 1 3 2 4: 1 - 6 * 2 / (4 * 15)
        ("spearman", [1.0, 2.0, 3.0, 10.0], [1.0, 3.0, 2.0, 4.0], 80),
        # ranks 1.5 1.5 3 and 1 2 3, because equal scores have their mean rank: deviations -.5 -.5 1 and -1 0 1
        ("spearman", [0, 0, 5], [1, 2, 3], 100 * 1.5 / math.sqrt(1.5 * 2)),
    ],
)
def test_by_hand(name, predictions, targets, value):
    found = metric(name, np.array(predictions), np.array(targets))
    assert found == pytest.approx(value, rel=1e-12) and type(found) is float  # for JSON


@pytest.mark.parametrize("name", ["f1", "matthews", "spearman", "pearson"])
def test_constant_predictions_score_zero_without_a_warning(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metric(name, [0, 0, 0, 0], [0, 1, 1, 0]) == 0
        assert metric(name, [0, 1, 1, 0], [0, 0, 0, 0]) == 0
        assert metric(name, [0], [1]) == 0


@pytest.mark.parametrize("name", ["spearman", "pearson"])
def test_nan_predictions_score_zero(name):
    assert metric(name, [math.nan, math.nan, 1.0], [1.0, 2.0, 3.0]) == 0
