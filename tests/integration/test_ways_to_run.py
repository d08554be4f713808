"""Other ways to run than fairseq-train on one CPU in float32: recipes, half precision, accumulation, workers."""

import sys
from pathlib import Path

import pytest
import torch
from helpers import FAMILIES, PLUGIN, fairseq_train, run_command, training_flags

HARD_CORRECTION = [*FAMILIES["electra"].split(), "--criterion", "mlm_hard_correction"]


def weights(folder: Path) -> dict:
    return torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"]


def test_a_yaml_recipe_trains(data_bin, synonym_table, quickstart_recipe, tmp_path):
    run = run_command(
        *["fairseq-hydra-train", "--config-dir", quickstart_recipe.parent, "--config-name", quickstart_recipe.stem],
        *[f"common.user_dir={PLUGIN}", f"task.data={data_bin}", f"criterion.synonym_table={synonym_table}"],
        *["optimization.max_update=3", "common.log_interval=1", "task.tokens_per_sample=32"],
        *[f"checkpoint.save_dir={tmp_path / 'save'}"],
        cwd=tmp_path,
    )
    assert run.code == 0, run.output
    logs = "".join(path.read_text() for path in tmp_path.rglob("*.log"))
    assert "false_negative_rate" in logs or "false_negative_rate" in run.output
    assert (
        torch.load(tmp_path / "save" / "checkpoint_last.pt", weights_only=True)["cfg"]["model"]["encoder_layers"] == 2
    )


def test_a_recipe_and_its_flags_are_one_model(data_bin, synonym_table, quickstart_recipe, tmp_path):
    """Sizes given by name reach the model on both ways in."""
    run = run_command(
        *["fairseq-hydra-train", "--config-dir", quickstart_recipe.parent, "--config-name", quickstart_recipe.stem],
        *[f"common.user_dir={PLUGIN}", f"task.data={data_bin}", f"criterion.synonym_table={synonym_table}"],
        *["model._name=bert_tiny", "optimization.max_update=1", f"checkpoint.save_dir={tmp_path / 'recipe'}"],
        cwd=tmp_path,
    )
    assert run.code == 0, run.output
    flags = ["--task", "electra", "--arch", "bert_tiny", "--criterion", "electra", "--max-update", 1]
    assert fairseq_train(data_bin, tmp_path / "flags", *flags).code == 0
    recipe, command_line = weights(tmp_path / "recipe"), weights(tmp_path / "flags")
    assert {name: tensor.shape for name, tensor in recipe.items()} == {
        name: tensor.shape for name, tensor in command_line.items()
    }


def test_half_precision_follows_float32(data_bin, synonym_table, tmp_path):
    flags = ["--fp16", "--fp16-no-flatten-grads", "--fp16-init-scale", 4]
    common = [*HARD_CORRECTION, "--synonym-table", synonym_table, "--dropout", 0, "--attention-dropout", 0]
    runs = [
        fairseq_train(data_bin, tmp_path / name, *common, "--max-update", 3, *more)
        for name, more in (("float", []), ("half", flags))
    ]
    curves = []
    for run in runs:
        assert run.code == 0, run.output
        curves.append([float(record["nll_loss"]) for record in run.records("train_inner")])
    assert len(curves[0]) == 3 and curves[1] == pytest.approx(curves[0], rel=0.01)


def test_two_workers_equal_one_that_accumulates(data_bin, synonym_table, tmp_path):
    """Hard correction on BERT, without dropout: the same logged sums, and the same weights within 1e-6."""
    common = ["--task", "electra", "--arch", "bert_tiny", "--dropout", 0, "--attention-dropout", 0]
    common += ["--criterion", "mlm_hard_correction", "--synonym-table", synonym_table]
    one = fairseq_train(data_bin, tmp_path / "one", *common, "--update-freq", 2)
    assert one.code == 0, one.output

    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "--no-python"]
    worker = [sys.executable, Path(__file__).with_name("worker.py")]
    two = run_command(*launcher, *worker, *training_flags(data_bin, tmp_path / "two"), *common)
    assert two.code == 0, two.output
    keys = ["loss", "nll_loss", "mlm_accuracy", "false_negative_rate", "false_negative_sequences", "bsz", "wpb"]
    expected = [{key: record[key] for key in keys} for record in one.records("train_inner")]
    assert [{key: record[key] for key in keys} for record in two.records("train_inner")] == expected
    ours, theirs = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name in ours:
        torch.testing.assert_close(theirs[name], ours[name], atol=1e-6, rtol=0)


def test_tensorboard_through_fairseqs_own_option(data_bin, synonym_table, tmp_path):
    pytest.importorskip("tensorboardX")
    flags = [*HARD_CORRECTION, "--synonym-table", synonym_table, "--max-update", 2]
    run = fairseq_train(data_bin, tmp_path / "save", *flags, "--tensorboard-logdir", tmp_path / "board")
    assert run.code == 0, run.output
    written = b"".join(path.read_bytes() for path in (tmp_path / "board").rglob("events*"))
    assert b"false_negative_rate" in written and b"rtd_recall" in written
