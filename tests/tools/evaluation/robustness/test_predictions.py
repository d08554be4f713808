"""Predictions for texts: what is kept, and the lengths of the data."""

import json
from dataclasses import replace
from shutil import copytree

import pytest

from tn_fairseq.core.errors import InputError
from tn_fairseq.tools.evaluation.robustness.attacked_predictions import digest, predict, read_kept
from tn_fairseq.tools.evaluation.robustness.runs import find_runs, lengths_of


def test_predictions_are_kept_for_one_checkpoint_and_its_lengths(tmp_path):
    path = tmp_path / "seed1.json"
    made_with = {"checkpoint": "abc", "max_length": 24}
    assert read_kept(path, made_with) == {}
    path.write_text(json.dumps({"made_with": made_with, "predictions": {"digest": "tom"}}))
    assert read_kept(path, made_with) == {"digest": "tom"}
    for other in (made_with | {"checkpoint": "abd"}, made_with | {"max_length": 25}, {"checkpoint": "abc"}):
        assert read_kept(path, other) == {}
    path.write_text("{")
    with pytest.raises(InputError, match="seed1.json, line 1: not valid JSON .* delete it"):
        read_kept(path, made_with)
    assert digest(("who ?", "tom")) != digest(("who", "? tom"))


def test_lengths_are_those_of_the_data(squad, tmp_path, capsys):
    """Data of an earlier version does not say its lengths, so its windows are long."""
    (run,) = find_runs([f"one={next(squad.glob('scores/corrected/*/*/*/*.pt'))}"])
    assert lengths_of(run.data) == {"max_length": 24, "doc_stride": 4, "max_question_length": 8}
    examples = json.loads((squad / "original.json").read_text())["data"][0]["paragraphs"]
    texts = {(one["question"], part["context"]) for part in examples for one in part["qas"]}
    (short,) = predict([run], texts, tmp_path / "short")
    assert "lengths.json" not in capsys.readouterr().err
    run = replace(run, data=copytree(squad / "bin", tmp_path / "bin"))
    (run.data / "lengths.json").unlink()
    (long,) = predict([run], texts, tmp_path / "long")
    assert f"{run.data}: has no lengths.json, so the default lengths are used" in capsys.readouterr().err
    same = {one: short[one] == long[one] for one in texts}
    assert all(same[one] for one in texts if len(one[1].split()) < 10) and not all(same.values())
    (run.data / "lengths.json").write_text('{"max_length": "24"}')
    with pytest.raises(InputError, match="must hold numbers"):
        lengths_of(run.data)
