"""What is checked when a run starts or resumes, and when it loads an existing generator."""

import json
import logging
from argparse import Namespace
from contextlib import nullcontext

import pytest
from helpers import FAMILIES, prepare_training, refused_training
from interruption import assert_equal

from tn_fairseq.core.checkpoints import load_checkpoint
from tn_fairseq.core.errors import InputError
from tn_fairseq.fairseq_patches.resuming import start_generator, starts


def run(save_dir, **options) -> Namespace:
    return Namespace(**{"save_dir": str(save_dir), "restore_file": "checkpoint_last.pt", **options})


def test_a_run_is_new_until_it_has_a_checkpoint(tmp_path):
    trainer, shard = Namespace(checkpoint_suffix=""), Namespace(checkpoint_suffix="-shard0")
    assert starts(run(tmp_path), trainer)
    assert not starts(run(tmp_path, restore_file="other.pt"), trainer)
    (tmp_path / "checkpoint_last.pt").touch()
    assert not starts(run(tmp_path), trainer) and starts(run(tmp_path), shard)


@pytest.mark.parametrize("flag", ["--finetune-from-model", "--continue-once"])
def test_a_start_that_is_no_file_is_refused(data_bin, tmp_path, flag):
    flags = [*FAMILIES["electra"].split(), "--criterion", "electra", "--freeze-generator", flag]
    for path in (tmp_path, tmp_path / "typo.pt"):
        message = refused_training(data_bin, tmp_path / "save", *flags, path)
        assert f"{flag} {path} does not exist or is a folder; name a checkpoint of fairseq-train" in message


def test_other_attention_heads_are_refused_though_all_tensors_fit(data_bin, tmp_path):
    flags = [*FAMILIES["bert"].split(), "--criterion", "mlm", "--max-update", 1, "--disable-validation"]
    prepare_training(data_bin, tmp_path / "first", *flags)()
    last = tmp_path / "first" / "checkpoint_last.pt"
    heads = ["--encoder-attention-heads", 1, "--max-update", 2]
    for folder, start in ((tmp_path / "first", []), (tmp_path / "second", ["--finetune-from-model", last])):
        message = refused_training(data_bin, folder, *flags, *heads, *start)
        assert f"{last}: has other sizes; give --encoder-attention-heads 2" in message


def test_a_folder_of_transformers_must_be_imported_first(data_bin, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    flags = [*FAMILIES["bert"].split(), "--criterion", "mlm", "--finetune-from-model", tmp_path]
    message = refused_training(data_bin, tmp_path / "save", *flags)
    assert "is a folder; first tn-fairseq exchange import this folder of transformers, with --data DATA_BIN" in message


@pytest.mark.parametrize(
    "generator, frozen, finetuned, message",
    [
        (None, False, None, None),
        (None, True, "imported.pt", None),
        (None, True, None, "^--freeze-generator would freeze an untrained generator; give one with --generator-checkp"),
        ("generator.pt", False, "imported.pt", "^--finetune-from-model imported.pt has a generator, too; give only"),
    ],
)
def test_generators_that_exclude_each_other(build, generator, frozen, finetuned, message):
    _, model, _ = build("electra")
    model.cfg.generator_checkpoint, model.cfg.freeze_generator = generator, frozen
    with pytest.raises(InputError, match=message) if message else nullcontext():
        start_generator(model, finetuned, None)


@pytest.mark.parametrize("name", ["file", "file/save"])
def test_a_folder_that_cannot_be_written(data_bin, tmp_path, name):
    (tmp_path / "file").write_text("precious")
    flags = [*FAMILIES["electra"].split(), "--criterion", "electra"]
    assert f"--save-dir {tmp_path / name}: cannot be written (" in refused_training(data_bin, tmp_path / name, *flags)
    assert [path.name for path in tmp_path.iterdir()] == ["file"] and (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize(
    ("family", "criterion"),
    [("electra", "mlm_hard_correction"), ("roberta", "mlm_sent_kl")],
)
def test_a_metric_that_is_not_logged_is_refused_and_the_error_names_all_others(
    data_bin, synonym_table, tmp_path, caplog, family, criterion
):
    caplog.set_level(logging.INFO)
    flags = [*FAMILIES[family].split(), "--criterion", criterion, "--synonym-table", synonym_table, "--max-update", 1]
    message = refused_training(data_bin, tmp_path / "wrong", *flags, "--best-checkpoint-metric", "accuracy")
    assert not any(record.name == "valid" for record in caplog.records) and not list(tmp_path.rglob("*.pt"))
    prepare_training(data_bin, tmp_path / "right", *flags, "--best-checkpoint-metric", "false_negative_rate")()
    (logged,) = (json.loads(record.getMessage()) for record in caplog.records if record.name == "valid")
    names = {name.removeprefix("valid_") for name in logged} - {"epoch", "num_updates", "best_false_negative_rate"}
    assert message == (
        f"error: --best-checkpoint-metric accuracy is not logged; give one of {', '.join(sorted(names))}"
    )


def test_a_metric_that_only_a_synonym_table_makes(data_bin, tmp_path):
    flags = [*FAMILIES["bert"].split(), "--criterion", "electra", "--best-checkpoint-metric", "false_negative_rate"]
    assert "false_negative_rate is not logged" in refused_training(data_bin, tmp_path, *flags)
    prepare_training(data_bin, tmp_path, *flags, "--max-update", 1, "--disable-validation")()


def test_a_metric_that_only_the_moving_average_makes(data_bin, tmp_path):
    flags = [*FAMILIES["bert"].split(), "--task", "electra", "--criterion", "mlm_distillation", "--max-update", 1]
    flags += ["--distillation-teacher", "ema", "--distillation-weight", 0.5, "--store-ema", "--ema-decay", 0.9]
    prepare_training(data_bin, tmp_path, *flags, "--best-checkpoint-metric", "teacher_gold_probability")()
    assert (tmp_path / "checkpoint_best.pt").exists()


def test_the_check_of_the_metric_does_not_change_training(data_bin, tmp_path):
    flags = [*FAMILIES["electra"].split(), "--criterion", "mlm_sent_kl", "--max-update", 2]
    for metric in ("loss", "ppl"):
        prepare_training(data_bin, tmp_path / metric, *flags, "--best-checkpoint-metric", metric)()
    states = (load_checkpoint(tmp_path / metric / "checkpoint_last.pt") for metric in ("loss", "ppl"))
    assert_equal(*(state["model"] for state in states))


def test_the_metrics_of_other_criteria_are_left_to_fairseq(data_bin, tmp_path):
    flags = [*FAMILIES["roberta"].split(), "--criterion", "masked_lm", "--max-update", 1]
    with pytest.raises(KeyError, match="accuracy"):
        prepare_training(data_bin, tmp_path, *flags, "--best-checkpoint-metric", "accuracy")()


def test_a_moving_average_begins_with_the_weights_of_a_checkpoint_that_has_none(data_bin, tmp_path):
    flags = [*FAMILIES["bert"].split(), "--criterion", "mlm"]
    prepare_training(data_bin, tmp_path / "first", *flags, "--max-update", 1)()
    path = tmp_path / "first" / "checkpoint_last.pt"
    flags += ["--finetune-from-model", path, "--store-ema", "--ema-decay", 1, "--max-update", 2]
    prepare_training(data_bin, tmp_path / "second", *flags)()
    weights, state = load_checkpoint(path)["model"], load_checkpoint(tmp_path / "second" / "checkpoint_last.pt")
    assert_equal({name: value for name, value in state["extra_state"]["ema"].items() if name in weights}, weights)
    name = "masked_lm_head.bias"
    assert not state["model"][name].equal(weights[name])
