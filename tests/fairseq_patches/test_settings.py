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
from helpers import FAMILIES, PLUGIN, refused_training, run_command, training_flags
from omegaconf import DictConfig, OmegaConf
from torch.multiprocessing import ProcessExitedException

from tn_fairseq.core.configuration import training_config
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
    "task, criterion",
    [("electra", None), ("squad", None), ("masked_lm", "mlm_soft_reg"), (None, "electra"), ("masked_lm", "own")],
)
def test_our_runs_without_a_batch_size_are_refused(task, criterion, monkeypatch):
    """Also those of an objective of a user."""
    own = type("Own", (MaskedLMCriterion,), {"__module__": "elsewhere"})
    monkeypatch.setitem(CRITERION_REGISTRY, "own", own)
    cfg = configuration(task={"_name": task}, criterion={"_name": criterion}, dataset={"batch_size_valid": 8})
    assert "--batch-size" in refusal(cfg)
    for size in ("batch_size", "max_tokens"):
        check_settings(OmegaConf.merge(cfg, {"dataset": {size: 8}}))


@pytest.mark.parametrize(
    "groups, named",
    [
        ({"optimization": {"update_freq": [0]}}, "--update-freq 0"),
        ({"common": {"seed": -1}}, "--seed -1"),
        ({"common": {"seed": 1 << 31}}, "--seed 2147483648"),
        ({"dataset": {"batch_size": 12}}, "--batch-size 12"),
        ({"dataset": {"batch_size_valid": 20}}, "--batch-size-valid 20"),
        ({"dataset": {"valid_subset": "valid,train"}}, "--valid-subset valid,train"),
        ({"criterion": {"_name": "masked_lm"}, "model": {"_name": "electra_tiny"}}, "masked_lm"),
        ({"task": {"_name": "language_modeling"}, "criterion": {"_name": "mlm"}}, "language_modeling"),
        ({"common": {"amp": True}}, "--fp16-no-flatten-grads"),
        ({"common": {"memory_efficient_fp16": True}}, "--fp16-no-flatten-grads"),
    ],
)
def test_settings_that_would_train_something_else(groups, named):
    cfg = configuration(task={"_name": "electra"}, dataset={"batch_size": 8})
    assert named in refused(check_settings, OmegaConf.merge(cfg, groups))
    if "common" in groups and "seed" not in groups["common"]:  # which fairseq scales wrongly only for ours
        check_settings(OmegaConf.merge(cfg, groups, {"task": {"_name": "translation"}}))


def test_a_split_that_would_be_ignored(tmp_path):
    (tmp_path / "valid1.idx").touch()
    cfg = configuration(task={"_name": "electra", "data": str(tmp_path)}, dataset={"batch_size": 8})
    message = refused(check_settings, cfg)
    assert "valid1" in message and "--combine-valid-subsets" in message
    check_settings(OmegaConf.merge(cfg, {"dataset": {"combine_valid_subsets": True}}))


def test_a_schedule_without_an_end_and_a_validation_without_a_model(monkeypatch, tmp_path):
    words = ["data", *FAMILIES["electra"].split(), "--lr-scheduler", "polynomial_decay", "--batch-size", "8"]
    assert "--total-num-update" in refused(training_config, words)
    cfg = configuration(dataset={"batch_size": 8})
    for path, said in ((None, "is missing"), (str(tmp_path / "a.pt"), f"{tmp_path}/a.pt")):
        cfg.common_eval.path = path
        assert f"--path {said}" in refused(distributed_utils.call_main, cfg, validate_main)


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
    ("flags", "named"),
    [
        ("bf16 fp16", "--fp16"),
        ("bf16 amp", "--amp"),
        ("bf16 memory_efficient_fp16", "--memory-efficient-fp16"),
        ("bf16 memory_efficient_bf16", "--memory-efficient-bf16"),
        ("tpu", "--tpu"),
    ],
)
def test_precisions_that_exclude_each_other(flags, named, monkeypatch):
    monkeypatch.setattr(utils, "xm", None)
    assert named in refusal(configuration(common=dict.fromkeys(flags.split(), True)))


def test_a_tpu_is_refused_only_if_it_was_asked_for(monkeypatch):
    monkeypatch.setattr(utils, "xm", None)
    cfg = configuration(common={"bf16": True, "tpu": True})
    check_settings(cfg)  # as fairseq sets them for --bf16
    assert "common.tpu=true" in refused(check_settings, cfg, _in_yaml)
    monkeypatch.setattr("sys.argv", ["fairseq-train", "--bf16", "--tpu"])
    assert "--tpu" in refused(check_settings, cfg)


def test_what_fairseqs_parsers_refuse():
    for other in ("--fp16", "--memory-efficient-fp16"):
        assert "--bf16" in refused(training_config, ["data-bin", *FAMILIES["bert"].split(), "--bf16", other])
    parser = options.get_validation_parser()
    assert "--task" in refused(options.parse_args_and_arch, parser, ["data-bin", "--path", "checkpoint_last.pt"])


# Which programs are checked


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
        assert "--batch-size" in refused(run, program, configuration(**ours))
        assert run(program, good) == [False]  # fairseq takes --bf16 for --tpu
    assert run("generate", configuration(**ours)) == [False]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    good.distributed_training.distributed_world_size = 2
    assert "--distributed-world-size 2" in refused(run, "train", good)


def test_an_error_is_the_only_line_of_a_program(data_bin, quickstart_recipe, tmp_path):
    """Of fairseq-train and fairseq-hydra-train, without Hydra's warnings about how fairseq calls it."""
    train = ["fairseq-train", *training_flags("nowhere", tmp_path)]
    recipe = ["fairseq-hydra-train", "--config-dir", quickstart_recipe.parent, "--config-name", quickstart_recipe.stem]
    recipe += [f"common.user_dir={PLUGIN}", "criterion.synonym_table=nowhere.safetensors"]
    for command, named in (
        ([*train, "--task", "electra"], "--arch"),
        ([*train, *FAMILIES["electra"].split()], "nowhere/dict.txt"),
        ([*recipe, f"task.data={data_bin}"], "nowhere.safetensors"),
        (recipe, "task.data"),
    ):
        run = run_command(*command, cwd=tmp_path)
        lines = [line for line in run.stderr.splitlines() if " | INFO | " not in line and not line.startswith("DEBUG:")]
        assert named in run.error() and len(lines) == 1, run.stderr


def test_workers_of_torchrun_that_are_not_connected_are_refused(data_bin, quickstart_recipe, tmp_path, monkeypatch):
    for name, value in TORCHRUN.items():
        monkeypatch.setenv(name, value)
    flags = [*FAMILIES["roberta"].split(), "--criterion", "mlm_soft_reg"]
    command = ["fairseq-train", *training_flags(data_bin, tmp_path / "save"), *flags]
    assert "--distributed-world-size 2" in run_command(*command).error()
    command = ["fairseq-hydra-train", "--config-dir", quickstart_recipe.parent, "--config-name", quickstart_recipe.stem]
    command += [f"common.user_dir={PLUGIN}", f"task.data={data_bin}", f"checkpoint.save_dir={tmp_path / 'save'}"]
    command += ["criterion.synonym_table=unused"]
    error = run_command(*command, cwd=tmp_path).error()
    assert "distributed_training.distributed_world_size=2" in error and not (tmp_path / "save").exists()


@pytest.mark.parametrize(
    ("flags", "warns"), [("--warmup-updates 6", True), ("--warmup-updates 5", False), ("--max-update 0", False)]
)
def test_a_warm_up_that_does_not_end_gets_a_warning(data_bin, tmp_path, flags, warns, caplog):
    cfg = training_config([*training_flags(data_bin, tmp_path), *FAMILIES["bert"].split(), *flags.split()])
    check_settings(cfg)
    assert ("--warmup-updates 6: the learning rate does not reach --lr in --max-update 6" in caplog.text) == warns


@pytest.mark.parametrize(
    "flags, named",
    [
        ("--criterion mlm_hard_corection", "mlm_hard_correction"),
        ("--arch bert_tinny", "bert_tiny"),
        ("--task elektra", "electra"),
        ("--optimizer xyz", "electra_adamw"),
        ("--synonim-table x", "--synonym-table"),
        ("--no-such-flag", "--no-such-flag"),
        ("--batch-size 1,000", "--batch-size"),
        ("--lr 0,001", "0,001"),
        ("--lr abc", "--lr"),
    ],
)
def test_flags_with_a_mistake_get_one_line(flags, named, data_bin, tmp_path):
    base = "--task electra --arch bert_tiny --criterion " + ("mlm_hard_correction" if "--syn" in flags else "mlm")
    assert named in refused_training(data_bin, tmp_path / "run", *base.split(), *flags.split())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("task, multiple", [("electra", 1), ("squad", 1), ("masked_lm", 8)])
def test_our_tasks_do_not_round_the_batch_size(task, multiple):
    flags = ["data", "--arch", "bert_tiny", "--task", task, "--batch-size", 12]
    assert training_config(flags).dataset.required_batch_size_multiple == multiple
    flags += ["--required-batch-size-multiple", 4]
    assert training_config(flags).dataset.required_batch_size_multiple == 4
