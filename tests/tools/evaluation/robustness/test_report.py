"""The command as a user runs it: relations to the command squad, between its runs, and between its files."""

import csv
import json
from pathlib import Path
from shutil import copy, copytree

import pytest

from tn_fairseq.commands.evaluate_robustness import main
from tn_fairseq.tools.evaluation import bootstrap
from tn_fairseq.tools.evaluation.robustness import attacked_predictions
from tn_fairseq.tools.evaluation.robustness.robustness_report import FILES, PREDICTIONS
from tn_fairseq.tools.reporting import comparison

CSV, JSON, TEXT = (f"robustness.{suffix}" for suffix in ("csv", "json", "txt"))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command; return what it printed, the rows by data, checkpoint and measure, and what it read."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 40)  # test_bootstrap.py tests the intervals
    draw, predict_answers = comparison.draw_comparisons, attacked_predictions.predict_answers

    def run(*words: object, plots: bool = False, output: str = "report", **options: object):
        predicted: list[str] = []

        def counted(predictor, folder, split, examples):
            weights = sum(one.sum().item() for one in predictor.model.parameters())  # those of one run
            predicted.extend(f"{weights}: {one.question} | {one.context}" for one in examples)
            return predict_answers(predictor, folder, split, examples)

        monkeypatch.setattr(attacked_predictions, "predict_answers", counted)
        # plots take seconds
        monkeypatch.setattr(comparison, "draw_comparisons", draw if plots else lambda rows, *paths: None)
        flags = ["--output", tmp_path / output]
        for name, value in options.items():
            flags += [f"--{name}", *(value if isinstance(value, list) else [value])]
        main([str(word) for word in (*words, *flags)])
        rows = json.loads((tmp_path / output / JSON).read_text())["comparisons"]
        by_key = {(row["data"], row["name"], row["measure"]): row for row in rows}
        assert len(by_key) == len(rows)
        return capsys.readouterr(), by_key, predicted

    return run


@pytest.fixture
def run_squad(run, squad):
    """Run the command for the questions of original.json and files of attacked ones."""

    def run_squad(*attacked: str | Path, scores: str | Path = squad / "scores", **options: object):
        return run(scores, original=squad / "original.json", attacked=[squad / name for name in attacked], **options)

    return run_squad


def result(folder: Path, name: str, seed: int) -> dict[str, float]:
    return json.loads((folder / "scores" / name / "SQuAD" / f"seed{seed}" / "result.json").read_text())["valid"]


def test_an_unchanged_file_has_the_scores_of_fine_tuning_and_no_drop(squad, run_squad):
    _, rows, predicted = run_squad("original.json")
    assert len(predicted) == len(set(predicted)) == 3 * 30  # each question once for each run
    for name, seeds in {"plain": (1, 2), "corrected": (1,)}.items():
        for score in ("EM", "F1"):
            original, attacked, drop = (
                rows["SQuAD under original", name, f"{score} {kind}"] for kind in ("original", "attacked", "drop")
            )
            found = [result(squad, name, seed)[score] for seed in seeds]
            assert original["value"] == attacked["value"] == pytest.approx(sum(found) / len(found))
            assert 0 < original["value"] < 100
            assert drop["value"] == drop["low"] == drop["high"] == 0
            assert (drop["seeds"], drop["items"]) == (len(seeds), 30)
    plain = [result(squad, "plain", seed)["F1"] for seed in (1, 2)]
    sd = rows["SQuAD under original", "plain", "F1 original"]["seed_sd"]
    assert sd == pytest.approx(abs(plain[0] - plain[1]) / 2**0.5)


def test_only_what_is_missing_is_predicted(squad, run_squad):
    """More attacks and seeds are added to a report, in another order than in a single command."""
    path = squad / "scores/corrected/SQuAD/seed1/checkpoints/checkpoint_last.pt"
    _, single, predicted = run_squad("half.json", scores=f"corrected={path}")
    assert len(predicted) == 15 + 15 and len(single) == 6
    _, half, predicted = run_squad("half.json")
    assert len(predicted) == 2 * 30 and single == {key: row for key, row in half.items() if key[1] == "corrected"}
    printed, rows, predicted = run_squad("distractors.json", "half.json")
    assert len(predicted) == 3 * 30  # the rest of the original and of the distractors
    assert "plain SQuAD seed 2: 30 predicted" in printed.err.splitlines()
    again, same, predicted = run_squad("distractors.json", "half.json")
    assert predicted == [] and again.out == printed.out and same == rows
    _, fresh, predicted = run_squad("half.json", "distractors.json", output="fresh")
    assert len(predicted) == 3 * 60 and fresh == rows
    assert {key: row for key, row in rows.items() if key[0] == "SQuAD under half"} == half


def test_an_interrupted_command_resumes(run_squad, tmp_path, monkeypatch):
    _, whole, predicted = run_squad("distractors.json", output="whole")
    monkeypatch.setattr(attacked_predictions, "CHUNK", 14)
    predict_some, done = attacked_predictions.Predictor.predict, []

    def interrupted(self, *words):
        if len(done) == 6:
            raise KeyboardInterrupt
        done.append(predict_some(self, *words))
        return done[-1]

    with (
        monkeypatch.context() as patch,
        pytest.raises(KeyboardInterrupt, match="^run the same command again$"),
    ):
        patch.setattr(attacked_predictions.Predictor, "predict", interrupted)
        run_squad("distractors.json")
    assert [path.name for path in (tmp_path / "report").iterdir()] == [PREDICTIONS]
    _, rows, rest = run_squad("distractors.json")
    assert len(rest) == len(predicted) - 60 - 14 and set(rest) < set(predicted)
    assert rows == whole


def test_another_checkpoint_with_the_same_name_is_predicted_again(squad, run_squad, tmp_path):
    copytree(squad / "scores/plain/SQuAD/seed1", tmp_path / "scores/plain/SQuAD/seed1")
    _, before, _ = run_squad("half.json", scores=tmp_path / "scores")
    other, path = (f"scores/plain/SQuAD/{seed}/checkpoints/checkpoint_last.pt" for seed in ("seed2", "seed1"))
    copy(squad / other, tmp_path / path)
    _, after, predicted = run_squad("half.json", scores=tmp_path / "scores")
    assert len(predicted) == 30 and after != before


def test_files_agree_and_differences_are_those_of_the_values(squad, run_squad, tmp_path):
    printed, rows, _ = run_squad("distractors.json", "half.json", baseline="plain", plots=True, paper=[])
    folder = tmp_path / "report"
    assert {path.name for path in folder.iterdir()} == {*FILES, PREDICTIONS}
    text = (folder / TEXT).read_text()
    assert printed.out.startswith(text) and all(len(line) <= 120 for line in text.splitlines())
    assert all(f"{folder / name}" in printed.out for name in FILES)
    assert "SQuAD under distractors: 30 of 30 questions" in text and "SQuAD under half: 15 of 30 questions" in text
    assert "from the paper (not ours)" in text
    with open(folder / CSV, newline="") as file:
        for line, row in zip(csv.DictReader(file), rows.values(), strict=True):
            assert line["name"] == row["name"] and float(line["value"]) == pytest.approx(row["value"], abs=1e-6)
    for (data, name, measure), row in rows.items():
        score, kind = measure.split()
        if kind == "drop":
            original, attacked = (rows[data, name, f"{score} {side}"]["value"] for side in ("original", "attacked"))
            assert row["value"] == pytest.approx(original - attacked)
        assert row["low"] <= row["value"] <= row["high"]
        if name == "plain":
            assert row["baseline"] is None and row["difference"] is None
        else:
            assert row["difference"] == pytest.approx(row["value"] - rows[data, "plain", measure]["value"])
    attacks = json.loads((folder / JSON).read_text())["attacks"]
    assert [one["settings"] for one in attacks] == [{"placement": "end"}, None]
    assert [(one["examples"], one["total"]) for one in attacks] == [(30, 30), (15, 30)]
    assert len({one["sha256"] for one in attacks}) == 2 and attacks[1]["file"] == str(squad / "half.json")
