"""Kill binarize twenty times at random moments, with one worker and with two; print how far each run came."""

import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from files import contents
from fork_server import BIN
from helpers import run_command
from integration.test_preprocessing_interrupted import WORDS, shown, text
from tokenizer_folders import bert_folder

from tn_fairseq.core.files import STAGING


@pytest.fixture
def command(tmp_path) -> list:
    """A binarize command that takes a while, with two workers."""
    path = text(tmp_path / "text", 30_000, 1)
    bert_folder(tmp_path / "tokenizer", WORDS)
    command = [BIN / "tn-fairseq", "data", "binarize", "--train", path, "--valid", path]
    return list(map(str, [*command, "--tokenizer", tmp_path / "tokenizer", "--workers", 2, "--shards", 2]))


def check_that_kills_change_nothing(command: list, folder: Path, kills: int, seed: int) -> list[str]:
    """Kill a command and its workers ``kills`` times at random moments; return what it had done each time.

    Fails if partial output looks complete, or if the next run does not write the same bytes.
    """
    rng, ends = random.Random(seed), []
    start = time.monotonic()
    run = run_command(*command, "--destdir", folder / "whole")
    assert run.code == 0, run.output
    seconds, destdir = time.monotonic() - start, folder / "killed"
    while len(ends) < kills:
        start = time.monotonic()
        process = subprocess.Popen(
            [*command, "--destdir", destdir],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):  # imports take the first third
            process.wait(timeout=rng.uniform(0.3, 1) * seconds)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            staged = sum(path.stat().st_size for path in (destdir / STAGING).rglob("*.bin"))
            ends.append(f"killed with {staged:,} bytes staged")
        if (destdir / "shard0" / "dict.txt").exists():  # it finished before the kill: start over
            assert shown(destdir) == contents(folder / "whole")
            seconds = min(seconds, time.monotonic() - start)
            shutil.rmtree(destdir)
    run = run_command(*command, "--destdir", destdir)
    assert run.code == 0, run.output
    assert contents(destdir) == contents(folder / "whole")
    return ends


@pytest.mark.soak
@pytest.mark.parametrize("workers", [1, 2])
def test_twenty_kills_change_nothing(command, workers, tmp_path):
    ends = check_that_kills_change_nothing([*command, "--workers", str(workers)], tmp_path, kills=20, seed=workers)
    print(f"\n{workers} workers", *ends, sep="\n  ")
