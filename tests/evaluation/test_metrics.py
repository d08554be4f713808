"""The metrics of GLUE: values computed by hand, and the scores of constant or invalid predictions."""

import math
import warnings

import numpy as np
import pytest

from tn_fairseq.evaluation.metrics import METRICS

#          TP  TP  TP  FN  FP  FP  TN  TN  TN  TN
TARGETS = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
PREDICTED = [1, 1, 1, 0, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "name, value",
    [
        ("accuracy", 70),
        ("f1", 100 * 2 * 3 / (2 * 3 + 1 + 2)),
        ("matthews", 100 * (3 * 4 - 2 * 1) / math.sqrt(5 * 4 * 6 * 5)),
    ],
)
def test_classes_by_hand(name, value):
    assert METRICS[name](np.array(PREDICTED), np.array(TARGETS)) == pytest.approx(value, rel=1e-12)


def test_correlations_by_hand():
    scores, targets = [1.0, 2.0, 3.0, 10.0], [1.0, 3.0, 2.0, 4.0]
    # deviations from the means: -3 -2 -1 6 and -1.5 .5 -.5 1.5
    assert METRICS["pearson"](scores, targets) == pytest.approx(100 * 13 / math.sqrt(50 * 5), rel=1e-12)
    # ranks 1 2 3 4 and 1 3 2 4: 1 - 6 * 2 / (4 * 15)
    assert METRICS["spearman"](scores, targets) == pytest.approx(80, rel=1e-12)


def test_spearman_gives_equal_scores_their_mean_rank():
    # ranks 1.5 1.5 3 and 1 2 3: deviations -.5 -.5 1 and -1 0 1
    assert METRICS["spearman"]([0, 0, 5], [1, 2, 3]) == pytest.approx(100 * 1.5 / math.sqrt(1.5 * 2), rel=1e-12)


def test_three_classes():
    assert METRICS["accuracy"]([0, 1, 2, 2], [0, 1, 2, 1]) == 75


@pytest.mark.parametrize("name, worst", [("accuracy", 0), ("f1", 0), ("matthews", -100)])
def test_all_correct_and_all_wrong(name, worst):
    assert METRICS[name]([1, 0, 1], [1, 0, 1]) == pytest.approx(100, rel=1e-12)
    assert METRICS[name]([0, 1, 0], [1, 0, 1]) == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize("name", ["spearman", "pearson"])
def test_correlations_ignore_scale_but_not_sign(name):
    scores = np.array([0.1, 0.5, 0.2, 0.9])
    assert METRICS[name](3 * scores + 1, scores) == pytest.approx(100, rel=1e-12)
    assert METRICS[name](-scores, scores) == pytest.approx(-100, rel=1e-12)


@pytest.mark.parametrize("name", ["f1", "matthews", "spearman", "pearson"])
def test_constant_predictions_score_zero_without_a_warning(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert METRICS[name]([0, 0, 0, 0], [0, 1, 1, 0]) == 0
        assert METRICS[name]([0, 0], [0, 0]) == 0
        assert METRICS[name]([0], [1]) == 0


@pytest.mark.parametrize("name", ["spearman", "pearson"])
def test_nan_predictions_score_zero(name):
    assert METRICS[name]([math.nan, math.nan, 1.0], [1.0, 2.0, 3.0]) == 0
    assert METRICS[name]([math.nan] * 3, [1.0, 2.0, 3.0]) == 0


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("predictions, targets", [([1, 0], [1]), ([1], [1, 0]), ([], []), ([[1, 0]], [[1, 0]])])
def test_lists_must_be_non_empty_and_of_one_length(name, predictions, targets):
    with pytest.raises(ValueError, match="must be non-empty lists of one length"):
        METRICS[name](predictions, targets)


@pytest.mark.parametrize("name", METRICS)
def test_values_are_python_floats(name):
    assert type(METRICS[name](np.array(PREDICTED), np.array(TARGETS))) is float
