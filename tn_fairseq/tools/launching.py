"""Launch ``fairseq-train`` and other commands: each with a log, and all with a lock of their folder and one end."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from ..core.errors import InputError
from ..core.files import locked
from .reporting.training_log import parse_record

# programs of this Python, which need not be in the PATH
PROGRAMS: dict[str, list[str]] = {
    "python": [],
    "fairseq-train": ["-m", "fairseq_cli.train"],
    "tn-fairseq": ["-m", "tn_fairseq"],
}
PATIENCE = 20  # seconds for the loader processes of a killed command to end
PAUSE = 0.1  # seconds between two looks at a log
WARNING = " | WARNING | tn_fairseq"


class Stopped(Exception):
    """The commands are being ended, so one was not started or not finished."""


class Launcher:
    """Starts commands, and ends those that run.

    A command has a session of its own, so that Ctrl-C reaches only this process, which ends the command with all that
    it has started. The command inherits the ``lock``, so that its folder stays locked if only this process is killed.
    It runs in ``folder``, by default the current one, and sees one GPU, that with the fewest commands: fairseq-train
    would use all of them, each for a batch. A command that names ``--distributed-world-size`` sees all.
    """

    def __init__(self, lock: int, folder: Path | None = None):
        self.lock, self.folder = lock, folder
        self.stopped = False
        self.gpus = visible_gpus()
        self.running: dict[subprocess.Popen, str | None] = {}  # with their GPUs
        self.ending: set[subprocess.Popen] = set()
        self.guard = threading.RLock()  # reentrant, because a signal can arrive in the main thread while it has it
        self._starting = False  # in the main thread, the only one that is interrupted

    def start(self, words: Sequence[object], log: Path, threads: int | None = None) -> "Command":
        """Start a command that appends what it prints to the log; by default with as many threads as this process.

        Raises InputError if there is no such program, and Stopped if the commands are being ended.
        """
        program, *arguments = map(str, words)
        if program in PROGRAMS:
            arguments = [*PROGRAMS[program], *arguments]
            program = sys.executable
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as printed, self.guard:
            if self.stopped:
                raise Stopped
            begin = printed.tell()
            uses_all = not self.gpus or any("--distributed-world-size" in word for word in arguments)
            gpu = None if uses_all else min(self.gpus, key=list(self.running.values()).count)
            with self._not_interrupted():
                try:
                    process = subprocess.Popen(
                        [program, *arguments],
                        cwd=self.folder,
                        env=_environment(threads, gpu),
                        stdin=subprocess.DEVNULL,
                        stdout=printed,
                        stderr=subprocess.STDOUT,
                        pass_fds=[self.lock],
                        start_new_session=True,
                    )
                except OSError as error:
                    raise InputError(f"{program}: {error.strerror}; check the command") from None
                self.running[process] = gpu
            return Command(self, process, log, begin)

    def train(self, words: Sequence[object], log: Path, threads: int | None = None) -> Iterator[dict[str, Any] | None]:
        """Run ``fairseq-train --log-format json``, and yield its records of training, and None if there is no new one.

        Raises InputError if it fails, and Stopped if the commands are being ended.
        """
        command = self.start(words, log, threads)
        yield from command.records()
        if command.wait():
            raise InputError(f"{log}: {words[0]} failed: {last_line(log).removeprefix('error: ')}")

    def stop(self) -> None:
        """End all commands, without waiting; no more are started."""
        with self.guard:
            self.stopped = True
            # once, because a command that is ending may have no handler any more
            for process in self.running.keys() - self.ending:
                self.ending.add(process)
                with suppress(ProcessLookupError):  # it has just ended
                    os.killpg(process.pid, signal.SIGTERM)

    def interrupt(self, *_: object) -> None:
        """Handle a signal: end all commands, and raise KeyboardInterrupt, unless a command starts at this moment."""
        self.stop()
        if not self._starting:
            raise KeyboardInterrupt

    @contextmanager
    def _not_interrupted(self) -> Iterator[None]:
        """Put off KeyboardInterrupt, because nobody would end a command of which only half has been started."""
        self._starting = threading.current_thread() is threading.main_thread()
        try:
            yield
        finally:
            was_interrupted = self._starting and self.stopped
            self._starting = False
            if was_interrupted:
                self.stop()  # the new command, too
                raise KeyboardInterrupt


class Command:
    """A command that a launcher has started."""

    def __init__(self, launcher: Launcher, process: subprocess.Popen, log: Path, begin: int):
        self.launcher, self.process, self.log, self.begin = launcher, process, log, begin

    def records(self) -> Iterator[dict[str, Any] | None]:
        """Yield the records of training that the command prints until it ends, and show the plugin's warnings.

        Yields None after each pause, so that the caller can look after other commands.
        """
        for line in self._lines():
            if line is None:
                yield None
            elif WARNING in line:
                tqdm.write(f"{self.log.parent}: {line.split(' | ', 3)[-1]}", file=sys.stderr)
            elif record := parse_record(line, "train_inner"):
                yield record

    def wait(self) -> int:
        """Wait for its end, and return its exit code; raises Stopped if the launcher ended it."""
        code = self.process.wait()
        with self.launcher.guard:
            self.launcher.running.pop(self.process, None)
            if self.launcher.stopped:
                raise Stopped
        return code

    def _lines(self) -> Iterator[str | None]:
        """The lines that it prints, until it ends, and None after each pause."""
        with open(self.log, "rb") as file:
            file.seek(self.begin)
            rest, has_ended = b"", False
            while not has_ended:
                has_ended = self.process.poll() is not None  # before the last look
                *lines, rest = (rest + file.read()).split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)
                if not (lines or has_ended):
                    time.sleep(PAUSE)
                    yield None
            yield rest.decode(errors="replace")


@contextmanager
def launching(lock: Path, refusal: str, folder: Path | None = None) -> Iterator[Launcher]:
    """Lock the file ``lock``, and yield a launcher; SIGINT and SIGTERM then raise KeyboardInterrupt in the main thread.

    At the end, the commands that still run are ended. Raises InputError with the ``refusal`` if another process, or a
    command that it has started, holds the lock, and with advice if the file cannot be written.
    """
    with ExitStack() as stack:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            descriptor = stack.enter_context(locked(lock, refusal, PATIENCE, inherited=True))
        except OSError as error:
            raise InputError(f"{lock.parent}: {error.strerror}; name another folder with --output") from None
        launcher = Launcher(descriptor, folder)
        before = {number: signal.signal(number, launcher.interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield launcher
        finally:
            launcher.stop()
            for process in list(launcher.running):
                process.wait()
            for number, handler in before.items():
                signal.signal(number, handler)


def visible_gpus() -> list[str]:
    """The GPUs that a command may use, as CUDA_VISIBLE_DEVICES names them."""
    count = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [str(index) for index in range(count)] if named is None else named.split(",")[:count]


def _environment(threads: int | None, gpu: str | None) -> dict[str, str]:
    # this environment's programs, also in a shell
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    limit = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
    limit |= {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
    return {**os.environ, **limit, "PATH": path, "PYTHONUNBUFFERED": "1"}  # an error is the last line of the log


def last_line(log: Path) -> str:
    """The last line of a log that is not empty: what went wrong, if the command failed."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")
