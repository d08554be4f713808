"""Invalid settings get a one-line error before a run; other programs, tasks and criteria are not checked."""

import re
from unittest.mock import Mock

import pytest
import torch
from fairseq import options, utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed import utils as distributed_utils
from fairseq_cli.train import main as train_main
from fairseq_cli.validate import main as validate_main
from files import refused
from helpers import FAMILIES, PLUGIN, fairseq_train, refused_training, run_command, training_flags
from omegaconf import DictConfig, OmegaConf
from torch.multiprocessing import ProcessExitedException

from tn_fairseq.core.configuration import training_config
from tn_fairseq.core.errors import InputError
from tn_fairseq.criterions import MaskedLMCriterion
from tn_fairseq.fairseq_patches.settings import _in_yaml, check_settings

TORCHRUN = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "1"}


def configuration(**groups: dict) -> DictConfig:
    groups["distributed_training"] = {"distributed_world_size": 1}
    return OmegaConf.merge(OmegaConf.structured(FairseqConfig()), groups)


def refusal(cfg: DictConfig) -> str:
    """The error about flags; the one about a recipe's settings is the same, except for their spelling."""
    message, in_yaml = refused(check_settings, cfg), refused(check_settings, cfg, _in_yaml)
    spelled = re.sub(r"\w+\.(\w+)=(\w+)", lambda found: f"--{found[1]} {found[2]}", in_yaml)
    assert spelled.replace("_", "-").replace(" true", "") == message.replace("_", "-")
    return message


@pytest.mark.parametrize(
    "task, criterion", [("electra", None), ("squad", None), ("masked_lm", "mlm_soft_reg"), (None, "electra")]
)
def test_our_runs_without_a_batch_size_are_refused(task, criterion):
    cfg = configuration(task={"_name": task}, criterion={"_name": criterion}, dataset={"batch_size_valid": 8})
    assert refusal(cfg) == "no batch size; give --batch-size N (sequences) or --max-tokens N"
    for size in ("batch_size", "max_tokens"):
        check_settings(OmegaConf.merge(cfg, {"dataset": {size: 8}}))


def test_the_objective_of_a_user_is_checked_as_ours(monkeypatch):
    own = type("Own", (MaskedLMCriterion,), {"__module__": "elsewhere"})
    monkeypatch.setitem(CRITERION_REGISTRY, "own", own)
    cfg = configuration(task={"_name": "masked_lm"}, criterion={"_name": "own"})
    assert refusal(cfg).startswith("no batch size; give --batch-size")


@pytest.mark.parametrize(
    "groups, message",
    [
        ({"optimization": {"update_freq": [0]}}, "--update-freq 0: must be positive"),
        ({"common": {"seed": -1}}, "--seed -1: must be non-negative and below 2**31"),
        ({"common": {"seed": 1 << 31}}, "--seed 2147483648: must be non-negative"),
        (
            {"dataset": {"batch_size": 12}},
            "--batch-size 12: fairseq would round it to a multiple of 8; give --required",
        ),
        ({"dataset": {"batch_size_valid": 20}}, "--batch-size-valid 20: fairseq would round it to a multiple of 8"),
        ({"dataset": {"valid_subset": "valid,train"}}, "--valid-subset valid,train has the training data"),
        (
            {"criterion": {"_name": "masked_lm"}, "model": {"_name": "electra_tiny"}},
            "the criterion masked_lm trains no",
        ),
    ],
)
def test_settings_that_would_train_something_else(groups, message):
    cfg = configuration(task={"_name": "electra"}, dataset={"batch_size": 8})
    assert refused(check_settings, OmegaConf.merge(cfg, groups)).startswith(message)


def test_a_split_that_would_be_ignored(tmp_path):
    (tmp_path / "valid1.idx").touch()
    cfg = configuration(task={"_name": "electra", "data": str(tmp_path)}, dataset={"batch_size": 8})
    expected = f"{tmp_path} also has 'valid1'; give --combine-valid-subsets or --ignore-unused-valid-subsets"
    assert refused(check_settings, cfg) == expected
    check_settings(OmegaConf.merge(cfg, {"dataset": {"combine_valid_subsets": True}}))


def test_a_schedule_without_an_end_and_a_validation_without_a_model(monkeypatch, tmp_path):
    words = ["data", *FAMILIES["electra"].split(), "--lr-scheduler", "polynomial_decay", "--batch-size", "8"]
    assert "polynomial_decay needs --total-num-update N, usually" in refused(training_config, words)
    cfg = configuration(dataset={"batch_size": 8})
    for path, said in ((None, "is missing"), (str(tmp_path / "a.pt"), f"{tmp_path}/a.pt")):
        cfg.common_eval.path = path
        message = refused(distributed_utils.call_main, cfg, validate_main)
        assert message == f"error: --path {said}: name a checkpoint of fairseq-train"


def test_the_error_of_a_worker_is_the_only_one(monkeypatch):
    cfg = configuration(dataset={"batch_size": 8})
    cfg.distributed_training.update(distributed_world_size=2, distributed_init_method="tcp://localhost:1")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for code, expected in ((1, 1), (-9, "error: process 0 terminated")):
        ended = ProcessExitedException("process 0 terminated", error_index=0, error_pid=1, exit_code=code)
        monkeypatch.setattr(torch.multiprocessing, "spawn", Mock(side_effect=ended))
        with pytest.raises(SystemExit) as stop:
            distributed_utils.call_main(cfg, train_main)
        assert stop.value.code == expected


@pytest.mark.parametrize("task, criterion", [("masked_lm", "masked_lm"), ("nonsense", None), (None, "cross_entropy")])
def test_other_runs_without_a_batch_size_are_left_to_fairseq(task, criterion):
    check_settings(configuration(task={"_name": task}, criterion={"_name": criterion}))
    check_settings(configuration())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("bf16 fp16", "--bf16 and --fp16 are two precisions; give one of them"),
        ("bf16 amp", "--bf16 and --amp are two precisions; give one of them"),
        ("bf16 memory_efficient_fp16", "--bf16 and --memory-efficient-fp16 are two precisions; give one of them"),
        ("bf16 memory_efficient_bf16", "--memory-efficient-bf16 would lose small updates; give --bf16"),
        ("tpu", "--tpu needs torch_xla, which is not installed; remove it"),
    ],
)
def test_precisions_that_exclude_each_other(flags, message, monkeypatch):
    monkeypatch.setattr(utils, "xm", None)
    assert refusal(configuration(common=dict.fromkeys(flags.split(), True))) == message


@pytest.mark.parametrize("name", ["amp", "memory_efficient_fp16"])
def test_half_precision_that_fairseq_scales_wrongly_is_refused_for_ours(name):
    def precise(task):
        return configuration(task={"_name": task}, dataset={"batch_size": 8}, common={name: True})

    expected = (
        f"--{name.replace('_', '-')} does not work with our models and optimizer; give --fp16 --fp16-no-flatten-grads"
    )
    assert refused(check_settings, precise("electra")) == expected
    check_settings(precise("translation"))


def test_a_tpu_is_refused_only_if_it_was_asked_for(monkeypatch):
    monkeypatch.setattr(utils, "xm", None)
    cfg = configuration(common={"bf16": True, "tpu": True})
    check_settings(cfg)  # as fairseq sets them for --bf16
    with pytest.raises(InputError, match="^common.tpu=true needs torch_xla"):
        check_settings(cfg, _in_yaml)
    monkeypatch.setattr("sys.argv", ["fairseq-train", "--bf16", "--tpu"])
    with pytest.raises(InputError, match="^--tpu needs torch_xla"):
        check_settings(cfg)


@pytest.mark.parametrize("other", ["--fp16", "--memory-efficient-fp16"])
def test_precisions_that_fairseqs_parser_refuses(other):
    with pytest.raises(SystemExit, match="^error: --fp16 and --bf16 .* are two precisions; give one of them$"):
        training_config(["data-bin", *FAMILIES["bert"].split(), "--bf16", other])


def test_validation_without_a_task():
    with pytest.raises(SystemExit, match="^error: fairseq-validate needs --task; "):
        options.parse_args_and_arch(options.get_validation_parser(), ["data-bin", "--path", "checkpoint_last.pt"])


# Which programs are checked


@pytest.fixture
def launched(monkeypatch):
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)


def run(program: str, cfg: DictConfig) -> list[bool]:
    """Let fairseq call the main function of a program, which returns whether a TPU is used."""
    called = []
    names = {"called": called}
    exec(compile("def main(cfg): called.append(cfg.common.tpu)", f"fairseq_cli/{program}.py", "exec"), names)
    distributed_utils.call_main(cfg, names["main"])
    return called


def test_fairseqs_programs_are_checked(monkeypatch):
    monkeypatch.setattr(utils, "xm", None)
    ours = {"task": {"_name": "electra"}, "common": {"bf16": True, "tpu": True, "cpu": True}}
    good = configuration(**ours, dataset={"batch_size": 8}, common_eval={"path": __file__})
    for program in ("train", "validate"):
        with pytest.raises(SystemExit, match="^error: no batch size"):
            run(program, configuration(**ours))
        assert run(program, good) == [False]  # fairseq takes --bf16 for --tpu
    assert run("generate", configuration(**ours)) == [False]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    good.distributed_training.distributed_world_size = 2
    with pytest.raises(SystemExit, match="^error: --distributed-world-size 2, but this machine has no GPUs"):
        run("train", good)


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


def test_an_error_is_the_only_line_of_fairseq_train(tmp_path):
    """Without Hydra's warnings about how fairseq calls it."""
    run = run_command("fairseq-train", *training_flags("nowhere", tmp_path), "--task", "electra")
    assert run.error() == "error: no model; give --arch, such as --arch electra_small"
    words = [*training_flags("nowhere", tmp_path), *FAMILIES["electra"].split()]
    run = run_command("fairseq-train", *words)
    lines = [line for line in run.stderr.splitlines() if " | INFO | " not in line]
    assert len(lines) == 1 and lines[0].startswith("error: nowhere/dict.txt: "), run.stderr


@pytest.mark.parametrize(
    ("flags", "warns"), [("--warmup-updates 6", True), ("--warmup-updates 5", False), ("--max-update 0", False)]
)
def test_a_warm_up_that_does_not_end_gets_a_warning(data_bin, tmp_path, flags, warns, caplog):
    cfg = training_config([*training_flags(data_bin, tmp_path), *FAMILIES["bert"].split(), *flags.split()])
    check_settings(cfg)
    assert ("--warmup-updates 6: the learning rate does not reach --lr in --max-update 6" in caplog.text) == warns


@pytest.mark.parametrize(
    "flags, message",
    [
        ("--criterion mlm_hard_corection", "--criterion mlm_hard_corection: unknown; did you mean mlm_hard_correction"),
        ("--arch bert_tinny", "--arch bert_tinny: unknown; did you mean bert_tiny"),
        ("--task elektra", "--task elektra: unknown; did you mean electra?"),
        ("--optimizer xyz", "--optimizer xyz: unknown; give one of .*electra_adamw"),
        ("--synonim-table x", "unrecognized arguments: --synonim-table x; did you mean --synonym-table"),
        ("--no-such-flag", "unrecognized arguments: --no-such-flag; no --task, --arch"),
        ("--batch-size 1,000", "argument --batch-size/--max-sentences: invalid int value: '1,000'"),
        ("--lr 0,001", "0,001: not a number; write numbers as 0.0005"),
        ("--lr abc", "argument --lr: not a number: 'abc'"),
    ],
)
def test_flags_with_a_mistake_get_one_line(flags, message, data_bin, tmp_path):
    base = "--task electra --arch bert_tiny --criterion " + ("mlm_hard_correction" if "--syn" in flags else "mlm")
    assert re.match(f"error: {message}", refused_training(data_bin, tmp_path / "run", *base.split(), *flags.split()))
    assert not (tmp_path / "run").exists()


def test_an_objective_needs_a_task_that_masks_words():
    flags = ["data", "--arch", "bert_tiny", "--criterion", "mlm", "--batch-size", 1, "--task"]
    message = refusal(training_config([*flags, "language_modeling"]))
    assert message.startswith(
        "the criterion mlm does not work with the task language_modeling, because that masks no w"
    )


@pytest.mark.parametrize("task, multiple", [("electra", 1), ("squad", 1), ("masked_lm", 8)])
def test_our_tasks_do_not_round_the_batch_size(task, multiple):
    flags = ["data", "--arch", "bert_tiny", "--task", task, "--batch-size", 12]
    assert training_config(flags).dataset.required_batch_size_multiple == multiple
    flags += ["--required-batch-size-multiple", 4]
    assert training_config(flags).dataset.required_batch_size_multiple == 4
