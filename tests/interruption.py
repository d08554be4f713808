"""Runs of fairseq-train that are killed and started again, and how they compare with a run in one piece."""

import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from helpers import training_flags

MAX_UPDATE = 24
INTERVALS = ["--save-interval-updates", 2, "--validate-interval-updates", 4, "--keep-interval-updates", 2]


class Attempts:
    """What all attempts at one run logged, and how each of them ended."""

    def __init__(self):
        self.records: dict[tuple[str, int], dict] = {}  # the last of each kind and update
        self.lines = 0
        self.ends: list[str] = []
        self.resumed: list[int] = []  # the updates of the checkpoints that they went on from

    def read(self, line: str) -> None:
        self.lines += 1
        if loaded := re.search(r"Loaded checkpoint .* @ (\d+) updates", line):
            self.resumed.append(int(loaded.group(1)))
        for kind in ("train_inner", "valid"):
            marker = f" | {kind} | {{"
            if marker in line:
                record = json.loads("{" + line.split(marker, 1)[1])
                updates = int(record.get("num_updates") or record["valid_num_updates"])
                clock = ("wps", "ups", "wall", "train_wall")
                kept = {key: value for key, value in record.items() if not key.removeprefix("valid_").startswith(clock)}
                self.records[kind, updates] = kept


def run(attempts: Attempts, data: Path, folder: Path, flags: list, kill_after: int | None = None) -> int:
    """Run once, and kill it -9 some milliseconds after so many lines of output; its exit code."""
    command = [Path(sys.executable).with_name("fairseq-train"), *training_flags(data, folder), *flags, *INTERVALS]
    command += ["--max-update", MAX_UPDATE]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        start_new_session=True,
    )
    last = ""
    for number, line in enumerate(process.stdout, start=1):
        attempts.read(line)
        last = line.strip() or last
        if number == kill_after:
            time.sleep(random.Random(number).uniform(0, 0.05))
            os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    attempts.ends.append(f"{'killed' if code < 0 else f'ended with {code}'} after: {last[:150]}")
    return code


def check_that_kills_change_nothing(data: Path, folder: Path, flags: list, kills: int, seed: int) -> Attempts:
    """Kill a run so many times at random moments; fails where its end or its log differs from a run in one piece."""
    whole, killed = Attempts(), Attempts()
    assert run(whole, data, folder / "whole", flags) == 0, whole.ends
    rng = random.Random(seed)
    while kills:
        code = run(killed, data, folder / "killed", flags, kill_after=rng.randint(1, whole.lines))
        assert code in (0, -signal.SIGKILL), killed.ends
        kills -= code != 0
        if code == 0:  # it was faster than its killer: begin anew
            for path in (folder / "killed").iterdir():
                path.unlink()
    assert run(killed, data, folder / "killed", flags) == 0, killed.ends
    assert killed.resumed, killed.ends
    states = [torch.load(folder / name / "checkpoint_last.pt", weights_only=True) for name in ("whole", "killed")]
    for part in ("model", "last_optimizer_state"):
        assert_equal(states[0][part], states[1][part])
    assert_equal(states[0]["optimizer_history"][-1], states[1]["optimizer_history"][-1])  # before it one for each start
    assert killed.records.keys() == whole.records.keys(), (killed.records.keys() ^ whole.records.keys(), killed.ends)
    differ = {
        key: (killed.records[key], record) for key, record in whole.records.items() if killed.records[key] != record
    }
    assert not differ, (differ, killed.ends)
    assert not list((folder / "killed").glob("*.tmp"))
    return killed


# what changes a folder; pathlib and shutil call these, too
FILE_OPERATIONS = ("replace", "rename", "unlink", "rmdir", "mkdir", "link", "fsync")


def kill_at_every_step(function: Callable[[], object]) -> Iterator[int]:
    """Call a function in a process of its own that is killed -9 before its first change of a folder, then its second,
    and so on; yields after each killed one, and ends when it gets through.
    """
    fork = multiprocessing.get_context("fork")
    for step in range(1, 1000):
        process = fork.Process(target=_call_and_die, args=(function, step))
        process.start()
        process.join()
        if process.exitcode == 0:
            return
        assert process.exitcode == -signal.SIGKILL, process.exitcode
        yield step
    raise AssertionError("it never ends")


def _call_and_die(function: Callable[[], object], step: int) -> None:
    left = [step]

    def counted(operation):
        def call(*args, **options):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*args, **options)

        return call

    for name in FILE_OPERATIONS:
        setattr(os, name, counted(getattr(os, name)))
    function()


def assert_equal(one, other) -> None:
    """Equal to the last bit, whatever holds the tensors."""
    if torch.is_tensor(one):
        assert torch.equal(one, other)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_equal(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for ours, theirs in zip(one, other):
            assert_equal(ours, theirs)
    else:
        assert one == other
