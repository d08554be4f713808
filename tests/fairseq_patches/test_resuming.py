"""What is checked when a run starts or resumes, and when it loads an existing generator."""

import json
import logging
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from files import contents, refused
from helpers import FAMILIES, PLUGIN, prepare_training, refused_training, run_command
from interruption import assert_equal

from tn_fairseq.core.checkpoints import load_checkpoint, updates_of
from tn_fairseq.fairseq_patches.resuming import start_generator, starts


def run(save_dir, **options) -> Namespace:
    return Namespace(**{"save_dir": str(save_dir), "restore_file": "checkpoint_last.pt", **options})


def test_a_run_is_new_until_it_has_a_checkpoint(tmp_path):
    trainer, shard = Namespace(checkpoint_suffix=""), Namespace(checkpoint_suffix="-shard0")
    assert starts(run(tmp_path), trainer)
    assert not starts(run(tmp_path, restore_file="other.pt"), trainer)
    (tmp_path / "checkpoint_last.pt").touch()
    assert not starts(run(tmp_path), trainer) and starts(run(tmp_path), shard)


@pytest.mark.parametrize("flag", ["--finetune-from-model", "--continue-once", "--restore-file"])
def test_a_start_that_is_no_checkpoint_is_refused(data_bin, tmp_path, flag):
    flags = [*FAMILIES["bert"].split(), "--criterion", "mlm", flag]
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "typo.pt"):
        assert f"{flag} {path}" in refused_training(data_bin, tmp_path / "save", *flags, path)
    (tmp_path / "config.json").write_text("{}")
    for name in ("model.safetensors", "pytorch_model.bin", ""):
        if name:
            torch.save({"weight": torch.ones(1)}, tmp_path / name)
        message = refused_training(data_bin, tmp_path / "save", *flags, tmp_path / name)
        assert "tn-fairseq exchange import" in message and "--data" in message


def test_other_attention_heads_are_refused_though_all_tensors_fit(data_bin, tmp_path):
    flags = [*FAMILIES["bert"].split(), "--criterion", "mlm", "--max-update", 1, "--disable-validation"]
    prepare_training(data_bin, tmp_path / "first", *flags)()
    last = tmp_path / "first" / "checkpoint_last.pt"
    heads = ["--encoder-attention-heads", 1, "--max-update", 2]
    for folder, start in ((tmp_path / "first", []), (tmp_path / "second", ["--finetune-from-model", last])):
        assert "--encoder-attention-heads 2" in refused_training(data_bin, folder, *flags, *heads, *start)


@pytest.mark.parametrize(
    "generator, frozen, finetuned, named",
    [
        (None, False, None, None),
        (None, True, "imported.pt", None),
        (None, True, None, "--freeze-generator"),
        ("generator.pt", False, "imported.pt", "--finetune-from-model"),
    ],
)
def test_generators_that_exclude_each_other(build, generator, frozen, finetuned, named):
    _, model, _ = build("electra")
    model.cfg.generator_checkpoint, model.cfg.freeze_generator = generator, frozen
    if named:
        assert named in refused(start_generator, model, finetuned, None)
    else:
        start_generator(model, finetuned, None)


@pytest.mark.parametrize("name", ["file", "file/save"])
def test_a_folder_that_cannot_be_written(data_bin, tmp_path, name):
    (tmp_path / "file").write_text("precious")
    flags = [*FAMILIES["electra"].split(), "--criterion", "electra"]
    assert f"--save-dir {tmp_path / name}" in refused_training(data_bin, tmp_path / name, *flags)
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
    assert "--best-checkpoint-metric accuracy" in message and message.endswith(f" {', '.join(sorted(names))}")


def test_a_metric_that_only_a_synonym_table_makes(data_bin, tmp_path):
    flags = [*FAMILIES["bert"].split(), "--criterion", "electra", "--best-checkpoint-metric", "false_negative_rate"]
    assert "--best-checkpoint-metric false_negative_rate" in refused_training(data_bin, tmp_path, *flags)
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


# Commands that are repeated

BERT = ["--task", "electra", "--arch", "bert_tiny", "--criterion", "mlm", "--tokens-per-sample", 32]
STILL = ["--lr", 0, "--validate-interval-updates", 1, "--save-interval-updates", 1]  # no score is better than the first


@pytest.fixture(scope="module")
def begun(tmp_path_factory, data_bin) -> Path:
    """The checkpoint of a run of four updates."""
    folder = tmp_path_factory.mktemp("begun")
    prepare_training(data_bin, folder, *BERT, "--max-update", 4)()
    return folder / "checkpoint_last.pt"


@pytest.mark.parametrize(
    "first, again, named",
    [
        *(
            ([], [f"--reset-{part}"], f"--reset-{part}")
            for part in ("optimizer", "lr-scheduler", "meters", "dataloader")
        ),
        (["--restore-file", "BEGUN", "--reset-optimizer"],) * 2 + ("--restore-file",),
        ([], ["--restore-file", "BEGUN"], "--restore-file"),
        (["--no-save-optimizer-state"], [], "--no-save-optimizer-state"),
        (["--no-save-optimizer-state"], ["--no-save-optimizer-state"], "--no-save-optimizer-state"),
        (["--no-last-checkpoints"], ["--no-last-checkpoints"], "--no-last-checkpoints"),
        (["--restore-file", "BEGUN", "--reset-optimizer", "--no-last-checkpoints"],) * 2 + ("--no-last-checkpoints",),
    ],
)
def test_a_command_that_would_start_a_run_again_is_refused(data_bin, begun, tmp_path, first, again, named):
    first, again = ([str(begun) if word == "BEGUN" else word for word in words] for words in (first, again))
    prepare_training(data_bin, tmp_path, *BERT, "--max-update", 2, *first)()
    before = contents(tmp_path)
    message = refused_training(data_bin, tmp_path, *BERT, "--max-update", 3, *again)
    assert named in message and "another --save-dir" in message and contents(tmp_path) == before


@pytest.mark.parametrize(
    "flags, named",
    [
        (["--stop-min-lr", 1e-5], "--stop-min-lr"),
        (["--max-epoch", -1], "--max-epoch"),
        (["--best-checkpoint-metric", "mlm_accuracy"], "--maximize-best-checkpoint-metric"),
        (["--maximize-best-checkpoint-metric"], "--maximize-best-checkpoint-metric"),
        (["--best-checkpoint-metric", "ppl", "--maximize-best-checkpoint-metric"], "ppl"),
    ],
)
def test_a_run_that_would_train_nothing_or_keep_the_worst_is_refused(data_bin, tmp_path, flags, named):
    assert named in refused_training(data_bin, tmp_path, *BERT, *flags) and not list(tmp_path.rglob("*.pt"))


@pytest.mark.parametrize(
    "flags, named",
    [
        (["--max-update", 2], "--max-update 2"),
        (["--max-update", 2, "--no-save-optimizer-state"], "--max-update 2"),
        (["--max-update", 0, "--max-epoch", 1], "--max-epoch 1"),
        (["--stop-time-hours", 1e-9], "--stop-time-hours"),
        ([*STILL, "--patience", 2], "--patience 2"),
    ],
)
def test_a_finished_run_changes_nothing(data_bin, tmp_path, flags, named, caplog):
    caplog.set_level(logging.INFO)
    prepare_training(data_bin, tmp_path, *BERT, *flags)()
    before = contents(tmp_path)
    with pytest.raises(SystemExit) as ended:
        prepare_training(data_bin, tmp_path, *BERT, *flags)()
    assert ended.value.code == 0 and named in caplog.text and contents(tmp_path) == before


def test_an_interrupted_run_stops_where_an_uninterrupted_one_does(data_bin, tmp_path):
    flags = [*BERT, *STILL, "--patience", 3]
    prepare_training(data_bin, tmp_path / "whole", *flags)()
    prepare_training(data_bin, tmp_path / "two", *flags, "--max-update", 2)()
    prepare_training(data_bin, tmp_path / "two", *flags)()
    for folder in ("whole", "two"):  # the first validation has the best score
        assert updates_of(load_checkpoint(tmp_path / folder / "checkpoint_last.pt")) == 4


@pytest.mark.parametrize(
    "other, is_kept",
    [([], True), (["--mask-prob", 0.9], False), (["--best-checkpoint-metric", "nll_loss"], False)],
)
def test_the_best_score_counts_only_for_the_same_text_and_metric(data_bin, begun, tmp_path, other, is_kept):
    state = torch.load(begun, weights_only=False)
    state["extra_state"]["best"] = 0.0
    torch.save(state, tmp_path / "best.pt")
    flags = [*BERT, *other, "--restore-file", tmp_path / "best.pt", "--max-update", 5]
    prepare_training(data_bin, tmp_path / "save", *flags)()
    assert (tmp_path / "save" / "checkpoint_best.pt").exists() != is_kept


def test_interval_checkpoints_are_also_written_at_the_end_of_an_epoch(data_bin, tmp_path):
    flags = [*BERT, "--max-epoch", 3, "--max-update", 0, "--batch-size", 1000, "--save-interval-updates", 1]
    prepare_training(data_bin, tmp_path, *flags, "--keep-interval-updates", 2)()
    assert {path.name for path in tmp_path.glob("checkpoint_?_*")} == {"checkpoint_2_2.pt", "checkpoint_3_3.pt"}


def test_fairseq_validate_refuses_a_criterion_that_it_would_not_use(data_bin, begun):
    command = ["fairseq-validate", data_bin, "--user-dir", PLUGIN, "--path", begun, "--batch-size", 8, "--cpu"]
    for flags, named in (("--task masked_lm", "--task electra"), ("--task electra --criterion mlm_soft_reg", "mlm")):
        assert f"give {named}" in run_command(*command, *flags.split()).error().replace("give --criterion", "give")
    run = run_command(*command, "--task", "electra", "--criterion", "electra", "--log-format", "json")
    assert run.code == 0, run.output
