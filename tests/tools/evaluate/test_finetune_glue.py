"""GLUE: metrics by hand, averages over tasks, and files of predictions in the format of submissions."""

import math
import warnings

import numpy as np
import pytest

from tn_fairseq.tools.evaluate.finetune_glue import averages, metric, write_predictions
from tn_fairseq.tools.formats.glue_tsv import TASKS
from tn_fairseq.tools.results.compare import compare
from tn_fairseq.tools.results.measures import measure_of
from tn_fairseq.tools.results.table import join, table_of

#          TP  TP  TP  FN  FP  FP  TN  TN  TN  TN
TARGETS = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
PREDICTED = [1, 1, 1, 0, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "name, predictions, targets, value",
    [
        ("accuracy", PREDICTED, TARGETS, 70),
        ("f1", PREDICTED, TARGETS, 100 * 2 * 3 / (2 * 3 + 1 + 2)),
        ("matthews", PREDICTED, TARGETS, 100 * (3 * 4 - 2 * 1) / math.sqrt(5 * 4 * 6 * 5)),
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
def test_constant_and_nan_predictions_score_zero_without_a_warning(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metric(name, [0, 0, 0, 0], [0, 1, 1, 0]) == 0
        assert metric(name, [0, 1, 1, 0], [0, 0, 0, 0]) == 0
        assert metric(name, [0], [1]) == 0
        if name in ("spearman", "pearson"):
            assert metric(name, [math.nan, math.nan, 1.0], [1.0, 2.0, 3.0]) == 0


# Averages


def scores(**of: dict[str, list[float]]):
    """Rows by checkpoint, task, and the seeds from 1 on; None is a missing seed."""
    return table_of(
        {"arm": arm, "measure": task, "seed": seed, "value": value, "data": "glue"}
        for arm, tasks in of.items()
        for task, values in tasks.items()
        for seed, value in enumerate(values, start=1)
        if value is not None
    )


def averaged(rows) -> dict[tuple[str, str], list[float]]:
    found = join(*averages(rows))
    return {key: group.tolist() for key, group in found.groupby(["arm", "part"], sort=False)["value"]}


PLAIN = {"CoLA": [50.0, 54.0, 52.0], "RTE": [60.0, 62.0, 67.0]}


def test_averages_are_those_of_each_seed():
    rows = scores(plain=PLAIN, corrected={"CoLA": [54.0, 55.0, 59.0], "RTE": [64.0, 63.0, 65.0]})
    both = "of CoLA, RTE"
    assert averaged(rows) == {("plain", both): [55, 58, 59.5], ("corrected", both): [59, 59, 62]}
    (row,) = [row for _, row in compare(join(*averages(rows)), "plain", "welch").iterrows() if row["arm"] != "plain"]
    assert row["difference"] == pytest.approx(60 - 57.5) and row["holm"] == row["p"]
    assert all(measure_of(name).group for name in TASKS)  # the report has them


def test_an_average_is_only_over_seeds_and_checkpoints_that_have_all_its_tasks():
    rows = scores(
        plain=PLAIN | {"RTE": [60.0, None, 67.0]}, more=PLAIN | {"SST-2": [1.0, 2.0, 3.0]}, other={"RTE": [1.0]}
    )
    assert averaged(rows) == {
        ("plain", "of CoLA, RTE"): [55, 59.5],
        ("more", "of CoLA, RTE"): [55, 58, 59.5],
        ("more", "of CoLA, RTE, SST-2"): pytest.approx([37, 118 / 3, 122 / 3]),
        ("plain", "of RTE"): [60, 67],
        ("more", "of RTE"): [60, 62, 67],
        ("other", "of RTE"): [1],
    }


# Predictions


def written(tmp_path, task: str, split: str, values) -> dict[str, str]:
    """Names and contents of the files written for the predictions."""
    write_predictions(tmp_path / "run", TASKS[task], split, np.array(values))
    return {path.name: path.read_text() for path in (tmp_path / "run").iterdir()}


def test_scores_are_scaled_and_clipped_to_the_range_of_the_task(tmp_path):
    lines = written(tmp_path, "STS-B", "test", [0.5, -0.25, 0.0, 1.0, 1.5, 0.12345])["STS-B.tsv"].splitlines()
    assert lines[0] == "index\tprediction"
    assert lines[1:] == ["0\t2.500", "1\t0.000", "2\t0.000", "3\t5.000", "4\t5.000", "5\t0.617"]


@pytest.mark.parametrize(
    ("task", "split", "name"),
    [
        ("MNLI", "test", "MNLI-m.tsv"),
        ("MNLI", "test1", "MNLI-mm.tsv"),
        ("RTE", "test", "RTE.tsv"),
        ("RTE", "valid", "valid.tsv"),
    ],
)
def test_class_names_and_file_names_match_a_submission(tmp_path, task, split, name):
    labels = TASKS[task].labels
    values = [*range(len(labels)), 0]
    expected = "".join(f"{index}\t{labels[value]}\n" for index, value in enumerate(values))
    assert written(tmp_path, task, split, values) == {name: "index\tprediction\n" + expected}
