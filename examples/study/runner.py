"""Run the commands of a study in its folder: with a record of each, several at a time, and one study per folder."""

import fcntl
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, List

from tn_fairseq.errors import InputError

RECORD, LOCK = "commands.jsonl", ".study-lock"
PATIENCE = 20  # seconds for the loader processes of a killed run to end
PLUGIN = "$(python -m tn_fairseq)"  # how commands are shown; the path is different on each machine


class Runner:
    """Runs commands in a folder and appends each to commands.jsonl, with its time and its exit code."""

    def __init__(self, folder: Path, plugin: Path, threads: int, lock: int):
        self.folder, self.plugin, self.threads, self.lock = folder, plugin, threads, lock
        self.running: set[subprocess.Popen] = set()
        self.stopped = False
        self._guard = threading.Lock()

    def shown(self, words: Sequence[str]) -> str:
        """The command as a user would type it in the study's folder."""
        return " ".join(f'"{PLUGIN}"' if word == str(self.plugin) else shlex.quote(word) for word in words)

    def run(self, words: Sequence[str], log: Path) -> int:
        """Run a command, append its output to ``log`` (relative to the folder), and return its exit code."""
        log = self.folder / log
        log.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
        started, start = time.strftime("%Y-%m-%d %H:%M:%S"), time.monotonic()
        with open(log, "ab") as output:
            with self._guard:
                if self.stopped:
                    raise InputError("stopped")
                process = subprocess.Popen(
                    [_program(words[0]), *words[1:]],
                    cwd=self.folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=[self.lock],  # so that the folder stays locked until the command ends
                )
                self.running.add(process)
            code = process.wait()
        record = {"command": self.shown(words), "started": started, "seconds": round(time.monotonic() - start, 1)}
        with self._guard:
            self.running.discard(process)
            if not self.stopped:
                with open(self.folder / RECORD, "a", encoding="utf-8") as file:
                    file.write(json.dumps({**record, "exit_code": code, "log": str(log.relative_to(self.folder))}))
                    file.write("\n")
        return code

    def stop(self) -> None:
        """End all running commands; no more are started."""
        with self._guard:
            self.stopped = True
            for process in self.running:
                process.terminate()


def _program(name: str) -> str:
    """Python and fairseq's commands of this environment; all others are found on the PATH."""
    if name == "python":
        return sys.executable
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else name


def read_record(folder: Path) -> List[Dict[str, Any]]:
    """The commands that ran so far, oldest first."""
    path = folder / RECORD
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def last_line(log: Path) -> str:
    """The last line of a log that is not empty: what went wrong, if the command failed."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Lock the folder for this study and the commands that it starts; yields a file descriptor to pass to them.

    Raises InputError if the folder cannot be written, or if another study, or a command that it started, still runs.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; name another folder with --output") from None
    try:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise InputError(
                        f"{folder}: another study, or a run that it started, is still working there; wait for it to end"
                    ) from None
                time.sleep(0.5)
        yield descriptor
    finally:
        os.close(descriptor)
