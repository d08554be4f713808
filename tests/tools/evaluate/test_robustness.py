"""Attacked questions: relations to the command squad, between checkpoints, and between files; and refusals."""

import json
from dataclasses import replace
from pathlib import Path
from shutil import copy, copytree, rmtree

import numpy as np
import pytest
import torch
from files import refused
from fine_tuned import random_questions, with_distractors, write_run, write_squad
from helpers import WORDS

from tn_fairseq.__main__ import main
from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tools.evaluate import robustness
from tn_fairseq.tools.evaluate.finetune_options import RobustnessOptions
from tn_fairseq.tools.evaluate.finetuning import CHECKPOINT, MARKER, RESULTS
from tn_fairseq.tools.evaluate.robustness import (
    PREDICTIONS,
    Attack,
    Example,
    FineTuned,
    attack_rows,
    digest,
    find_runs,
    lengths_of,
    predict,
    read_attacks,
    read_kept,
    robustness_rows,
)
from tn_fairseq.tools.formats.squad_json import SquadExample, read_squad
from tn_fairseq.tools.preprocessing.squad_data import binarize_squad
from tn_fairseq.tools.results import compare as comparing
from tn_fairseq.tools.results.report import COMPARISONS, FILES, PAGE, TABLE
from tn_fairseq.tools.results.table import read_table

SEEDS = {"plain": (1, 2), "corrected": (1,)}
KINDS = ("original {}", "attacked {}", "{} drop")


@pytest.fixture(scope="module")
def squad(tmp_path_factory) -> Path:
    """A folder with scores/, original.json, and the attacked files distractors.json and half.json."""
    folder = tmp_path_factory.mktemp("squad")
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "?", *WORDS]) + "\n")
    examples = random_questions(30, seed=1)
    # long contexts have several windows, which other lengths would change
    tokenizer = load_tokenizer(folder / "vocab.txt")
    binarize_squad({"train": examples, "valid": examples}, tokenizer, folder / "bin", 24, 4, 8)
    for name, seeds in SEEDS.items():
        for seed in seeds:
            write_run(folder / "scores", folder / "bin", name, seed=seed)
    write_squad(folder / "original.json", examples)
    write_squad(folder / "distractors.json", with_distractors(examples), attack={"placement": "end"})
    write_squad(folder / "half.json", with_distractors(examples[::2]))
    return folder


@pytest.fixture
def rows(squad, tmp_path, monkeypatch):
    """The rows for attacked files, and what was predicted for them."""
    predict_answers = robustness.predict_answers

    def rows(
        *attacked: str, scores: str | Path = squad / "scores", output: str = "report", baseline: str | None = None
    ):
        predicted: list[str] = []

        def counted(predictor, folder, split, examples):
            weights = sum(one.sum().item() for one in predictor.model.parameters())  # those of one run
            predicted.extend(f"{weights}: {one.question} | {one.context}" for one in examples)
            return predict_answers(predictor, folder, split, examples)

        monkeypatch.setattr(robustness, "predict_answers", counted)
        files = [squad / name for name in attacked]
        original = squad / "original.json"
        options = RobustnessOptions(
            runs=[str(scores)], original=original, attacked=files, output=tmp_path / output, baseline=baseline
        )
        return robustness_rows(options, read_attacks(original, files)), predicted

    return rows


def means(rows) -> dict[tuple[str, int, str, str], float]:
    """The figures by checkpoint, seed, attack and measure."""
    return rows.groupby(["arm", "seed", "part", "measure"])["value"].mean().to_dict()


def checkpoint_of(scores: Path, name: str, seed: int) -> Path:
    return scores / name / "SQuAD" / f"seed{seed}" / CHECKPOINT


# Rows


def test_an_unchanged_file_has_the_scores_of_fine_tuning_and_no_drop(squad, rows):
    found, predicted = rows("original.json")
    assert len(predicted) == len(set(predicted)) == 3 * 30  # each question once for each run
    figures = means(found)
    for name, seeds in SEEDS.items():
        for seed in seeds:
            table, _ = read_table(squad / "scores" / name / "SQuAD" / f"seed{seed}" / RESULTS)
            for score, expected in zip(table["measure"], table["value"], strict=True):
                original, attacked, drop = (figures[name, seed, "original", kind.format(score)] for kind in KINDS)
                assert original == attacked == pytest.approx(expected) and drop == 0 < original < 100


def test_the_rows_of_an_attack_by_hand():
    contexts = ["a tom b", "c runs", "in may", "x y"]
    golds = [("tom",), ("runs",), ("may", "in May"), ("y",)]
    sides = (
        {f"{n}/q": Example(("?", context + end), gold) for n, (context, gold) in enumerate(zip(contexts, golds))}
        for end in ("", " z")
    )
    attack = Attack("swap", Path("swap.json"), *sides, 5, None)
    texts = [one.texts for side in (attack.originals, attack.attacked) for one in side.values()]
    predictions = dict(zip(texts, ["Tom", "runs", "in may", "x y", "tom", "z", "c", "x y"], strict=True))
    table = attack_rows(FineTuned("plain", Path("bin"), 3, Path("model.pt")), attack, predictions)
    assert len(table) == 6 * 4 and set(table["item"]) == set(attack.attacked)
    assert set(map(tuple, table[["arm", "seed", "data", "part"]].to_numpy())) == {("plain", 3, "squad", "swap")}
    figures = table.groupby("measure")["value"].mean()
    assert [figures[kind.format("EM")] for kind in KINDS] == [75, 25, 50]
    expected = 100 * (3 + 2 / 3) / 4, 100 * (1 + 2 / 3) / 4, 50
    assert [figures[kind.format("F1")] for kind in KINDS] == pytest.approx(expected)


def test_a_drop_is_paired_and_questions_on_a_paragraph_are_resampled_together(squad, rows):
    found, _ = rows("distractors.json", "half.json", baseline="plain")
    assert list(dict.fromkeys(found["arm"])) == ["plain", "corrected"]
    items = dict.fromkeys(found["item"])
    contexts = {one.context for one in read_squad(squad / "original.json")}
    assert len(items) == 30 and len({item.split("/")[0] for item in items}) == len(contexts)
    wide = found.pivot(index=["arm", "seed", "part", "item"], columns="measure", values="value")
    for score in ("EM", "F1"):
        original, attacked, drop = (wide[kind.format(score)] for kind in KINDS)
        assert np.allclose(drop, original - attacked)


# Predictions


def test_only_what_is_missing_is_predicted(squad, rows, tmp_path, capsys):
    """More attacks and seeds are added to a report, in another order than in a single command."""
    single, predicted = rows("half.json", scores=f"corrected={checkpoint_of(squad / 'scores', 'corrected', 1)}")
    assert len(predicted) == 15 + 15
    half, predicted = rows("half.json")
    assert len(predicted) == 2 * 30
    assert means(single) == {key: value for key, value in means(half).items() if key[0] == "corrected"}
    capsys.readouterr()
    both, predicted = rows("distractors.json", "half.json")
    assert len(predicted) == 3 * 30  # the rest of the original and of the distractors
    assert "plain SQuAD seed 2: 30 predicted" in capsys.readouterr().err.splitlines()
    again, predicted = rows("distractors.json", "half.json")
    assert predicted == [] and again.equals(both)
    fresh, predicted = rows("half.json", "distractors.json", output="fresh")
    assert len(predicted) == 3 * 60 and means(fresh) == means(both)
    # another checkpoint with the same name
    copytree(squad / "scores/plain/SQuAD/seed1", tmp_path / "scores/plain/SQuAD/seed1")
    copy(checkpoint_of(squad / "scores", "corrected", 1), checkpoint_of(tmp_path / "scores", "plain", 1))
    _, predicted = rows("half.json", scores=tmp_path / "scores")
    assert len(predicted) == 30


def test_an_interrupted_command_resumes(rows, tmp_path, monkeypatch):
    whole, predicted = rows("distractors.json", output="whole")
    monkeypatch.setattr(robustness, "CHUNK", 14)
    predict_some, done = robustness.Predictor.predict, []

    def interrupted(self, *words):
        if len(done) == 6:
            raise KeyboardInterrupt
        done.append(predict_some(self, *words))
        return done[-1]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(robustness.Predictor, "predict", interrupted)
        rows("distractors.json")
    assert [path.name for path in (tmp_path / "report").iterdir()] == [PREDICTIONS]
    found, rest = rows("distractors.json")
    assert len(rest) == len(predicted) - 60 - 14 and set(rest) < set(predicted)
    assert found.equals(whole)


def test_predictions_are_kept_for_one_checkpoint_and_its_lengths(tmp_path):
    path = tmp_path / "seed1.json"
    made_with = {"checkpoint": "abc", "max_length": 24}
    assert read_kept(path, made_with) == {}
    path.write_text(json.dumps({"made_with": made_with, "predictions": {"digest": "tom"}}))
    assert read_kept(path, made_with) == {"digest": "tom"}
    for other in (made_with | {"checkpoint": "abd"}, made_with | {"max_length": 25}, {"checkpoint": "abc"}):
        assert read_kept(path, other) == {}
    path.write_text("{")
    assert str(path) in refused(read_kept, path, made_with)
    assert digest(("who ?", "tom")) != digest(("who", "? tom"))


def test_lengths_are_those_of_the_data(squad, tmp_path, capsys):
    """Data of an earlier version does not say its lengths, so its windows are long."""
    (run,) = find_runs([f"one={checkpoint_of(squad / 'scores', 'corrected', 1)}"])
    assert lengths_of(run.data) == {"max_length": 24, "doc_stride": 4, "max_question_length": 8}
    texts = {(one.question, one.context) for one in read_squad(squad / "original.json")}
    (short,) = predict([run], texts, tmp_path / "short")
    assert "lengths.json" not in capsys.readouterr().err
    run = replace(run, data=copytree(squad / "bin", tmp_path / "bin"))
    (run.data / "lengths.json").unlink()
    (long,) = predict([run], texts, tmp_path / "long")
    assert f"{run.data}: has no lengths.json" in capsys.readouterr().err
    same = {one: short[one] == long[one] for one in texts}
    assert all(same[one] for one in texts if len(one[1].split()) < 10) and not all(same.values())
    (run.data / "lengths.json").write_text('{"max_length": "24"}')
    assert "lengths.json" in refused(lengths_of, run.data)


# The command


def test_the_command_writes_the_report_and_prints_its_tables(squad, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(comparing, "RESAMPLES", 40)
    words = ["--original", "original.json", "--attacked", "distractors.json", "half.json", "--baseline", "plain"]
    words = [str(squad / word) if word.endswith(".json") else word for word in words]
    main(["evaluate", "robustness", str(squad / "scores"), *words, "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {*FILES, PREDICTIONS}
    assert all(str(tmp_path / name) in printed for name in FILES)
    assert "distractors: 30 of 30 questions" in printed and "half: 15 of 30 questions" in printed
    assert "Half: SQuAD EM drop" in (tmp_path / PAGE).read_text()
    table, about = read_table(tmp_path / TABLE)
    assert len(table) == 3 * (30 + 15) * 6
    assert about.pop("report") == "Robustness"
    assert [one["settings"] for one in about.values()] == [{"placement": "end"}, None]
    assert len({one["sha256"] for one in about.values()}) == 2 and about["half"]["file"] == str(squad / "half.json")
    assert len((tmp_path / COMPARISONS).read_text().splitlines()) == 1 + 2 * 2 * 6


# Attacked files and runs


def test_attacked_questions_are_paired_by_id(tmp_path):
    answers = (("tom", 0), ("runs", 4))
    questions = [SquadExample("a/b", "who ?", "tom runs", answers), SquadExample("c", "?", "tom", (("tom", 0),))]
    original = write_squad(tmp_path / "dev.json", questions)
    attacked = SquadExample("a/b", "what ?", "tom sprints", (("sprints", 4),))
    path = write_squad(tmp_path / "swap.json", [attacked], attack={"share": 0.5})
    (found,) = read_attacks(original, [path])
    assert (found.name, found.total, found.settings) == ("swap", 2, {"share": 0.5})
    assert found.originals == {"0/a%2Fb": Example(("who ?", "tom runs"), ("tom", "runs"))}
    assert found.attacked == {"0/a%2Fb": Example(("what ?", "tom sprints"), ("sprints",))}

    other = write_squad(tmp_path / "other.json", [SquadExample("d", "?", "tom", (("tom", 0),))])
    unlabeled = write_squad(tmp_path / "unlabeled.json", [SquadExample("c", "?", "tom", ())])
    (tmp_path / "again").mkdir()
    again = write_squad(tmp_path / "again" / "swap.json", [attacked])
    for paths, named in (
        ([other], f"{other}: question 'd'"),
        ([unlabeled], str(unlabeled)),
        ([path, again], "--attacked: two are named swap"),
    ):
        assert named in refused(read_attacks, original, paths)


@pytest.fixture
def scores(squad, tmp_path) -> Path:
    """A copy of the runs, to damage."""
    return copytree(squad / "scores", tmp_path / "scores")


def refusal(arguments, baseline=None) -> str:
    return refused(find_runs, [str(argument) for argument in arguments], baseline)


def test_runs_are_sorted_with_the_baseline_first(squad):
    names = ["corrected SQuAD seed 1", "plain SQuAD seed 1", "plain SQuAD seed 2"]
    scores = squad / "scores"
    assert [str(run) for run in find_runs([str(scores)])] == names
    runs = find_runs([str(scores)], "plain")
    assert [str(run) for run in runs] == [*names[1:], names[0]]
    assert {run.data for run in runs} == {squad / "bin"} and len({run.path for run in runs}) == 3
    (run,) = find_runs([str(checkpoint_of(scores, "plain", 2))])
    assert str(run) == "checkpoints-checkpoint_last SQuAD seed 2"


def test_finished_runs_without_a_checkpoint_are_named_and_left_out(scores, capsys):
    rmtree(checkpoint_of(scores, "plain", 1).parent)
    assert [run.seed for run in find_runs([str(scores)], "plain")] == [2, 1]
    assert str(scores / "plain/SQuAD/seed1") in capsys.readouterr().err
    for path in scores.glob("*/*/*/checkpoints"):
        rmtree(path)
    assert "--keep-checkpoints" in refusal([scores])


def test_runs_that_cannot_be_measured(scores, tmp_path):
    path, run = checkpoint_of(scores, "plain", 1), scores / "plain" / "SQuAD" / "seed2"
    assert f"{scores / 'plain'}: contains no runs" in refusal([scores / "plain"])
    assert "both named plain SQuAD seed 1" in refusal([scores, f"plain={path}"])
    assert "--baseline other" in refusal([scores], baseline="other")
    content = json.loads((run / MARKER).read_text())
    fingerprint = content["fingerprint"] | {"checkpoint": "another"}
    (run / MARKER).write_text(json.dumps(content | {"fingerprint": fingerprint}))
    assert "seed2 differ in more than the seed" in refusal([scores])
    (run / MARKER).write_text(json.dumps(content | {"state": "ran"}))
    assert f"{run}: not finished" in refusal([scores])
    # a checkpoint without its data, and of another task
    state = torch.load(path)
    for task, data, named in (("squad", "squad-bin", "squad-bin/dict.txt"), ("electra", "x", "--task electra")):
        state["cfg"]["task"] = {"_name": task, "data": data}
        torch.save(state, tmp_path / "model.pt")
        assert named in refusal([tmp_path / "model.pt"])
