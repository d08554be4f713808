"""Recipes in YAML, and TensorBoard logs."""

import pytest
import torch
from helpers import FAMILIES, PLUGIN, run_command, train_here

HARD_CORRECTION = [*FAMILIES["electra"].split(), "--criterion", "mlm_hard_correction"]


def test_a_yaml_recipe_and_its_flags_train_the_same_model(data_bin, synonym_table, quickstart_recipe, tmp_path):
    """The sizes of a named architecture reach the model both ways."""
    run = run_command(
        *["fairseq-hydra-train", "--config-dir", quickstart_recipe.parent, "--config-name", quickstart_recipe.stem],
        *[f"common.user_dir={PLUGIN}", f"task.data={data_bin}", f"criterion.synonym_table={synonym_table}"],
        *["model._name=bert_tiny", "optimization.max_update=1", "common.log_interval=1"],
        f"checkpoint.save_dir={tmp_path / 'recipe'}",
        cwd=tmp_path,
    )
    assert run.code == 0, run.output
    logs = "".join(path.read_text() for path in tmp_path.rglob("*.log"))
    assert "false_negative_rate" in logs + run.output
    flags = ["--task", "electra", "--arch", "bert_tiny", "--criterion", "electra", "--max-update", 1]
    train_here(data_bin, tmp_path / "flags", *flags)
    recipe, command_line = (
        torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=True)["model"] for name in ("recipe", "flags")
    )
    assert {name: tensor.shape for name, tensor in recipe.items()} == {
        name: tensor.shape for name, tensor in command_line.items()
    }


def test_tensorboard_through_fairseqs_own_option(data_bin, synonym_table, tmp_path):
    pytest.importorskip("tensorboardX")
    flags = [*HARD_CORRECTION, "--synonym-table", synonym_table, "--max-update", 2]
    train_here(data_bin, tmp_path / "save", *flags, "--tensorboard-logdir", tmp_path / "board")
    written = b"".join(path.read_bytes() for path in (tmp_path / "board").rglob("events*"))
    assert b"false_negative_rate" in written and b"rtd_recall" in written
