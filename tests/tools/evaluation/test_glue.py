"""Files of predictions in the format of GLUE submissions."""

import numpy as np
import pytest

from tn_fairseq.tools.evaluation.finetuning import Pretrained, Run
from tn_fairseq.tools.evaluation.glue import write_predictions
from tn_fairseq.tools.formats.glue import TASKS


def written(tmp_path, task: str, split: str, values) -> dict[str, str]:
    """Names and contents of the files written for the predictions."""
    model = Pretrained("name", tmp_path / "checkpoint.pt", "0", (), 2, 128)
    run = Run(model, task, 1, tmp_path / "run", 10, ())
    write_predictions(run, TASKS[task], split, np.array(values))
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
        ("MNLI", "valid1", "valid1.tsv"),
        ("RTE", "test", "RTE.tsv"),
        ("RTE", "valid", "valid.tsv"),
    ],
)
def test_class_names_and_file_names_match_a_submission(tmp_path, task, split, name):
    labels = TASKS[task].labels
    values = [*range(len(labels)), 0]
    expected = "".join(f"{index}\t{labels[value]}\n" for index, value in enumerate(values))
    assert written(tmp_path, task, split, values) == {name: "index\tprediction\n" + expected}
