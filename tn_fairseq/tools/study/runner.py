"""Run the commands of a study in its folder: with a record of each, several at a time, and one study per folder."""

import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Dict, List, Optional

from ...core.errors import InputError
from .plan import Step

RECORD, LOCK = "commands.jsonl", ".study-lock"
CLEAR = "\r\033[K"  # of a terminal: the current line
PATIENCE = 20  # seconds for the loader processes of a killed run to end
PLUGIN = "$(tn-fairseq user-dir)"  # how commands are shown; the path is different on each machine


class Stopped(Exception):
    """The study is ending, so a command was not run or not finished."""


class Runner:
    """Runs commands in a folder and appends each to commands.jsonl, with its time and its exit code."""

    def __init__(self, folder: Path, plugin: Path, threads: int, lock: int):
        self.folder, self.plugin, self.threads, self.lock = folder, plugin, threads, lock
        self.running: set[subprocess.Popen] = set()
        self.stopped = False
        self._guard = threading.Lock()
        self._starting = self._interrupted = False  # in the main thread, the only one that is interrupted

    def shown(self, words: Sequence[str]) -> str:
        """The command as a user would type it in the study's folder."""
        return " ".join(f'"{PLUGIN}"' if word == str(self.plugin) else shlex.quote(word) for word in words)

    def run(self, words: Sequence[str], log: Path, output: Optional[str] = None) -> int:
        """Run a command, append what it prints to ``log`` (relative to the folder), and return its exit code.

        ``output`` is the file that it writes, for the record.
        """
        log = self.folder / log
        log.parent.mkdir(parents=True, exist_ok=True)
        # Python and fairseq's commands of this environment, also in a shell
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": str(self.threads)}
        environment["PYTHONUNBUFFERED"] = "1"  # so that an error is the last line of the log
        started, start = time.strftime("%Y-%m-%d %H:%M:%S"), time.monotonic()
        with open(log, "ab") as printed:
            with self._not_interrupted(), self._guard:
                if self.stopped:
                    raise Stopped
                try:
                    process = subprocess.Popen(
                        words,
                        cwd=self.folder,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=printed,
                        stderr=subprocess.STDOUT,
                        pass_fds=[self.lock],  # so that the folder stays locked until the command ends
                        start_new_session=True,  # so that Ctrl-C reaches only this process, which ends the commands
                    )
                except OSError as error:
                    raise InputError(f"{words[0]}: {error.strerror}; check the command in the plan") from None
                self.running.add(process)
            code = process.wait()
        record = {"command": self.shown(words), "threads": self.threads, "started": started}
        record |= {"seconds": round(time.monotonic() - start, 1), "exit_code": code}
        with self._guard:
            self.running.discard(process)
            if self.stopped:
                raise Stopped
            record |= {"log": str(log.relative_to(self.folder))} | ({"output": output} if output else {})
            with open(self.folder / RECORD, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        return code

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let SIGINT and SIGTERM raise KeyboardInterrupt in the main thread."""
        signals = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self.interrupt) for number in signals]
        try:
            yield
        finally:
            for number, handler in zip(signals, before):
                signal.signal(number, handler)

    def interrupt(self, *_: object) -> None:
        """Raise KeyboardInterrupt, but not while a command starts, because nobody would end that command."""
        self._interrupted = True
        if not self._starting:
            raise KeyboardInterrupt

    @contextmanager
    def _not_interrupted(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._starting = True
        try:
            yield
        finally:
            self._starting = False
        if self._interrupted:
            raise KeyboardInterrupt

    def prepare(self, title: str, steps: Sequence[Step]) -> None:
        """Run the steps whose output is missing; raises InputError if one fails, or its command was another one."""
        made_by = {one.get("output"): one["command"] for one in read_record(self.folder) if one["exit_code"] == 0}
        for number, step in enumerate(steps, start=1):
            words, log = shlex.split(step.command), Path("logs", f"{title}.prepare{number}.log")
            if (self.folder / step.output).exists():
                if made_by.get(step.output, self.shown(words)) != self.shown(words):
                    raise InputError(
                        f"{self.folder / step.output}: was made by another command than that of the plan now; give "
                        f"another --output, or delete it with the runs that used it (see {self.folder / RECORD})"
                    )
                continue
            print(f"$ {self.shown(words)}", flush=True)
            if self.run(words, log, step.output) or not (self.folder / step.output).exists():
                reason = f"{last_line(self.folder / log)} (see {self.folder / log})"
                raise InputError(f"{title}: {step.output} could not be prepared: {reason}")

    def stop(self) -> None:
        """End all running commands; no more are started."""
        with self._guard:
            self.stopped = True
            for process in self.running:
                with suppress(ProcessLookupError):  # it has just ended
                    os.killpg(process.pid, signal.SIGTERM)


def say(text: str, end: str = "\n") -> None:
    """Print a line. On a terminal, it replaces a line that was printed with an empty ``end``."""
    print(f"{CLEAR}{text}" if sys.stdout.isatty() else text, end=end, flush=True)


def read_record(folder: Path) -> List[Dict[str, Any]]:
    """The commands that ran so far, oldest first; raises InputError if a line is incomplete, as after a full disk."""
    path, found = folder / RECORD, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.exists() else [], start=1):
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            raise InputError(f"{path}, line {number}: is not a complete record; delete this line") from None
    return found


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
