"""Kill and restart runs of fairseq-train, and compare them with an uninterrupted run."""

import json
import multiprocessing
import os
import random
import re
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from helpers import start_command, training_flags

from tn_fairseq.core.checkpoints import load_checkpoint

MAX_UPDATE = 24
# seven updates per epoch, so that kills and restarts happen in all four epochs
LENGTHS = ["--batch-size", 16, "--total-num-update", MAX_UPDATE + 2, "--max-update", MAX_UPDATE]
INTERVALS = ["--save-interval-updates", 2, "--validate-interval-updates", 4, "--keep-interval-updates", 2]


class Attempts:
    """The log of all attempts at one run, and how each of them ended."""

    def __init__(self):
        self.records: dict[tuple[str, int], dict] = {}  # the last record of each kind and update
        self.lines = 0
        self.ends: list[str] = []
        self.resumed: list[int] = []  # the updates of the checkpoints that they resumed from

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
    """Run once and return the exit code; kills it -9 when it has written ``kill_after`` lines."""
    command = ["fairseq-train", *training_flags(data, folder), *flags, *LENGTHS, *INTERVALS]
    reading, writing = os.pipe()
    process = start_command(*command, stdout=writing, stderr=subprocess.STDOUT, start_new_session=True)
    os.close(writing)
    last = ""
    with open(reading) as output:
        for number, line in enumerate(output, start=1):
            attempts.read(line)
            last = line.strip() or last
            if number == kill_after:
                os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    attempts.ends.append(f"{'killed' if code < 0 else f'ended with {code}'} after: {last[:150]}")
    return code


def check_that_kills_change_nothing(data: Path, folder: Path, flags: list, kills: int, seed: int) -> Attempts:
    """Kill a run ``kills`` times at random; fails if its result or log differs from an uninterrupted run."""
    whole, killed = Attempts(), Attempts()
    assert run(whole, data, folder / "whole", flags) == 0, whole.ends
    rng = random.Random(seed)
    while kills:
        code = run(killed, data, folder / "killed", flags, kill_after=rng.randint(1, whole.lines))
        assert code in (0, -signal.SIGKILL), killed.ends
        kills -= code != 0
        if code == 0:  # it finished before it was killed: start over
            for path in (folder / "killed").iterdir():
                path.unlink()
    assert run(killed, data, folder / "killed", flags) == 0, killed.ends
    assert killed.resumed, killed.ends
    states = [load_checkpoint(folder / name / "checkpoint_last.pt") for name in ("whole", "killed")]
    assert_same_end(folder / "whole", folder / "killed")
    assert_equal(states[0]["optimizer_history"][-1], states[1]["optimizer_history"][-1])  # before it, one per start
    assert killed.records.keys() == whole.records.keys(), (killed.records.keys() ^ whole.records.keys(), killed.ends)
    differ = {
        key: (killed.records[key], record) for key, record in whole.records.items() if killed.records[key] != record
    }
    assert not differ, (differ, killed.ends)
    assert not list((folder / "killed").glob("*.tmp"))
    return killed


# functions that change a folder (fsync does not); pathlib and shutil call these as well
FILE_OPERATIONS = ("replace", "rename", "unlink", "rmdir", "mkdir", "link")


def kill_at_every_step(function: Callable[[], object], prepare: Callable = lambda: None) -> Iterator[int]:
    """Call a function in a new process that is killed -9 before its first change of a folder, then before its second,
    and so on; yields after each kill, and stops when the function finishes. Calls ``prepare`` before each process.
    """
    fork = multiprocessing.get_context("fork")
    for step in range(1, 1000):
        prepare()
        process = fork.Process(target=_call_and_die, args=(function, step))
        process.start()
        process.join()
        if process.exitcode == 0:
            return
        assert process.exitcode == -signal.SIGKILL, process.exitcode
        yield step
    raise AssertionError("it never finishes")


@contextmanager
def full_disk(free: int) -> Iterator[None]:
    """Limit the size of files to ``free`` bytes, as if the disk were full then."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


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


def assert_same_end(one: Path, other: Path) -> None:
    """Compare the weights and moments in the last checkpoints of two folders."""
    states = [load_checkpoint(folder / "checkpoint_last.pt") for folder in (one, other)]
    for part in ("model", "last_optimizer_state"):
        assert_equal(states[0][part], states[1][part])


def assert_equal(one, other) -> None:
    """Compare bit for bit, including tensors and arrays inside dicts, lists and tuples."""
    if torch.is_tensor(one):
        assert torch.equal(one, other)
    elif isinstance(one, np.ndarray):
        assert np.array_equal(one, other)
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
