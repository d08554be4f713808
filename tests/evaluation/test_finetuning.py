import io
import json
import os
import re
import sys
from pathlib import Path

import pytest
from helpers import fairseq_train

from tn_fairseq.errors import InputError
from tn_fairseq.evaluation.__main__ import get_parser, main
from tn_fairseq.evaluation.finetuning import (
    Evaluation,
    Pretrained,
    Recipe,
    Run,
    check_flags,
    default_learning_rate,
    read_checkpoints,
    read_pretrained,
    run_all,
)
from tn_fairseq.evaluation.squad import plan as plan_squad


def pretrained(layers=12, hidden_size=256, digest="0", name="small"):
    return Pretrained(name, Path("model.pt"), digest, ("--arch", "electra_small"), layers, hidden_size)


def test_learning_rates_depend_on_the_model_size():
    sizes = {"small": (12, 256), "base": (12, 768), "large": (24, 1024)}
    assert [default_learning_rate(pretrained(*size)) for size in sizes.values()] == [3e-4, 1e-4, 5e-5]
    decays = {
        name: flags[flags.index("--layerwise-lr-decay") + 1]
        for name, size in sizes.items()
        for flags in [Recipe().flags(pretrained(*size), 100)]
    }
    assert decays == {"small": "0.8", "base": "0.8", "large": "0.9"}


def test_the_number_of_updates_includes_a_smaller_last_batch():
    assert Recipe().updates(examples=8_551, epochs=3) == 3 * 268
    assert Recipe(batch_size=16, epochs=2).updates(8_551, 3) == 2 * 535
    assert Recipe(max_update=100).updates(8_551, 3) == 100
    assert Recipe(max_update=10_000).updates(8_551, 3) == 804
    flags = Recipe(learning_rate=1e-5, more_flags=("--fp16",)).flags(pretrained(), 804)
    pairs = dict(zip(flags, flags[1:]))
    assert (pairs["--warmup-updates"], pairs["--max-update"], pairs["--total-num-update"]) == ("80", "804", "804")
    assert pairs["--lr"] == "1e-05" and pairs["--batch-size"] == "32" and flags[-1] == "--fp16"


@pytest.fixture(scope="module")
def checkpoint(data_bin, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrained")
    flags = ["--task", "electra", "--arch", "electra_tiny", "--encoder-layers", 1, "--max-positions", 64]
    run = fairseq_train(data_bin, folder, *flags, "--criterion", "electra", "--max-update", 1)
    assert run.code == 0, run.output
    return folder / "checkpoint_last.pt"


def test_a_checkpoint_has_a_default_name_and_the_flags_of_its_sizes(checkpoint):
    model = read_pretrained(str(checkpoint))
    assert model.name == f"{checkpoint.parent.name}-checkpoint_last"
    flags = ("--arch", "electra_tiny", "--encoder-layers", "1", "--max-positions", "64")
    assert model.model_flags[:2] == flags[:2] and set(model.model_flags) == set(flags)
    assert (model.layers, model.hidden_size) == (1, 128)
    named = read_pretrained(f"mine={checkpoint}")
    assert named.name == "mine" and named.digest == model.digest and named.path == checkpoint


def test_an_existing_path_may_contain_an_equals_sign(checkpoint, tmp_path):
    folder = tmp_path / "lr=1"
    folder.mkdir()
    (folder / "a.pt").write_bytes(checkpoint.read_bytes())
    assert read_pretrained(str(folder / "a.pt")).name == "lr=1-a"


def test_the_default_name_has_the_folder_even_if_the_path_does_not(checkpoint, monkeypatch):
    (checkpoint.parent / "below").mkdir(exist_ok=True)
    monkeypatch.chdir(checkpoint.parent / "below")
    name = f"{checkpoint.parent.name}-checkpoint_last"
    assert read_pretrained(os.path.join(os.pardir, checkpoint.name)).name == name


def test_checkpoints_that_cannot_be_compared(checkpoint, tmp_path):
    with pytest.raises(InputError, match="none.pt: No such file"):
        read_pretrained(str(tmp_path / "none.pt"))
    with pytest.raises(InputError, match="a/b=.*remove the slash"):
        read_pretrained(f"a/b={checkpoint}")
    for name in ("", ".", "..", "é" * 128):
        with pytest.raises(InputError, match=f"^{re.escape(name)}=.*the name is also a folder name"):
            read_pretrained(f"{name}={checkpoint}")
    with pytest.raises(InputError, match="two checkpoints are named x"):
        read_checkpoints([f"x={checkpoint}", f"x={checkpoint}"], None)
    with pytest.raises(InputError, match="--baseline z: not among the checkpoints, which are named x, y"):
        read_checkpoints([f"x={checkpoint}", f"y={checkpoint}"], "z")


def test_a_model_that_is_not_ours(data_bin, tmp_path):
    sizes = "--encoder-layers 1 --encoder-embed-dim 16 --encoder-ffn-embed-dim 16 --encoder-attention-heads 1"
    flags = ["--task", "masked_lm", "--arch", "roberta_base", *sizes.split(), "--criterion", "masked_lm"]
    run = fairseq_train(data_bin, tmp_path, *flags, "--max-update", 1)
    assert run.code == 0, run.output
    with pytest.raises(InputError, match="not one of our electra_\\* and bert_\\* models"):
        read_pretrained(str(tmp_path / "checkpoint_last.pt"))


@pytest.mark.parametrize(
    "flags, message",
    [
        ("--batch-size 4", '--batch-size after .* give --batch-size before "--"'),
        ("--max-update=4", "--max-update after"),
        ("--dropout 0 --seed 7", '--seed after .* give --seeds before "--"'),
        ("--save-dir elsewhere", "--save-dir: set by the evaluation itself"),
        ("--user-dir elsewhere", "--user-dir: set by the evaluation itself"),
        ("--restore-file model.pt", "--restore-file: set by the evaluation itself"),
        ("--no-save", "--no-save: set by the evaluation itself"),
        ("--no-such-flag 1", "fairseq-train rejects them .unrecognized arguments: --no-such-flag 1"),
        ("--dropout much", "fairseq-train rejects them .argument --dropout: invalid float value: 'much'"),
        ("--fp16 --cpu", "--fp16 needs a GPU"),
        ("--tpu", "needs a GPU or a CPU"),
    ],
)
def test_flags_that_would_break_a_run_are_rejected_before_any_run_starts(checkpoint, tmp_path, capsys, flags, message):
    more_flags = tuple(flags.split())
    evaluation = Evaluation([], tmp_path, tmp_path, [1], Recipe(more_flags=more_flags))
    run = plan_squad(evaluation, read_pretrained(str(checkpoint)), 10, 1)
    with pytest.raises(InputError, match=message):
        check_flags([run], more_flags)
    assert not capsys.readouterr().err and not any(tmp_path.iterdir())


def test_other_flags_of_fairseq_train_are_accepted(checkpoint, tmp_path):
    more_flags = ("--max-tokens", "512", "--num-workers", "1", "--lr", "1e-3", "--dropout=0")
    evaluation = Evaluation([], tmp_path, tmp_path, [1], Recipe(more_flags=more_flags))
    run = plan_squad(evaluation, read_pretrained(str(checkpoint)), 10, 1)
    check_flags([run], more_flags)


def a_run(folder, digest="0", flags=("data", "--lr", "1"), seed=1):
    return Run(pretrained(digest=digest), "RTE", seed, folder / f"seed{seed}", 10, flags)


def finish(run, result):
    run._write("settings.json", {"checkpoint": run.model.digest, "flags": run.flags})
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
    "before, now, message",
    [
        ("data --max-update 6 --seed 1", "data --max-update 7 --seed 1", "--max-update was 6, is now 7"),
        (
            "data --warmup-updates 0 --lr 6",
            "data --warmup-updates 6 --lr 0",
            "--warmup-updates was 0, is now 6; --lr was 6, is now 0",
        ),
        ("data --stop-min-lr -1", "data --stop-min-lr 0", "--stop-min-lr was -1, is now 0"),
        ("data --lr 1", "data --lr 1 --lr 2", "--lr was 1, is now 1 2"),  # if a flag is given twice, the second wins
        ("data --lr 1", "data --fp16 --lr 1", "--fp16 was absent, is now given"),
        ("data --lr 1 --seed 2", "data --lr 1", "--seed was 2, is now absent"),
        ("old/RTE --lr 1", "new/RTE --lr 1", "--data was old/RTE, is now new/RTE"),
        ("data --lr 1 --seed 2", "data --seed 2 --lr 1", "the order of flags"),
    ],
)
def test_different_flags_are_named_with_both_values(tmp_path, before, now, message):
    finish(a_run(tmp_path, flags=tuple(before.split())), {})
    with pytest.raises(InputError) as error:
        a_run(tmp_path, flags=tuple(now.split())).result()
    assert str(error.value).endswith(f"seed1 was fine-tuned with different settings ({message}); give another --output")


@pytest.fixture
def trained(monkeypatch):
    """Replace training; return the list of seeds that were trained."""
    trained = []

    def train(self, advance):
        trained.append(self.seed)
        advance(5, "1.0")
        (self.folder / "checkpoints").mkdir(parents=True)
        self._write("settings.json", {"checkpoint": self.model.digest, "flags": self.flags})
        return self.folder / "checkpoints" / "checkpoint_last.pt"

    monkeypatch.setattr(Run, "train", train)
    return trained


def score(run, checkpoint):
    return {"updates": 10, "valid": {"accuracy": 90 + run.seed / 3, "f1": 80.0}, "seed": run.seed}


def test_only_unfinished_runs_are_trained(tmp_path, trained):
    runs = [a_run(tmp_path, seed=seed) for seed in (1, 2, 3)]
    finish(runs[1], {"old": True})
    run_all(runs, score, keep_checkpoints=False)
    assert trained == [1, 3]
    assert [run.result().get("seed") for run in runs] == [1, None, 3]
    assert not (tmp_path / "seed1" / "checkpoints").exists()
    assert json.loads((tmp_path / "seed2" / "result.json").read_text()) == {"old": True}


def test_without_a_terminal_each_finished_run_prints_a_line_to_standard_error(tmp_path, trained, capsys):
    runs = [a_run(tmp_path, seed=seed) for seed in (1, 2, 3)]
    finish(runs[1], {"old": True})
    run_all(runs, score, keep_checkpoints=False)
    output = capsys.readouterr()
    assert output.err.splitlines() == [
        "[2/3] small RTE seed 1: accuracy 90.33, f1 80.00",
        "[3/3] small RTE seed 3: accuracy 91.00, f1 80.00",
    ]
    assert output.out == ""
    run_all(runs, score, keep_checkpoints=False)
    assert capsys.readouterr().err == ""  # all runs were finished


def test_on_a_terminal_there_is_only_a_progress_bar(tmp_path, trained, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    run_all([a_run(tmp_path)], score, keep_checkpoints=False)
    assert "small RTE seed 1, loss 1.0" in terminal.getvalue() and "accuracy" not in terminal.getvalue()


@pytest.mark.parametrize("command", ["glue", "squad"])
def test_the_command_explains_how_to_give_flags_for_fairseq_train(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")  # argparse breaks lines at this width
    with pytest.raises(SystemExit) as exit:
        main([command, "--help"])
    assert exit.value.code == 0 and 'Flags for fairseq-train go after "--": -- --dropout 0.2' in capsys.readouterr().out
    with pytest.raises(SystemExit) as exit:
        main([command, "model.pt", "--data", "bin", "--output", "out", "--cpu", "--dropout", "0"])
    *_, line = capsys.readouterr().err.splitlines()
    assert exit.value.code == 2
    assert line.endswith('unrecognized arguments: --cpu --dropout 0; flags for fairseq-train go last, after "--"')


def test_squad_score_does_not_mention_flags_for_fairseq_train(capsys):
    with pytest.raises(SystemExit):
        main(["squad-score", "data.json", "predictions.json", "--cpu"])
    assert capsys.readouterr().err.endswith("unrecognized arguments: --cpu\n")


@pytest.mark.parametrize("seeds", ["a", "1,1", "-1", "1,,2", ""])
def test_seeds_must_be_different_numbers(seeds, capsys):
    words = ["glue", "model.pt", "--data", "bin", "--output", "out"]
    assert get_parser().parse_args([*words, "--seeds", "3,10"]).seeds == [3, 10]
    with pytest.raises(SystemExit):
        get_parser().parse_args([*words, f"--seeds={seeds}"])
    assert f"{seeds!r} is not a list of different numbers such as 1,2,3" in capsys.readouterr().err
