"""Wrong input through the real command line gets one line that says what is wrong and how to fix it."""

import pickle
import re
import shutil

import pytest
from helpers import (
    FAMILIES,
    PLUGIN,
    WORDS,
    Bomb,
    fairseq_train,
    prepare_training,
    refused_training,
    run_command,
    write_data_bin,
    write_table,
)

from tn_fairseq.dictionary import load_dictionary

BERT = ["--task", "electra", "--arch", "bert_tiny"]
HARD_CORRECTION = [*BERT, "--criterion", "mlm_hard_correction"]


BUILD, BINARIZE = (f"python -m tn_fairseq.preprocessing {command}" for command in ("build-synonym-table", "binarize"))


def test_no_synonym_table(data_bin, tmp_path):
    error = fairseq_train(data_bin, tmp_path, *HARD_CORRECTION).error()
    assert "--synonym-table" in error and BUILD in error


def test_a_synonym_table_that_cannot_be_used(data_bin, tmp_path, synonym_table):
    other = load_dictionary(write_data_bin(tmp_path / "other", list(reversed(WORDS))) / "dict.txt")
    foreign = write_table(tmp_path / "other.safetensors", other, {"noun1": ["noun2"]})
    truncated, pickled, proof = (tmp_path / name for name in ("truncated.safetensors", "a.safetensors", "it ran"))
    truncated.write_bytes(synonym_table.read_bytes()[:-100])
    pickled.write_bytes(pickle.dumps(Bomb(proof)))
    for table in (foreign, truncated, pickled):
        error = refused_training(data_bin, tmp_path / "save", *HARD_CORRECTION, "--synonym-table", table)
        assert str(table) in error and BUILD in error
    assert not proof.exists()


def test_data_that_cannot_be_used(data_bin, tmp_path):
    folder = tmp_path / "data-bin"
    shutil.copytree(data_bin, folder)
    (folder / "valid.bin").unlink()
    for data, said in ((tmp_path / "nowhere", "nowhere"), (folder, "valid")):
        error = refused_training(data, tmp_path / "save", *BERT, "--criterion", "electra")
        assert said in error and BINARIZE in error


def test_sequences_longer_than_the_models_positions(data_bin, tmp_path):
    error = refused_training(data_bin, tmp_path, *BERT, "--criterion", "electra", "--tokens-per-sample", 600)
    assert re.search(r"--tokens-per-sample 600 .*512 positions", error)


@pytest.mark.parametrize("family", ["bert", "electra"])
def test_a_data_bin_with_another_vocabulary_than_the_checkpoints(data_bin, tmp_path, family):
    flags = [*FAMILIES[family].split(), "--criterion", "electra", "--max-update", 1]
    prepare_training(data_bin, tmp_path / "first", *flags)()
    checkpoint = tmp_path / "first" / "checkpoint_last.pt"
    same_size = write_data_bin(tmp_path / "same size", list(reversed(WORDS)))
    larger = write_data_bin(tmp_path / "larger", [*WORDS, "surplus"])
    for other, flag in ((same_size, "--restore-file"), (larger, "--finetune-from-model")):
        assert "another vocabulary" in refused_training(other, tmp_path / "second", *flags, flag, checkpoint)


def test_fp16_without_the_flag_that_electra_adamw_needs(data_bin, tmp_path):
    import torch

    if not torch.cuda.is_available():
        pytest.skip("fairseq's flat half-precision parameters need a GPU")
    error = fairseq_train(data_bin, tmp_path, *BERT, "--criterion", "electra", "--fp16", "--cpu", "False").error()
    assert "--fp16-no-flatten-grads" in error


def test_yaml_recipes_also_get_one_line(data_bin, tmp_path, quickstart_recipe):
    command = ["fairseq-hydra-train", "--config-dir", quickstart_recipe.parent, "--config-name", quickstart_recipe.stem]
    command += [f"common.user_dir={PLUGIN}", "criterion.synonym_table=nowhere.safetensors"]
    assert "nowhere.safetensors" in run_command(*command, f"task.data={data_bin}", cwd=tmp_path).error()
    assert "task.data" in run_command(*command, cwd=tmp_path).error()
