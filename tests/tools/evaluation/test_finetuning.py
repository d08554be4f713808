import fcntl
import hashlib
import io
import re
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from files import refused
from omegaconf import OmegaConf

from tn_fairseq.__main__ import main
from tn_fairseq.commands.evaluate_glue import get_parser
from tn_fairseq.core.configuration import training_config
from tn_fairseq.core.errors import InputError
from tn_fairseq.tools import launching
from tn_fairseq.tools.evaluation.finetuning import (
    LAST,
    LOCK,
    FineTuningOptions,
    Pretrained,
    Run,
    check_flags,
    name_and_path,
    plan,
    read_checkpoints,
    read_pretrained,
    run_all,
)


def pretrained(layers=12, hidden_size=256, digest="0", name="small"):
    return Pretrained(name, Path("model.pt"), digest, ("--arch", "electra_small"), layers, hidden_size)


def options(folder=Path("folder"), **more):
    return FineTuningOptions(**{"checkpoints": ["model.pt"], "data": folder, "output": folder, "seeds": [1], **more})


def planned(model, examples=100, epochs=3, **more) -> Run:
    (run,) = plan(options(**more), [model], "SQuAD", Path("data"), ["--task", "squad"], examples, epochs)
    return run


def pairs(run: Run) -> dict[str, str]:
    return dict(zip(run.flags, run.flags[1:]))


@pytest.mark.parametrize(
    "layers, size, lr, decay", [(12, 256, "0.0003", "0.8"), (12, 768, "0.0001", "0.8"), (24, 1024, "5e-05", "0.9")]
)
def test_learning_rates_depend_on_the_model_size(layers, size, lr, decay):
    flags = pairs(planned(pretrained(layers, size)))
    assert (flags["--lr"], flags["--layerwise-lr-decay"]) == (lr, decay)


@pytest.mark.parametrize(
    "more, updates",
    [
        ({}, 3 * 268),  # with a smaller last batch
        ({"batch_size": 16, "epochs": 2}, 2 * 535),
        ({"max_update": 100}, 100),
        ({"max_update": 10_000}, 804),
    ],
)
def test_the_number_of_updates(more, updates):
    run = planned(pretrained(), 8_551, lr=1e-5, more_flags=("--fp16",), **more)
    flags = pairs(run)
    assert run.updates == updates and flags["--warmup-updates"] == str(updates // 10)
    assert flags["--max-update"] == flags["--total-num-update"] == str(updates)
    assert (flags["--lr"], flags["--batch-size"]) == ("1e-05", str(more.get("batch_size", 32)))
    assert flags["--fp16"] == "--seed" and run.flags[-2:] == ("--seed", "1")


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


def test_checkpoints_that_cannot_be_compared(checkpoint, tmp_path):
    with pytest.raises(InputError, match="none.pt: No such file"):
        read_pretrained(str(tmp_path / "none.pt"))
    for name in ("a/b", "", ".", "..", "é" * 128):
        with pytest.raises(InputError, match=f"^{re.escape(name)}=.*the name is also a folder name"):
            name_and_path(f"{name}={checkpoint}")
    with pytest.raises(InputError, match="two checkpoints are named x"):
        read_checkpoints([f"x={checkpoint}", f"x={checkpoint}"], None)
    with pytest.raises(InputError, match="--baseline z: not among the checkpoints, which are named x, y"):
        read_checkpoints([f"x={checkpoint}", f"y={checkpoint}"], "z")


def test_a_model_that_is_not_ours(tmp_path):
    path = save(tmp_path / "a.pt", "--task", "masked_lm", "--arch", "roberta_base", "--criterion", "masked_lm")
    with pytest.raises(InputError, match="not one of our electra_\\* and bert_\\* models"):
        read_pretrained(str(path))


@pytest.mark.parametrize(
    "flags, message",
    [
        ("--batch-size 4", '--batch-size after "--": set by .* give --batch-size'),
        ("--max-sentences 4", "--max-sentences after"),
        ("-a electra_base", "-a after"),
        ("-aelectra_base", "-aelectra_base after"),
        ("--max-update=4", "--max-update=4 after"),
        ("--dropout 0 --seed 7", "--seed after"),
        ("--save-dir elsewhere", "--save-dir after"),
        ("--user-dir elsewhere", "--user-dir after"),
        ("--restore-file model.pt", "--restore-file after"),
        ("--no-save", "--no-save after"),
        ("--update-freq 4", "--update-freq after"),
        ("--max-epoch 1", "--max-epoch after"),
        ("--train-subset valid", "--train-subset after"),
        ("--distributed-world-size 2", "--distributed-world-size after"),
        ("--no-such-flag 1", "unrecognized arguments: --no-such-flag 1"),
        ("--dropout much", "argument --dropout: invalid float value: 'much'"),
        ("--max-tokens 512 --num-workers 1 --lr 1e-3 --dropout=0", None),
    ],
)
def test_flags_that_would_break_a_run_are_rejected_before_any_run_starts(checkpoint, tmp_path, capsys, flags, message):
    more_flags = tuple(flags.split())
    run = planned(read_pretrained(str(checkpoint)), more_flags=more_flags)
    with pytest.raises(InputError, match=message) if message else nullcontext():
        check_flags([run], more_flags)
    assert not capsys.readouterr().err and not any(tmp_path.iterdir())


def a_run(folder, digest="0", flags=("data", "--lr", "1"), seed=1):
    return Run(pretrained(digest=digest), "RTE", seed, folder / f"seed{seed}", 10, flags)


def finish(run, result):
    run.write("settings.json", {"checkpoint": run.model.digest, "data": run.data, "flags": run.flags})
    run.finish(result, keep_checkpoints=False)


def test_a_finished_run_is_identified_by_its_settings(tmp_path):
    assert a_run(tmp_path).result() is None
    finish(a_run(tmp_path), {"valid": {"accuracy": 50.0}})
    assert a_run(tmp_path).result() == {"valid": {"accuracy": 50.0}}
    with pytest.raises(InputError, match="belongs to another checkpoint named small"):
        a_run(tmp_path, digest="1").result()
    (tmp_path / "seed1" / "result.json").write_text("{")
    with pytest.raises(InputError, match="result.json, line 1: not valid JSON .* delete its folder"):
        a_run(tmp_path).result()


@pytest.mark.parametrize(
    "before, now, was, found",
    [
        ("data --max-update 6 --seed 1", "data --max-update 7 --seed 1", "--max-update 6", "--max-update 7"),
        ("data --a 0 --lr 6 --b", "data --a 6 --lr 0 --b", "--a 0 --lr 6", "--a 6 --lr 0"),
        ("data --stop-min-lr -1", "data --stop-min-lr 0", "--stop-min-lr -1", "--stop-min-lr 0"),
        ("data --lr 1", "data --lr 1 --lr 2", "nothing else", "--lr 2"),  # the second one wins
        ("data --lr 1 --fp16", "data --lr 1", "--fp16", "nothing else"),
        ("old/RTE --lr 1", "new/RTE --lr 1", "--data old/RTE", "--data new/RTE"),
        ("data --lr 1 --seed 2", "data --seed 2 --lr 1", "nothing else", "nothing else"),
    ],
)
def test_different_flags_are_named_with_both_values(tmp_path, before, now, was, found):
    finish(a_run(tmp_path, flags=tuple(before.split())), {})
    with pytest.raises(InputError, match=f"different settings: with {was}, and now there is {found}; keep the flags"):
        a_run(tmp_path, flags=tuple(now.split())).result()


def test_a_run_on_data_that_changed_is_refused(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.bin").write_text("1")

    def found() -> Run:
        settings = {"seeds": [1], "more_flags": ()}
        return plan(options(tmp_path, **settings), [pretrained()], "RTE", data, [], 100, 3)[0]

    finish(found(), {"valid": {}})
    (data / "preprocess.log").write_text("a log")
    assert found().result() == {"valid": {}}
    (data / "train.bin").write_text("2")
    assert f"was fine-tuned on other data in {data}; give another --output" in refused(found().result)
    found().write("settings.json", {"checkpoint": "0", "flags": found().flags})  # of an older version
    assert found().result() == {"valid": {}}


def test_a_folder_in_which_another_command_is_fine_tuning(tmp_path, monkeypatch):
    monkeypatch.setattr(launching, "PATIENCE", 0)
    run = a_run(tmp_path)
    run.write("settings.json", {"checkpoint": "0", "flags": run.flags})
    arguments = options(tmp_path), [run], score
    with open(tmp_path / LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert f"{tmp_path}: another command is fine-tuning there; wait for it to end" in refused(run_all, *arguments)
    assert "fairseq-train failed" in refused(run_all, *arguments)  # these flags are incomplete


@pytest.mark.parametrize("content", ["{}", '{"flags": "data"}'])
def test_settings_that_are_damaged(tmp_path, content):
    finish(a_run(tmp_path), {})
    (tmp_path / "seed1" / "settings.json").write_text(content)
    with pytest.raises(InputError, match="settings.json: not the settings of a run; delete its folder"):
        a_run(tmp_path).result()


@pytest.fixture
def trained(monkeypatch):
    """Replace training; return the list of seeds that were trained."""
    trained = []

    def train(self, launcher, threads):
        trained.append(self.seed)
        yield None
        yield 5, "1.0"
        self.checkpoint.parent.mkdir(parents=True)
        self.write("settings.json", {"checkpoint": self.model.digest, "flags": self.flags})

    monkeypatch.setattr(Run, "train", train)
    return trained


def score(run):
    return {"updates": 10, "valid": {"accuracy": 90 + run.seed / 3, "f1": 80.0}, "seed": run.seed}


def test_only_unfinished_runs_are_trained_and_each_prints_a_line(tmp_path, trained, capsys):
    runs = [a_run(tmp_path, seed=seed) for seed in (1, 2, 3)]
    finish(runs[1], {"old": True})
    results = run_all(options(tmp_path), runs, score)
    assert trained == [1, 3] and [result.get("seed") for result in results] == [1, None, 3]
    assert [run.result() for run in runs] == results and results[1] == {"old": True}
    assert not runs[0].checkpoint.parent.exists()
    output = capsys.readouterr()
    assert output.out == "" and output.err.splitlines() == [
        "[2/3] small RTE seed 1: accuracy 90.33, f1 80.00",
        "[3/3] small RTE seed 3: accuracy 91.00, f1 80.00",
    ]
    assert run_all(options(tmp_path), runs, score) == results
    assert capsys.readouterr().err == "" and trained == [1, 3]
    message = refused(run_all, options(tmp_path, keep_checkpoints=True), runs, score)
    assert message.startswith(f"{runs[0].folder}: finished without --keep-checkpoints; delete the folder")


@pytest.mark.parametrize(
    "parallel, environment, threads", [(1, {}, None), (3, {}, 5), (9, {}, 4), (3, {"OMP_NUM_THREADS": "1"}, None)]
)
def test_several_runs_at_the_same_time_share_the_cores(tmp_path, monkeypatch, parallel, environment, threads):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    events = []

    def train(self, launcher, threads_of_each):
        assert threads_of_each == threads
        for updates in range(0, 10 * self.seed, 10):
            events.append(self.seed)
            yield updates, "1.0"
        self.write("settings.json", {"checkpoint": self.model.digest, "flags": self.flags})

    def scored(run):
        events.append(f"score {run.seed}")
        return score(run)

    monkeypatch.setattr(Run, "train", train)
    runs = [a_run(tmp_path, seed=seed) for seed in (3, 1, 2, 4)]
    results = run_all(options(tmp_path, parallel=parallel), runs, scored)
    assert [result["seed"] for result in results] == [3, 1, 2, 4]
    assert (
        events
        == {
            1: [3, 3, 3, "score 3", 1, "score 1", 2, 2, "score 2", 4, 4, 4, 4, "score 4"],
            3: [3, 1, 2, 3, "score 1", 2, 3, 4, "score 2", "score 3", 4, 4, 4, "score 4"],
            9: [3, 1, 2, 4, 3, "score 1", 2, 4, 3, "score 2", 4, "score 3", 4, "score 4"],
        }[parallel]
    )


def test_a_failed_run_ends_the_others_which_can_go_on(tmp_path, monkeypatch):
    launched = []

    def train(self, launcher, threads):
        if self.seed == 1:
            launched.append(launcher.start(["sleep", "300"], self.folder / "train.log"))
        yield None
        if self.seed == 2:
            raise InputError("fairseq-train failed")

    monkeypatch.setattr(Run, "train", train)
    runs = [a_run(tmp_path, seed=seed) for seed in (1, 2)]
    assert refused(run_all, options(tmp_path, parallel=2), runs, score) == "fairseq-train failed"
    assert launched[0].process.returncode == -signal.SIGTERM


@pytest.mark.parametrize("keep", [True, False])
def test_only_the_last_checkpoint_is_kept(tmp_path, keep):
    run = a_run(tmp_path)
    run.checkpoint.parent.mkdir(parents=True)
    for name in (LAST, "checkpoint_1_500.pt"):
        (run.checkpoint.parent / name).touch()
    run.finish({}, keep)
    assert list(tmp_path.rglob("*.pt")) == [run.checkpoint] * keep


def test_on_a_terminal_there_is_only_a_progress_bar(tmp_path, trained, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    run_all(options(tmp_path), [a_run(tmp_path)], score)
    assert "small RTE seed 1, loss 1.0" in terminal.getvalue() and "accuracy" not in terminal.getvalue()


@pytest.mark.parametrize("command", ["glue", "squad"])
def test_the_command_explains_how_to_give_flags_for_fairseq_train(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")  # argparse breaks lines at this width
    with pytest.raises(SystemExit) as exit:
        main(["evaluate", command, "--help"])
    assert exit.value.code == 0 and 'Flags for fairseq-train go after "--": -- --dropout 0.2' in capsys.readouterr().out
    with pytest.raises(SystemExit) as exit:
        main(["evaluate", command, "model.pt", "--data", "bin", "--output", "out", "--cpu", "--dropout", "0"])
    assert str(exit.value).endswith(
        'unrecognized arguments --cpu --dropout 0; flags for fairseq-train go last, after "--"'
    )


def test_squad_score_does_not_mention_flags_for_fairseq_train():
    message = refused(main, ["evaluate", "squad-score", "data.json", "predictions.json", "--cpu"])
    assert message.endswith("unrecognized arguments: --cpu; tn-fairseq evaluate squad-score --help lists the options")


@pytest.mark.parametrize("seeds", ["a", "1,1", "-1", "1,,2", "", str(2**31)])
def test_seeds_must_be_different_numbers(seeds):
    words = ["model.pt", "--data", "bin", "--output", "out"]
    assert get_parser().parse_args([*words, "--seeds", "3,10"]).seeds == [3, 10]
    assert "--seeds" in refused(get_parser().parse_args, [*words, f"--seeds={seeds}"])
    for rate in ("0", "abc"):
        assert "--lr" in refused(get_parser().parse_args, [*words, "--lr", rate])
