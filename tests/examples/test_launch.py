"""The launch recipes run on the CPU, with processes as machines and with the environment variables of a Slurm job."""

import os
import re
import socket
import subprocess
from pathlib import Path

import pytest
import torch
from helpers import FAMILIES, PLUGIN, run_command, training_flags, write_programs

FOLDER = PLUGIN.parent / "examples" / "launch"
SCRIPTS = ONE_MACHINE, MANY_MACHINES, SLURM = [
    FOLDER / name for name in ("one_machine.sh", "many_machines.sh", "slurm.sbatch")
]
# starts one task per machine of the job, as srun does, and fails if any of them fails
SRUN = """
while [[ $1 == --*=* ]]; do shift; done
for node in $(seq 0 $((SLURM_NNODES - 1))); do
    SLURM_STEP_NUM_TASKS=$SLURM_NNODES SLURM_PROCID=$node SLURM_NODEID=$node SLURM_LOCALID=0 "$@" &
    tasks+=($!)
done
for task in "${tasks[@]}"; do wait "$task" || code=$?; done
exit "${code:-0}"
"""


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("SLURM_", "WORKERS", "DEVICE", "PORT"))]:
        monkeypatch.delenv(name)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return listening.getsockname()[1]


@pytest.fixture
def in_slurm(tmp_path, monkeypatch):
    """The environment of the batch script in a job of two machines."""
    monkeypatch.setenv("PATH", str(write_programs(tmp_path / "bin", srun=SRUN)), prepend=os.pathsep)
    for name, value in {"JOB_ID": 1, "NNODES": 2, "NTASKS": 2, "PROCID": 0}.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))


@pytest.mark.slow
def test_one_run_resumes_from_recipe_to_recipe(data_bin, synonym_table, in_slurm, tmp_path, monkeypatch):
    """Two workers each time train the same model as a single uninterrupted process with twice the batches."""
    common = [*FAMILIES["electra"].split(), "--criterion", "mlm_hard_correction", "--synonym-table", synonym_table]
    common += ["--dropout", 0, "--attention-dropout", 0]

    def train(folder: Path, updates: int, *more):
        return ["fairseq-train", *training_flags(data_bin, folder), *common, "--max-update", updates, *more]

    folder = tmp_path / "many"
    for name, value in {"DEVICE": "cpu", "WORKERS": "2"}.items():
        monkeypatch.setenv(name, value)
    first = run_command(ONE_MACHINE, *train(folder, 2))
    for name, value in {"WORKERS": "1", "PORT": str(free_port())}.items():
        monkeypatch.setenv(name, value)
    second = run_command(SLURM, *train(folder, 4))
    for run in (first, second):
        assert run.code == 0 and run.output.count("training on 2 devices") == 1, run.output
    assert f"Loaded checkpoint {folder}/checkpoint_last.pt (epoch 1 @ 2 updates)" in second.output
    one = run_command(*train(tmp_path / "one", 4, "--update-freq", 2))
    assert one.code == 0, one.output
    ours, theirs = (torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=True) for name in ("many", "one"))
    assert ours["optimizer_history"][-1]["num_updates"] == theirs["optimizer_history"][-1]["num_updates"] == 4
    for name, tensor in theirs["model"].items():
        torch.testing.assert_close(ours["model"][name], tensor, atol=1e-6, rtol=0)


def said(script: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([script, *arguments], capture_output=True, text=True)


def test_each_gpu_gets_a_worker(tmp_path, monkeypatch):
    """The arguments that a recipe passes to torchrun, which does not run, on a machine with four GPUs."""
    tools = write_programs(
        tmp_path / "tools",
        torchrun="printf '%s\\n' \"$@\"",
        nvidia_smi="printf 'GPU\\n%.0s' 1 2 3 4",
        srun='while [[ $1 == --*=* ]]; do shift; done; "$@"',
    )
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    command = ["fairseq-train", "a data-bin", "--fp16"]
    for name, value in {"MACHINES": "3", "FIRST_MACHINE": "node1", "SLURM_NNODES": "3", "SLURM_JOB_ID": "7"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "4")
    here = socket.gethostname()
    of_scripts = (ONE_MACHINE, 1, ""), (MANY_MACHINES, 3, "node1:29500"), (SLURM, 3, f"{here}:20007")
    for script, machines, address in of_scripts:
        process = said(script, *command)
        assert process.returncode == 0, process.stderr
        words = process.stdout.splitlines()
        assert words[words.index("--nproc-per-node") + 1] == "4"
        assert words[words.index("--distributed-world-size") + 1] == str(4 * machines)
        start = words.index("--no-python") + 1
        assert words[start : start + len(command)] == command
        assert not {"--cpu", "--ddp-backend"} & set(words)
        if machines > 1:
            assert words[words.index("--rdzv-endpoint") + 1] == address
            assert words[words.index("--nnodes") + 1] == "3"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_wrong_settings_get_one_line(script, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    good = {"MACHINES": "2", "FIRST_MACHINE": "node1", "WORKERS": "2", "DEVICE": "cpu"}
    of_many = [{"MACHINES": ""}, {"FIRST_MACHINE": ""}] if script == MANY_MACHINES else []
    for wrong in ({}, {"WORKERS": "0"}, {"DEVICE": "tpu"}, *of_many):
        arguments = ["fairseq-train"] if wrong else []
        for name, value in {**good, **wrong}.items():
            monkeypatch.setenv(name, value)
        process = said(script, *arguments)
        assert (process.returncode, process.stdout) == (2, ""), (wrong, process.stderr)
        assert re.fullmatch(r"usage: .*WORKERS=N.* fairseq-train DATA_BIN FLAG\.\.\.\n", process.stderr), process.stderr
