"""Many workers log the same sums and train the same weights as one process that accumulates their batches."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from helpers import CRITERIA, FAMILIES, FEWER_RUNS, PAPER, RUNS, Run, run_command, training_flags, write_data_bin

from tn_fairseq.__main__ import main
from tn_fairseq.core.checkpoints import load_checkpoint

pytestmark = pytest.mark.xdist_group("workers")
# several runs in one process, to import only once
WORKER = """
import json, logging, multiprocessing, os, sys
logging.root.handlers.clear()  # those of a process that this one was forked from
logging.root.setLevel(logging.WARNING)
from fairseq_cli.train import cli_main
for name, flags in json.loads(sys.argv[1]).items() if __name__ == "__main__" else []:
    if os.environ.get("RANK", "0") == "0":
        print("run " + name, flush=True)
    sys.argv = ["fairseq-train", *flags]
    cli_main()
    for loader in multiprocessing.active_children():  # of a run that stopped within an epoch: faster than by themselves
        loader.terminate()
"""
# fairseq starts workers only if it sees GPUs, but they run without; they log to standard error
PRETEND_GPUS = "import os, torch; torch.cuda.device_count = lambda: {}; os.dup2(1, 2)\n"
ON_A_CPU = ["--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]
# times, values of earlier runs, and means over validation steps, of which many workers need fewer
UNLIKE = ("wps", "ups", "train_wall", "wall", "valid_wps", "valid_best_loss", "valid_wpb", "valid_bsz")


SPLITS = ("train", "valid")


class Trained(NamedTuple):
    """The output of a run, and its last checkpoint."""

    run: Run
    state: dict

    def sums(self, kind: str) -> dict[str, float]:
        """The sums behind the metrics, over all updates ("default") or over the last validation ("valid")."""
        meters = self.state["extra_state"]["metrics"][kind]
        return {key: float(meter["sum"]) for _, key, _, meter in meters if key.startswith("_")}

    def logs(self) -> list[dict[str, float]]:
        """The records of every update and validation, without times."""
        return [
            {key: float(value) for key, value in record.items() if not key.startswith(UNLIKE)}
            for kind in ("train_inner", "valid")
            for record in self.run.records(kind)
        ]


def train(
    folder: Path, data: Path, runs: dict[str, list], flags: list, command: list, program: str = WORKER
) -> dict[str, Trained]:
    """Train all runs with a single program, started by a command."""
    folder.mkdir(exist_ok=True)
    words = {
        name: [str(word) for word in [*training_flags(data, folder / name), *run, *flags]] for name, run in runs.items()
    }
    (folder / "worker.py").write_text(program)
    whole = run_command(*command, "python", folder / "worker.py", json.dumps(words))
    assert whole.code == 0, whole.output
    # the format of workers that fairseq starts
    stdout = re.sub(r"^INFO:(\w+):", r" | \1 | ", whole.stdout, flags=re.MULTILINE)
    _, *parts = re.split(r"^run (.*)\n", stdout, flags=re.MULTILINE)
    assert parts[::2] == list(runs), whole.output
    return {
        name: Trained(
            Run(subprocess.CompletedProcess(command, 0, output, "")),
            load_checkpoint(folder / name / "checkpoint_last.pt"),
        )
        for name, output in zip(parts[::2], parts[1::2])
    }


def by_itself(folder: Path, data: Path, runs: dict[str, list]) -> dict[str, Trained]:
    return train(folder, data, runs, [], [])


def by_torchrun(folder: Path, data: Path, runs: dict[str, list], workers: int) -> dict[str, Trained]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", workers]
    flags = ["--distributed-init-method", "env://", "--distributed-world-size", workers, "--distributed-rank", -1]
    flags += ["--distributed-no-spawn", *ON_A_CPU]
    return train(folder, data, runs, flags, [*launcher, "--no-python"])


def by_fairseq(folder: Path, data: Path, runs: dict[str, list], workers: int) -> dict[str, Trained]:
    """Workers that fairseq starts itself, one for each GPU that it sees."""
    flags = ["--distributed-world-size", workers, *ON_A_CPU]
    return train(folder, data, runs, flags, [], PRETEND_GPUS.format(workers) + WORKER)


def assert_same(many: Trained, one: Trained, workers: int, kinds: tuple[str, ...] = ("default", "valid")) -> None:
    """Check that this number of workers trained one model, the same as a single process."""
    assert f"training on {workers} devices" in many.run.output and "training on 1 devices" in one.run.output
    for kind in kinds:
        expected = one.sums(kind)
        assert len(expected) >= 7 and expected["_masked"] > 0
        # 1e-6 for each masked token, because losses are divided by their number
        assert many.sums(kind) == pytest.approx(expected, rel=1e-6, abs=1e-6 * expected["_masked"])
    logs = one.logs()
    assert len(logs) >= len(kinds) and len(many.logs()) == len(logs)
    for ours, theirs in zip(many.logs(), logs):
        assert ours == pytest.approx(theirs, abs=2e-3, rel=1e-5)  # logs have three decimals
    for name, tensor in one.state["model"].items():
        torch.testing.assert_close(many.state["model"][name], tensor, atol=1e-6, rtol=0)


def every_criterion(synonym_table: Path, teacher: Path, updates: int) -> dict[str, list]:
    """Every criterion, those of the paper on every family, without dropout."""
    more = {"mlm_distillation": ["--distillation-teacher", teacher]}
    common = ["--synonym-table", synonym_table, "--dropout", 0, "--attention-dropout", 0, "--max-update", updates]
    common += ["--num-workers", 0]  # loaders change nothing (test_fairseq_train.py)
    return {
        f"{family}.{name}": [*FAMILIES[family].split(), "--criterion", name, *common, *more.get(name, [])]
        for family, name in RUNS
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """A corpus whose last batch in training and validation leaves the last of two workers without work."""
    return write_data_bin(tmp_path_factory.mktemp("uneven"), sentences=68)


@pytest.fixture(scope="module")
def runs(synonym_table, teacher) -> dict[str, list]:
    """The paper's criteria and each family; a slow test below trains all criteria.

    "uneven" runs train to the end of an epoch on small batches with few masks.
    """
    every = every_criterion(synonym_table, teacher, updates=2)
    even = {name: every[name] for name in ("bert.electra", "roberta.mlm_soft_reg", "electra.mlm_sent_kl")}
    flags = ["--task", "electra", "--sample-break-mode", "none", "--tokens-per-sample", 12, "--mask-prob", 0.04]
    flags += ["--batch-size", 3, "--batch-size-valid", 8]
    flags += ["--max-update", 1000, "--total-num-update", 1000, "--max-epoch", 1]
    uneven = {f"uneven.{name}": [*every[name], *flags] for name in ("electra.mlm_hard_correction", "bert.mlm_soft_reg")}
    ragged = [*uneven["uneven.bert.mlm_soft_reg"], "--batch-size", 6, "--update-freq", 2]
    # the same batches are rounded in the same way, and gradients are added in float32
    bf16 = [*every["electra.mlm_hard_correction"], "--bf16"]
    return {**even, **uneven, "ragged.bert.mlm_soft_reg": ragged, "bf16.electra.mlm_hard_correction": bf16}


def test_two_workers_train_the_same_model_as_one_process(data, runs, tmp_path):
    assert {part for name in runs for part in name.split(".")} == {*FAMILIES, *PAPER, "uneven", "ragged", "bf16"}
    # as many batches as two workers
    freqs = {name: 4 if name.startswith("ragged") else 2 for name in runs}
    one = by_itself(tmp_path / "one", data, {name: [*runs[name], "--update-freq", freqs[name]] for name in runs})
    two = by_torchrun(tmp_path / "two", data, runs, 2)
    for name in runs:
        assert_same(two[name], one[name], 2)
        # one worker lacks a batch in the last update and in validation; with four batches an update, one of four
        if name.startswith(("uneven", "ragged")):
            train, valid = (int(re.search(rf"{split}: (\d+) blocks", one[name].run.output)[1]) for split in SPLITS)
            assert math.ceil(train / 3) % 2 == 1 if name.startswith("uneven") else math.ceil(train / 6) % 4 == 3
            assert math.ceil(valid / 8) % 2 == 1


@pytest.mark.slow
def test_workers_that_fairseq_starts_also_train_it(data, runs, tmp_path):
    """A single update, because these workers import everything again."""
    run = [*runs["bert.electra"], "--max-update", 1, "--disable-validation"]
    check_same(by_fairseq, 2, data, {"bert.electra": run}, tmp_path, ("default",))


@pytest.mark.slow
def test_two_workers_train_the_other_criteria(data, synonym_table, teacher, tmp_path):
    every = every_criterion(synonym_table, teacher, updates=1)
    runs = {f"{family}.{name}": every[f"{family}.{name}"] for family, name in FEWER_RUNS if name not in PAPER}
    assert {name.partition(".")[2] for name in runs} == {*CRITERIA} - {*PAPER}
    words = ["data", "teach", data, "--teacher", teacher, "--output", tmp_path / "draws", "--tokens-per-sample", 32]
    main([str(word) for word in words])
    of_bert = [*FAMILIES["bert"].replace("masked_lm", "electra").split(), "--tokens-per-sample", 32, "--mask-seed", 1]
    of_bert += ["--criterion", "mlm_distillation", "--distillation-draws", tmp_path / "draws", "--max-update", 1]
    runs["draws"] = [*of_bert, "--synonym-table", synonym_table, "--dropout", 0, "--attention-dropout", 0]
    check_same(by_torchrun, 2, data, runs, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("launch, workers", [(by_torchrun, 4), (by_fairseq, 2)])
def test_every_criterion_over_several_epochs(launch, workers, family, data_bin, synonym_table, teacher, tmp_path):
    every = every_criterion(synonym_table, teacher, updates=30)
    runs = {name: run for name, run in every.items() if name.startswith(family)}
    check_same(launch, workers, data_bin, runs, tmp_path)


def check_same(
    launch: Callable, workers: int, data: Path, runs: dict[str, list], folder: Path, kinds: tuple = ("default", "valid")
) -> None:
    """Check that workers train the same models as one process that accumulates as many batches."""
    one = by_itself(folder / "one", data, {name: [*run, "--update-freq", workers] for name, run in runs.items()})
    many = launch(folder / "many", data, runs, workers)
    for name in runs:
        assert_same(many[name], one[name], workers, kinds)
