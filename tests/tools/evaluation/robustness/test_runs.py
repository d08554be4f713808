"""Which runs are found, and one-line errors for those that cannot be measured."""

import json
from pathlib import Path
from shutil import copytree, rmtree

import pytest
import torch
from files import refused

from tn_fairseq.tools.evaluation.robustness.runs import find_runs


@pytest.fixture
def scores(squad, tmp_path) -> Path:
    """A copy of the runs, to damage."""
    return copytree(squad / "scores", tmp_path / "scores")


def refusal(arguments, baseline=None) -> str:
    return refused(find_runs, [str(argument) for argument in arguments], baseline)


def test_runs_are_sorted_with_the_baseline_first(scores, squad):
    assert [str(run) for run in find_runs([str(scores)])] == [
        "corrected SQuAD seed 1",
        "plain SQuAD seed 1",
        "plain SQuAD seed 2",
    ]
    runs = find_runs([str(scores)], "plain")
    assert [str(run) for run in runs] == ["plain SQuAD seed 1", "plain SQuAD seed 2", "corrected SQuAD seed 1"]
    assert {run.data for run in runs} == {squad / "bin"} and len({run.path for run in runs}) == 3


def test_a_single_checkpoint_has_a_name_and_the_seed_of_its_flags(scores):
    path = scores / "plain" / "SQuAD" / "seed2" / "checkpoints" / "checkpoint_last.pt"
    (run,) = find_runs([str(path)])
    assert str(run) == "checkpoints-checkpoint_last SQuAD seed 2"


def test_finished_runs_without_a_checkpoint_are_named_and_left_out(scores, capsys):
    rmtree(scores / "plain" / "SQuAD" / "seed1" / "checkpoints")
    assert [run.seed for run in find_runs([str(scores)], "plain")] == [2, 1]
    assert capsys.readouterr().err == f"without a checkpoint, and left out: {scores / 'plain/SQuAD/seed1'}\n"
    for path in scores.glob("*/*/*/checkpoints"):
        rmtree(path)
    assert "has no checkpoints of finished runs; delete it, and use --keep-checkpoints" in refusal([scores])


def test_runs_that_cannot_be_measured(scores, tmp_path, squad):
    assert "contains no runs on SQuAD; give the --output of tn-fairseq evaluate squad" in refusal([scores / "plain"])
    assert "No such file" in refusal([tmp_path / "nowhere"])
    message = "--baseline other: not among the checkpoints, which are named corrected, plain"
    assert refusal([scores], baseline="other") == message
    path = scores / "plain/SQuAD/seed1/checkpoints/checkpoint_last.pt"
    assert "are both named plain SQuAD seed 1; give different names" in refusal([scores, f"plain={path}"])
    settings = scores / "plain" / "SQuAD" / "seed2" / "settings.json"
    content = json.loads(settings.read_text())
    settings.write_text(json.dumps({**content, "checkpoint": "another"}))
    assert "seed2 differ in more than the seed" in refusal([scores])
    settings.write_text(json.dumps(content))
    (settings.parent / "result.json").unlink()
    assert f"{settings.parent}: not finished" in refusal([scores])


def test_data_that_has_moved(scores, squad):
    path = scores / "plain" / "SQuAD" / "seed1" / "checkpoints" / "checkpoint_last.pt"
    state = torch.load(path)
    state["cfg"]["task"]["data"] = "squad-bin"
    torch.save(state, path)
    message = f"{path} was fine-tuned with it; restore it, or run the command in the folder"
    assert refusal([scores]).startswith("squad-bin/dict.txt: no such file") and message in refusal([scores])


def test_a_checkpoint_of_pre_training(tmp_path, squad):
    path = squad / "scores/plain/SQuAD/seed1/checkpoints/checkpoint_last.pt"
    state = torch.load(path)
    state["cfg"]["task"] = {"_name": "electra", "data": "data-bin"}
    torch.save(state, tmp_path / "model.pt")
    assert "trained with --task electra; give a checkpoint fine-tuned on SQuAD" in refusal([tmp_path / "model.pt"])
