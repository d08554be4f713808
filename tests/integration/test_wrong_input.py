"""Wrong input through the real command line gets one line that says what is wrong and how to fix it."""

from helpers import FAMILIES, PLUGIN, WORDS, prepare_training, refused_training, run_command, write_data_bin


def test_a_data_bin_with_another_vocabulary_than_the_checkpoints(data_bin, tmp_path):
    flags = [*FAMILIES["electra"].split(), "--criterion", "electra", "--max-update", 1]
    prepare_training(data_bin, tmp_path / "first", *flags)()
    checkpoint = tmp_path / "first" / "checkpoint_last.pt"
    same_size = write_data_bin(tmp_path / "same size", list(reversed(WORDS)))
    larger = write_data_bin(tmp_path / "larger", [*WORDS, "surplus"])
    for other, flag in ((same_size, "--restore-file"), (larger, "--finetune-from-model")):
        assert "another vocabulary" in refused_training(other, tmp_path / "second", *flags, flag, checkpoint)


def test_a_recipe_whose_runs_would_not_find_their_checkpoints(data_bin, tmp_path, quickstart_recipe):
    (tmp_path / "dated.yaml").write_text(quickstart_recipe.read_text().partition("hydra:")[0])
    command = ["fairseq-hydra-train", "--config-dir", tmp_path, "--config-name", "dated", f"task.data={data_bin}"]
    command += [f"common.user_dir={PLUGIN}", "criterion.synonym_table=nowhere.safetensors"]
    assert "checkpoint.save_dir=checkpoints" in run_command(*command, cwd=tmp_path).error()
