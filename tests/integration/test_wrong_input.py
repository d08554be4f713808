"""Wrong input through the real command line gets one line that says what is wrong and how to fix it."""

import pytest
import torch
from helpers import (
    FAMILIES,
    PLUGIN,
    WORDS,
    fairseq_train,
    prepare_training,
    refused_training,
    run_command,
    write_data_bin,
)

BERT = ["--task", "electra", "--arch", "bert_tiny"]


def test_a_data_bin_with_another_vocabulary_than_the_checkpoints(data_bin, tmp_path):
    flags = [*FAMILIES["electra"].split(), "--criterion", "electra", "--max-update", 1]
    prepare_training(data_bin, tmp_path / "first", *flags)()
    checkpoint = tmp_path / "first" / "checkpoint_last.pt"
    same_size = write_data_bin(tmp_path / "same size", list(reversed(WORDS)))
    larger = write_data_bin(tmp_path / "larger", [*WORDS, "surplus"])
    for other, flag in ((same_size, "--restore-file"), (larger, "--finetune-from-model")):
        assert "another vocabulary" in refused_training(other, tmp_path / "second", *flags, flag, checkpoint)


def test_fp16_without_the_flag_that_electra_adamw_needs(data_bin, tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("fairseq's flat half-precision parameters need a GPU")
    error = fairseq_train(data_bin, tmp_path, *BERT, "--criterion", "electra", "--fp16", "--cpu", "False").error()
    assert "--fp16-no-flatten-grads" in error


def test_yaml_recipes_also_get_one_line(data_bin, tmp_path, quickstart_recipe):
    command = ["fairseq-hydra-train", "--config-dir", quickstart_recipe.parent, "--config-name", quickstart_recipe.stem]
    command += [f"common.user_dir={PLUGIN}", "criterion.synonym_table=nowhere.safetensors"]
    assert "nowhere.safetensors" in run_command(*command, f"task.data={data_bin}", cwd=tmp_path).error()
    assert "task.data" in run_command(*command, cwd=tmp_path).error()
    (tmp_path / "dated.yaml").write_text(quickstart_recipe.read_text().partition("hydra:")[0])
    command[1:5] = ["--config-dir", tmp_path, "--config-name", "dated"]
    assert (
        "checkpoint.save_dir=checkpoints is in a new folder of each run, outputs/"
        in run_command(*command, f"task.data={data_bin}", cwd=tmp_path).error()
    )
