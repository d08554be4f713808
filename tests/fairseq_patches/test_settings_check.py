"""Invalid settings get a one-line error before the first update; other tasks and criteria are not checked."""

import json
import logging
import multiprocessing
import sys
from pathlib import Path

import pytest
import torch
from fairseq.dataclass.configs import FairseqConfig
from helpers import FAMILIES, PLUGIN, fairseq_train, prepare_training, run_command
from interruption import assert_equal
from omegaconf import OmegaConf

from tn_fairseq.errors import InputError
from tn_fairseq.fairseq_patches.settings_check import (
    check_command,
    check_recipe,
    check_training_flags,
    check_validation_flags,
)

TORCHRUN = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "1"}
OURS = ["--task electra", "--task squad", "--task masked_lm --criterion mlm_soft_reg", "--task=x --criterion=electra"]
OTHERS = ["--task masked_lm --criterion masked_lm", "--criterion cross_entropy", "--task nonsense", ""]


def refused(train) -> str:
    """The one-line error of a run in this process."""
    with pytest.raises(SystemExit) as caught:
        train()
    message = caught.value.code
    assert message.startswith("error: ") and "\n" not in message
    return message


# Batch size and task


@pytest.mark.parametrize("check", [check_training_flags, check_validation_flags])
@pytest.mark.parametrize("words", OURS)
def test_our_runs_without_a_batch_size_are_refused(check, words):
    words = ["data-bin", *words.split()]
    with pytest.raises(InputError, match="no batch size; give --batch-size N .* or --max-tokens N"):
        check([*words, "--batch-size-valid", "8"])
    for size in ("--batch-size", "--max-sentences", "--max-tokens"):
        check([*words, size, "8"])
        check([*words, f"{size}=8"])


@pytest.mark.parametrize("words", OTHERS)
def test_other_runs_without_a_batch_size_are_left_to_fairseq(words):
    check_training_flags(["data-bin", *words.split()])
    if "--task" in words:
        check_validation_flags(["data-bin", *words.split()])


def test_validation_without_a_task():
    with pytest.raises(InputError, match="fairseq-validate needs --task; "):
        check_validation_flags(["data-bin", "--path", "checkpoint_last.pt", "--batch-size", "8"])


@pytest.mark.parametrize("part", ["task", "criterion"])
def test_a_recipe_without_a_batch_size(part):
    recipe = OmegaConf.structured(FairseqConfig())
    recipe.distributed_training.distributed_world_size = 1
    check_recipe(recipe)  # not ours
    recipe[part] = {"_name": "electra"}
    with pytest.raises(InputError) as caught:
        check_recipe(recipe)
    assert "dataset.batch_size=N" in str(caught.value) and "--" not in str(caught.value)
    for size in ("batch_size", "max_tokens"):
        check_recipe(OmegaConf.merge(recipe, {"dataset": {size: 8}}))


def test_fairseq_validate_without_a_task(data_bin, tmp_path):
    flags = ["--path", tmp_path / "checkpoint_last.pt", "--batch-size", 8, "--cpu"]
    assert "--task" in run_command("fairseq-validate", data_bin, "--user-dir", PLUGIN, *flags).error()


# The folder for checkpoints


@pytest.mark.parametrize("name", ["file", "file/save"])
def test_a_folder_that_cannot_be_written(data_bin, tmp_path, name):
    (tmp_path / "file").write_text("precious")
    train = prepare_training(data_bin, tmp_path / name, *FAMILIES["electra"].split(), "--criterion", "electra")
    assert f"--save-dir {tmp_path / name}: cannot be written (" in refused(train)
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "precious"


# The metric of the best checkpoint


def validated(records) -> list[dict]:
    """What fairseq logged for each validation."""
    return [json.loads(record.getMessage()) for record in records if record.name == "valid"]


@pytest.mark.parametrize(
    ("family", "criterion"),
    [("electra", "mlm_hard_correction"), ("bert", "mlm_soft_reg"), ("roberta", "mlm_sent_kl")],
)
def test_a_metric_that_is_not_logged_is_refused_and_the_error_names_all_others(
    data_bin, synonym_table, tmp_path, caplog, family, criterion
):
    caplog.set_level(logging.INFO)
    flags = [*FAMILIES[family].split(), "--criterion", criterion, "--synonym-table", synonym_table, "--max-update", 1]
    wrong = prepare_training(data_bin, tmp_path / "wrong", *flags, "--best-checkpoint-metric", "accuracy")
    message = refused(wrong)
    assert not validated(caplog.records) and not list(tmp_path.rglob("*.pt"))
    prepare_training(data_bin, tmp_path / "right", *flags)()
    (logged,) = validated(caplog.records)
    names = {name.removeprefix("valid_") for name in logged} - {"epoch", "num_updates", "best_loss"}
    assert message == (
        f"error: --best-checkpoint-metric accuracy is not logged; give one of {', '.join(sorted(names))}"
    )


def test_a_metric_that_needs_a_synonym_table(data_bin, synonym_table, tmp_path):
    flags = [*FAMILIES["bert"].split(), "--criterion", "electra", "--max-update", 1]
    flags += ["--best-checkpoint-metric", "false_negative_rate"]
    assert "false_negative_rate is not logged" in refused(prepare_training(data_bin, tmp_path / "without", *flags))
    prepare_training(data_bin, tmp_path / "with", *flags, "--synonym-table", synonym_table)()
    assert (tmp_path / "with" / "checkpoint_best.pt").exists()


def test_the_check_does_not_change_training(data_bin, tmp_path):
    flags = [*FAMILIES["electra"].split(), "--criterion", "mlm_sent_kl", "--max-update", 3]
    for metric in ("loss", "ppl"):
        prepare_training(data_bin, tmp_path / metric, *flags, "--best-checkpoint-metric", metric)()
    assert_equal(*(weights(tmp_path / metric) for metric in ("loss", "ppl")))


def test_without_validation_any_metric_is_accepted(data_bin, tmp_path):
    flags = [*FAMILIES["bert"].split(), "--criterion", "electra", "--max-update", 1, "--disable-validation"]
    prepare_training(data_bin, tmp_path, *flags, "--best-checkpoint-metric", "accuracy")()
    assert (tmp_path / "checkpoint_last.pt").exists()


def test_the_metrics_of_other_criteria_are_left_to_fairseq(data_bin, tmp_path):
    flags = [*FAMILIES["roberta"].split(), "--criterion", "masked_lm", "--max-update", 1]
    with pytest.raises(KeyError, match="accuracy"):
        prepare_training(data_bin, tmp_path, *flags, "--best-checkpoint-metric", "accuracy")()


def weights(folder: Path) -> dict:
    return torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"]


# Which programs are checked


@pytest.fixture
def launched(monkeypatch):
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)


def test_only_the_training_command_itself_is_checked(launched, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fairseq-train", "data-bin", "--user-dir=tn_fairseq", "--cpu"])
    for command in ("train", "validate"):
        monkeypatch.delitem(sys.modules, f"fairseq_cli.{command}", raising=False)
    check_command()  # as in a command of ours
    monkeypatch.setitem(sys.modules, "fairseq_cli.train", sys)
    with pytest.raises(SystemExit, match="error: torchrun started 2 processes"):
        check_command()
    with monkeypatch.context() as patched:  # as in a worker that loads data
        patched.setattr(multiprocessing, "parent_process", lambda: multiprocessing.current_process())
        check_command()
    with monkeypatch.context() as patched:
        patched.delenv("WORLD_SIZE")
        check_command()
        patched.setattr(sys, "argv", [*sys.argv, "--task", "electra"])
        with pytest.raises(SystemExit, match="error: no batch size"):
            check_command()
    monkeypatch.setattr(sys, "argv", ["program", "data-bin"])
    check_command()  # as a program that calls fairseq's functions with settings of its own


def test_fairseq_train_prints_one_line_and_writes_nothing(data_bin, launched, tmp_path):
    flags = [*FAMILIES["roberta"].split(), "--criterion", "mlm_soft_reg"]
    run = fairseq_train(data_bin, tmp_path / "save", *flags)
    assert "--distributed-world-size 2" in run.error() and not (tmp_path / "save").exists()


def test_fairseq_hydra_train_prints_one_line(data_bin, synonym_table, quickstart_recipe, launched, tmp_path):
    run = run_command(
        *["fairseq-hydra-train", "--config-dir", quickstart_recipe.parent, "--config-name", quickstart_recipe.stem],
        *[f"common.user_dir={PLUGIN}", f"task.data={data_bin}", f"criterion.synonym_table={synonym_table}"],
        f"checkpoint.save_dir={tmp_path / 'save'}",
        cwd=tmp_path,
    )
    assert "distributed_training.distributed_world_size=2" in run.error() and not (tmp_path / "save").exists()


def test_other_commands_are_not_checked(launched):
    assert run_command("fairseq-preprocess", "--user-dir", PLUGIN, "--help").code == 0
    assert run_command(sys.executable, "-m", "tn_fairseq.huggingface", "--help").code == 0
