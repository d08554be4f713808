"""Workers that would not train one model are refused, and the error names the flags to add."""

import argparse
import os
import re
import shlex
from functools import partial
from unittest.mock import patch

import pytest
import torch
from fairseq import options
from fairseq.dataclass.constants import DDP_BACKEND_CHOICES
from files import refused

from tn_fairseq.core.errors import InputError
from tn_fairseq.fairseq_patches.settings import _as_flag, _in_yaml
from tn_fairseq.fairseq_patches.workers import check_workers, find_launch

TORCHRUN = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "1"}
FIRST = {**TORCHRUN, "RANK": "0", "LOCAL_RANK": "0"}
NODES = {**TORCHRUN, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "GROUP_WORLD_SIZE": "2"}
BATCH = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_JOB_NODELIST": "node[1-2]"}
SRUN = {**BATCH, "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_STEP_NODELIST": "node"}
OPEN_MPI = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
MPICH = {"PMI_SIZE": "2", "PMI_RANK": "1", "MPI_LOCALRANKID": "1"}
ENV = "--distributed-init-method env:// --distributed-no-spawn"
TCP = "--distributed-init-method tcp://node1:29500 --distributed-no-spawn"
GLOO = "--distributed-backend gloo --ddp-backend legacy_ddp"


def check(flags: str, environment: dict[str, str], gpus: int, say=_as_flag) -> None:
    """Check these flags of fairseq-train on a machine with ``gpus`` GPUs."""
    parser = argparse.ArgumentParser()
    options.add_distributed_training_args(parser, default_world_size=max(1, gpus))
    parser.add_argument("--cpu", action="store_true")
    settings = parser.parse_args(shlex.split(flags))
    with patch.dict(os.environ, environment, clear=True), patch.object(torch.cuda, "device_count", lambda: gpus):
        check_workers(settings, settings.cpu, partial(say, "distributed_training"))


@pytest.mark.parametrize(
    "flags, environment, gpus",
    [
        ("", TORCHRUN, 0),
        ("", FIRST, 0),
        ("", NODES, 1),
        (f"{ENV} --distributed-world-size 2", TORCHRUN, 2),
        (f"{ENV} --distributed-world-size 4 --distributed-rank 1 {GLOO}", TORCHRUN, 0),
        (f"{ENV} --distributed-world-size 2 --distributed-rank -1", TORCHRUN, 0),
        ("--distributed-world-size 2 --cpu", TORCHRUN, 8),
        ("", SRUN, 1),
        ("", OPEN_MPI, 1),
        ("", MPICH, 0),
        ("", {**SRUN, "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}, 1),
        ("--distributed-world-size 16", SRUN, 8),
        ("--distributed-world-size 4 --distributed-port 29500", SRUN, 0),
        (f"{TCP} --distributed-world-size 4 --distributed-rank 3", SRUN, 0),
        ("--cpu", {}, 2),
        (f"{TCP} --distributed-world-size 2", {}, 0),
        (f"--distributed-init-method tcp://node1:29500 --distributed-world-size 2 {GLOO}", {}, 0),
    ],
)
def test_the_error_names_flags_that_help(flags, environment, gpus):
    message = refused(check, flags, environment, gpus)
    added = re.search(r"; add ([^,]*)", message).group(1).replace("HOST:PORT", "node1:1")
    added = re.sub(r"\$(\w+)", lambda variable: environment[variable.group(1)], added)
    check(f"{flags} {added}", environment, gpus)
    # none of them is superfluous, except ranks given by hand, which cannot be checked
    for flag in re.split(r" (?=--)", added):
        if "$" not in message and not flag.startswith("--distributed-rank"):
            with pytest.raises(InputError):
                check(f"{flags} {added.replace(flag, '')}", environment, gpus)


@pytest.mark.parametrize(
    "flags, environment, gpus",
    [
        ("", {}, 8),
        ("--distributed-world-size 2", {}, 8),
        ("", TORCHRUN, 8),
        ("--distributed-world-size 2", NODES, 1),
        (f"{ENV} --distributed-world-size 2 --distributed-rank 1 {GLOO}", TORCHRUN, 0),
        (f"{ENV} --distributed-world-size 2 --distributed-rank -1", TORCHRUN, 2),
        ("", {"WORLD_SIZE": "1", "RANK": "0", "LOCAL_WORLD_SIZE": "1", "GROUP_WORLD_SIZE": "1"}, 0),
        ("", {**BATCH, "SLURM_STEP_NUM_TASKS": "1"}, 0),
        ("--distributed-world-size 16 --distributed-port 29500", {**SRUN, "SLURM_STEP_NUM_TASKS": "2"}, 8),
        (f"{TCP} --distributed-world-size 4 --distributed-rank 3 {GLOO}", SRUN, 0),
        ("--distributed-init-method tcp://node1:29500 --distributed-world-size 16 --distributed-rank 8", {}, 8),
        ("", {"WORLD_SIZE": "", "PMI_SIZE": "many", "SLURM_STEP_NUM_TASKS": "1"}, 1),
        (f"{ENV} --distributed-world-size 2 --distributed-rank -1", {**NODES, "SLURM_STEP_NUM_TASKS": "2"}, 1),
    ],
)
def test_working_flags_are_accepted(flags, environment, gpus):
    check(flags, environment, gpus)


@pytest.mark.parametrize("choice", [str(choice) for choice in DDP_BACKEND_CHOICES])
def test_ddp_backends(choice):
    """pytorch_ddp and legacy_ddp work on GPUs, legacy_ddp on a CPU, each under both of its names."""
    workers = (
        f"{ENV} --distributed-world-size 2 --distributed-rank -1 --ddp-backend {choice} --distributed-backend gloo"
    )
    for gpus, works in ((2, {"pytorch_ddp", "c10d", "legacy_ddp", "no_c10d"}), (0, {"legacy_ddp", "no_c10d"})):
        if choice in works:
            check(workers, TORCHRUN, gpus)
        else:
            with pytest.raises(InputError, match="--ddp-backend legacy_ddp"):
                check(workers, TORCHRUN, gpus)
    if choice in ("fully_sharded", "slowmo"):
        with pytest.raises(InputError, match=f"--ddp-backend {choice}: .*; give --ddp-backend pytorch_ddp or"):
            check(f"--ddp-backend {choice}", {}, 1)
    else:
        check(f"--ddp-backend {choice}", {}, 0)


def test_too_few_gpus_and_no_workers():
    for gpus, has in ((2, "2 GPUs"), (0, "no GPUs")):
        with pytest.raises(InputError, match=f"--distributed-world-size 8, but this machine has {has}; "):
            check("--distributed-world-size 8", {}, gpus)
    check("--distributed-world-size 8", BATCH, 2)  # counts the GPUs of all machines of the job
    with pytest.raises(InputError, match="2 workers on a machine with 1 GPUs"):
        check("", TORCHRUN, 1)
    with pytest.raises(InputError, match="--distributed-world-size 0 trains nothing"):
        check("--distributed-world-size 0", {}, 0)


def test_torchruns_that_are_not_connected():
    with pytest.raises(InputError, match="srun started 4 torchruns, of which only 1 .* --nnodes 4 .*--standalone"):
        check("", {**SRUN, **TORCHRUN}, 2)


def test_the_error_for_a_recipe_names_its_settings():
    error = refused(check, "", TORCHRUN, 0, _in_yaml)
    settings = re.findall(r"distributed_training\.(\w+)=(\S+)", error)
    assert dict(settings) == {
        "distributed_init_method": "env://",
        "distributed_world_size": "2",
        "distributed_rank": "-1",
        "distributed_no_spawn": "true",
        "distributed_backend": "gloo",
        "ddp_backend": "legacy_ddp",
    }
    assert "--" not in error


@pytest.mark.parametrize(
    "environment, launcher, size",
    [
        ({**SRUN, **TORCHRUN}, "torchrun", 2),
        ({**SRUN, "WORLD_SIZE": "1"}, "srun", 4),
        ({**BATCH, **OPEN_MPI}, "mpirun", 2),
        (BATCH, "", 1),
        ({}, "", 1),
    ],
)
def test_the_innermost_launcher_counts(environment, launcher, size):
    with patch.dict(os.environ, environment, clear=True):
        assert find_launch()[::4] == (launcher, size)
