"""Fine-tuning as jobs: what is trained, with which flags, what is refused, and what is kept."""

import hashlib
from pathlib import Path

import pytest
import torch
from files import refused
from omegaconf import OmegaConf

from tn_fairseq.__main__ import main
from tn_fairseq.commands.arguments import parse_options
from tn_fairseq.core.configuration import training_config
from tn_fairseq.tools import jobs
from tn_fairseq.tools.evaluate.finetune_options import FineTuningOptions, GlueOptions
from tn_fairseq.tools.evaluate.finetuning import (
    CHECKPOINT,
    Pretrained,
    evaluate,
    fine_tuning_jobs,
    name_and_path,
    read_checkpoints,
    read_pretrained,
    rows_of,
)
from tn_fairseq.tools.jobs import Job, is_done, run


def pretrained(layers=12, hidden_size=256, digest="0", name="small") -> Pretrained:
    return Pretrained(name, Path("model.pt"), digest, ("--arch", "electra_small"), layers, hidden_size)


def score(checkpoint, folder):
    yield {"data": "glue", "measure": "RTE", "value": 90.0}


def planned(folder: Path = Path("folder"), model=None, examples=100, epochs=3, **more) -> list[Job]:
    """The jobs of a checkpoint on a task."""
    options = FineTuningOptions(**{"checkpoints": [], "data": folder, "output": folder / "out", "seeds": [1], **more})
    flags = ["--task", "squad"]
    return fine_tuning_jobs(options, [model or pretrained()], "RTE", folder / "data", flags, examples, epochs, score)


def pairs(job: Job) -> dict[str, str]:
    return dict(zip(job.run, job.run[1:]))


@pytest.mark.parametrize(
    "layers, size, lr, decay", [(12, 256, "0.0003", "0.8"), (12, 768, "0.0001", "0.8"), (24, 1024, "5e-05", "0.9")]
)
def test_learning_rates_depend_on_the_model_size(layers, size, lr, decay):
    (job,) = planned(model=pretrained(layers, size))
    assert (pairs(job)["--lr"], pairs(job)["--layerwise-lr-decay"]) == (lr, decay)


# 268 updates an epoch, with a smaller last batch
@pytest.mark.parametrize(
    "more, updates", [({}, 3 * 268), ({"batch_size": 16, "epochs": 2}, 2 * 535), ({"max_update": 10_000}, 804)]
)
def test_the_number_of_updates(more, updates):
    (job,) = planned(examples=8_551, lr=1e-5, **more)
    flags = pairs(job)
    assert job.weight == updates and flags["--warmup-updates"] == str(updates // 10)
    assert flags["--max-update"] == flags["--total-num-update"] == str(updates)
    assert (flags["--lr"], flags["--batch-size"]) == ("1e-05", str(more.get("batch_size", 32)))


def test_flags_of_the_user_replace_those_of_the_evaluation(checkpoint):
    more = ["--lr=1e-5", "--lr", "2e-5", "--patience", "-2", "--fp16", "--save-interval-updates", "4"]
    (job,) = planned(model=read_pretrained(str(checkpoint)), more_flags=more)
    cfg = training_config(list(job.run[1:]))
    assert (cfg.optimization.lr, cfg.checkpoint.patience, cfg.common.fp16) == ([2e-5], -2, True)
    assert (cfg.checkpoint.save_interval_updates, cfg.common.seed) == (4, 1)
    assert job.fingerprint["--lr"] == "2e-5" and job.fingerprint["--fp16"] == ""


def save(path: Path, *flags: object) -> Path:
    """Save a checkpoint with the configuration of a pre-trained model, without the model."""
    cfg = training_config(["data", *flags, "--optimizer", "adam", "--lr", 1])
    content = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    torch.save({"cfg": content, "model": {"some.weight": torch.zeros(1)}}, path)
    return path


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("pretrained") / "checkpoint_last.pt"
    flags = ["--task", "electra", "--arch", "electra_tiny", "--encoder-layers", 1, "--max-positions", 64]
    return save(path, *flags, "--criterion", "electra")


def test_a_checkpoint_has_a_name_and_the_flags_of_its_sizes(checkpoint):
    model = read_pretrained(f"mine={checkpoint}")
    flags = ("--arch", "electra_tiny", "--encoder-layers", "1", "--max-positions", "64")
    assert model.model_flags[:2] == flags[:2] and set(model.model_flags) == set(flags)
    assert (model.name, model.path, model.layers, model.hidden_size) == ("mine", checkpoint, 1, 128)
    assert model.digest == hashlib.sha256(checkpoint.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "argument, name, path",
    [
        ("a.pt", "lr=1-a", "a.pt"),
        ("../lr=1/a.pt", "lr=1-a", "../lr=1/a.pt"),  # an existing path may contain an equals sign
        ("x=../lr=1/a.pt", "x", "../lr=1/a.pt"),
        ("../b.pt", "parent-b", "../b.pt"),
    ],
)
def test_names_of_checkpoints(tmp_path, monkeypatch, argument, name, path):
    (tmp_path / "parent" / "lr=1").mkdir(parents=True)
    (tmp_path / "parent" / "lr=1" / "a.pt").touch()
    monkeypatch.chdir(tmp_path / "parent" / "lr=1")
    assert name_and_path(argument) == (name, Path(path))


def test_checkpoints_that_are_refused(checkpoint, tmp_path):
    path = save(tmp_path / "a.pt", "--task", "masked_lm", "--arch", "roberta_base", "--criterion", "masked_lm")
    for name in ("a/b", "", "..", "é" * 128):
        assert f"{name}={checkpoint}" in refused(name_and_path, f"{name}={checkpoint}")
    for checkpoints, baseline, named in (
        ([tmp_path / "none.pt"], None, "none.pt"),
        ([path], None, "not one of our electra_* and bert_* models"),
        ([f"x={checkpoint}", f"x={checkpoint}"], None, "two checkpoints are named x"),
        ([f"x={checkpoint}", f"y={checkpoint}"], "z", "--baseline z"),
    ):
        assert named in refused(read_checkpoints, list(map(str, checkpoints)), baseline)


@pytest.mark.parametrize(
    "flags, message",
    [
        ("--max-sentences 4", "--max-sentences after"),
        ("-aelectra_base", "-aelectra_base after"),
        ("--max-update=4", "--max-update=4 after"),
        ("--dropout 0 --seed 7", "--seed after"),
        ("--no-such-flag 1", "--no-such-flag"),
        ("--dropout much", "--dropout"),
        ("--max-tokens 512 --num-workers 1 --lr 1e-3 --dropout=0", None),
    ],
)
def test_flags_that_would_break_a_run_are_rejected_before_any_run_starts(checkpoint, tmp_path, flags, message):
    more = {"more_flags": tuple(flags.split())}
    if message:
        assert message in refused(planned, tmp_path, read_pretrained(str(checkpoint)), **more)
    else:
        planned(tmp_path, read_pretrained(str(checkpoint)), **more)
    assert not any(tmp_path.iterdir())


# Runs


@pytest.fixture
def fairseq_train(tmp_path, monkeypatch):
    """Replace fairseq-train with a script that writes checkpoints, and fails if there is a file "broken"."""
    script = tmp_path / "train.sh"
    script.write_text(
        'for word; do [ "$last" = --save-dir ] && folder=$word; last=$word; done; [ ! -e broken ] || exit 1\n'
        'mkdir -p "$folder"; touch "$folder/checkpoint_last.pt" "$folder/checkpoint_1_500.pt"\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jobs.sys, "executable", "/bin/sh")
    monkeypatch.setitem(jobs.PROGRAMS, "fairseq-train", [str(script)])


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_seeds_are_added_and_their_rows_are_read(tmp_path, fairseq_train):
    first = planned(tmp_path)
    assert run(first, tmp_path / "out") == []
    both = planned(tmp_path, seeds=[2, 1])
    assert list(map(is_done, both)) == [False, True] and run(both, tmp_path / "out") == []
    rows = rows_of(both)
    assert rows[["arm", "checkpoint", "seed", "measure", "value"]].to_numpy().tolist() == [
        ["small", "model.pt", seed, "RTE", 90.0] for seed in (2, 1)
    ]
    names = {"results.parquet", "results.parquet.job.json", "train.log"}
    assert files(first[0].output.parent) == names
    kept = planned(tmp_path, seeds=[3], keep_checkpoints=True)
    assert run(kept, tmp_path / "out") == []
    assert files(kept[0].output.parent) == {*names, "checkpoint_last.pt"}
    folder = first[0].output.parent
    assert refused(planned, tmp_path, keep_checkpoints=True).startswith(
        f"{folder}: finished without --keep-checkpoints"
    )


def test_a_run_with_other_settings_or_data_is_refused_and_what_differs_is_named(tmp_path, fairseq_train):
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.bin").write_text("1")
    assert run(planned(tmp_path), tmp_path / "out") == []
    for change, named in (
        ({"model": pretrained(digest="1")}, "checkpoint: 0 there, 1 here"),
        ({"max_update": 7}, "--max-update: 12 there, 7 here"),
    ):
        (other,) = planned(tmp_path, **change)
        message = refused(run, [other], tmp_path / "out")
        assert named in message and str(other.output) in message
    (data / "preprocess.log").write_text("a log")
    assert all(map(is_done, planned(tmp_path)))
    (data / "train.bin").write_text("2")
    assert "data: " in refused(run, planned(tmp_path), tmp_path / "out")


def test_a_run_that_was_killed_while_it_deleted_its_checkpoints_is_completed(tmp_path, fairseq_train):
    (job,) = planned(tmp_path)
    assert run([job], tmp_path / "out") == []
    job.marker.write_text(job.marker.read_text().replace('"done"', '"ran"'))
    written = job.output.read_bytes()
    assert not (job.output.parent / CHECKPOINT).exists() and run([job], tmp_path / "out") == []
    assert is_done(job) and job.output.read_bytes() == written
    job.output.unlink()  # without results, it is trained again
    assert run([job], tmp_path / "out") == [] and is_done(job)


def test_the_report_needs_all_runs(tmp_path, fairseq_train):
    options = FineTuningOptions(checkpoints=[], data=tmp_path, output=tmp_path / "out", seeds=[1, 2])
    (tmp_path / "broken").touch()
    message = refused(evaluate, "GLUE", options, planned(tmp_path, seeds=[1, 2]), rows_of)
    assert "small RTE seed 1: failed" in message and "1 more failed" in message
    assert not (tmp_path / "out" / "results.parquet").exists()
    (tmp_path / "broken").unlink()
    text = evaluate("GLUE", options, planned(tmp_path, seeds=[1, 2]), rows_of)
    assert "RTE (%)" in text and (tmp_path / "out" / "results.parquet").exists()


# Options


def test_options_that_are_refused():
    words = ["model.pt", "--data", "bin", "--output", "out"]
    assert list(parse_options(GlueOptions, "evaluate glue", "", [*words, "--seeds", "3,10"]).seeds) == [3, 10]
    for value in ("a", "1,1", "-1", "", str(2**31)):
        assert "--seeds" in refused(main, ["evaluate", "glue", *words, f"--seeds={value}"])
    assert "--lr" in refused(main, ["evaluate", "glue", *words, "--lr=0"])
    # flags for fairseq-train come after "--"
    for command in ("glue", "squad"):
        message = refused(main, ["evaluate", command, *words, "--cpu"])
        assert "--cpu" in message and '"--"' in message
