"""Predictions for texts: what is kept, and the lengths of the data."""

import json
from shutil import copytree

import pytest

from tn_fairseq.errors import InputError
from tn_fairseq.evaluation.robustness.predictions import Kept, data_lengths, predict
from tn_fairseq.evaluation.robustness.runs import find_runs


def test_predictions_are_kept_for_one_checkpoint_and_its_lengths(tmp_path):
    path = tmp_path / "plain" / "seed1.json"
    kept = Kept(path, "abc", {"max_length": 24})
    kept.add([("who ?", "tom")], ["tom"])
    kept.add([("who", "? tom")], ["\u00e9"])  # not the same texts
    again = Kept(path, "abc", {"max_length": 24})
    assert (again["who ?", "tom"], again["who", "? tom"]) == ("tom", "\u00e9") and ("who ?", "to") not in again
    for other in (Kept(path, "abd", {"max_length": 24}), Kept(path, "abc", {"max_length": 25}), Kept(path, "abc", {})):
        assert ("who ?", "tom") not in other
    path.write_text("{")
    with pytest.raises(InputError, match="seed1.json, line 1: not valid JSON .* delete it"):
        Kept(path, "abc", {})


def test_lengths_are_those_of_the_data(squad, tmp_path, capsys):
    """Data of an earlier version does not say its lengths, so its windows are long."""
    (run,) = find_runs([f"one={next(squad.glob('scores/corrected/*/*/*/*.pt'))}"], ["SQuAD"])
    assert data_lengths(run) == {"max_length": 24, "doc_stride": 4, "max_question_length": 8}
    examples = json.loads((squad / "original.json").read_text())["data"][0]["paragraphs"]
    texts = {(one["question"], part["context"]) for part in examples for one in part["qas"]}
    (short,) = predict([run], {"SQuAD": texts}, tmp_path / "short")
    assert "lengths.json" not in capsys.readouterr().err
    run.cfg.task.data = str(copytree(squad / "bin", tmp_path / "bin"))
    (run.data / "lengths.json").unlink()
    (long,) = predict([run], {"SQuAD": texts}, tmp_path / "long")
    assert f"{run.data}: has no lengths.json, so the default lengths of" in capsys.readouterr().err
    same = {one: short[one] == long[one] for one in texts}
    assert all(same[one] for one in texts if len(one[1].split()) < 10) and not all(same.values())
    (run.data / "lengths.json").write_text('{"max_length": "24"}')
    with pytest.raises(InputError, match="must hold numbers"):
        data_lengths(run)
