"""Jobs: functions of ours and commands such as ``fairseq-train``, run in order and several at a time.

A marker beside the output says that a job is done, and what decided its result. The same call goes on after a failure
or an interruption with what is left.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from tqdm import tqdm

from ..core import PLUGIN
from ..core.errors import InputError
from ..core.files import locked, read_json_object, write_text
from .training_log import parse_record

# programs of this Python, which need not be in the PATH
PROGRAMS: dict[str, list[str]] = {
    "python": [],
    "fairseq-train": ["-m", "fairseq_cli.train"],
    "tn-fairseq": ["-m", "tn_fairseq"],
}
RECORD, LOCK = "commands.jsonl", ".jobs-lock"
PATIENCE = 20  # seconds for the loader processes of a killed command to end
PAUSE = 0.1  # seconds between two looks at the commands
WARNING = " | WARNING | tn_fairseq"
USER_DIR = '"$(tn-fairseq user-dir)"'  # how the plugin's path is shown, because it is different on each machine


@dataclass(frozen=True, eq=False)
class Job:
    """A piece of work with an output, which is done if the marker beside the output has its fingerprint.

    Two jobs with the same output are one.
    With another fingerprint, it is refused, or done again with ``redo``, which is for what is cheap and loses nothing.
    That is also done again if a job that it needs is.
    """

    name: str  # as people know it
    run: Callable[[], None] | Sequence[str]  # a function, or the words of a command
    output: Path  # what it writes last
    fingerprint: Mapping[str, Any]  # JSON: what decides the result
    needs: tuple["Job", ...] = ()  # done before
    log: Path | None = None  # of a command, by default OUTPUT.log
    weight: float = 1.0  # its share of the work, such as updates, for the time left
    check: Callable[[], None] | None = None  # after a command: raises InputError if it must be run again
    # after a command that succeeded; it is called again, without the command, if it fails or is interrupted
    finish: Callable[[], None] | None = None
    redo: bool = False
    alone: bool = False  # nothing else runs at the same time, as for measuring speed; such jobs run last

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self.output == other.output

    def __hash__(self) -> int:
        return hash(self.output)

    @property
    def marker(self) -> Path:
        """The JSON file beside the output, with the fingerprint and how far the job is: started, ran, done."""
        return self.output.with_name(f"{self.output.name}.job.json")

    @property
    def log_path(self) -> Path:
        """What a command prints is appended there."""
        return self.log or self.output.with_name(f"{self.output.name}.log")

    @property
    def resumes(self) -> bool:
        """Whether an interrupted command goes on where it was, so that its settings must stay."""
        return not callable(self.run) and self.run[0] == "fairseq-train"


def is_done(job: Job) -> bool:
    """Whether the output of a job is there with its fingerprint; raises InputError if the marker is damaged."""
    marker = _read_marker(job)
    if marker.get("state") != "done" or not job.output.exists() or _differences(job, marker):
        return False
    return not job.redo or all(map(is_done, job.needs)) and marker.get("needs") == _times(job.needs)


def left(jobs: Iterable[Job]) -> list[Job]:
    """The jobs that are not done."""
    return [job for job in jobs if not is_done(job)]


def refuse(job: Job) -> None:
    """Raise InputError, with what differs, if a job was done, or was started and would resume, with other settings."""
    marker = _read_marker(job)
    keeps = {"done": job.output.exists(), "ran": job.resumes, "started": job.resumes}
    if marker and not job.redo and keeps[marker["state"]] and (differences := _differences(job, marker)):
        what = job.output.parent if job.resumes else job.output
        raise InputError(
            f"{job.output}: belongs to other settings of {job.name} ({'; '.join(differences)}); give another --output, "
            f"or delete {what} to do it again"
        )


def run(
    jobs: Sequence[Job],
    folder: Path,
    parallel: int = 1,
    threads: int | None = None,
    cwd: Path | None = None,
    quiet: bool = False,
) -> list[str]:
    """Do the jobs that are left, in their order as soon as what they need is done; return what failed.

    Up to ``parallel`` commands run at the same time, in ``cwd``, by default here. They share the cores if ``threads``
    and OMP_NUM_THREADS are not given. Functions run in this process, one at a time; no command starts in the meantime.
    If ``quiet``, a terminal shows what runs, but nothing stays on it.
    Raises InputError if a job is refused, or if another process, or a command of a killed one, works in the ``folder``.
    """
    for job in jobs:
        refuse(job)
    if not (count := len(left(jobs))):
        return []
    parallel = max(1, min(parallel, count))
    if threads is None and parallel > 1 and "OMP_NUM_THREADS" not in os.environ:
        threads = max(1, (os.cpu_count() or 1) // parallel)
    busy = f"{folder}: another command, or one that it started, is still working there; wait for it to end"
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context(locked(folder / LOCK, busy, PATIENCE, inherited=True))
        except OSError as error:
            raise InputError(f"{folder}: {error.strerror}; name another folder with --output") from None
        runner = _Runner(jobs, folder, parallel, threads, cwd, quiet, lock)
        before = {number: signal.signal(number, runner.interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            runner.loop()
        finally:
            runner.end()
            for number, handler in before.items():
                signal.signal(number, handler)
        runner.check_interrupted()
    return runner.failed


@dataclass(eq=False)
class _Command:
    """A command that runs."""

    job: Job
    process: subprocess.Popen
    gpu: str | None
    started: datetime
    begin: int  # of what it prints, in bytes of its log
    read: int  # up to there
    rest: bytes = b""  # of an incomplete line


class _Runner:
    """The loop over jobs, and the commands that run."""

    def __init__(
        self,
        jobs: Sequence[Job],
        folder: Path,
        parallel: int,
        threads: int | None,
        cwd: Path | None,
        quiet: bool,
        lock: int,
    ):
        self.jobs, self.folder, self.parallel, self.threads = jobs, folder, parallel, threads
        self.cwd, self.quiet, self.lock, self.gpus = cwd, quiet, lock, visible_gpus()
        self.done = {one for job in jobs for one in (job, *job.needs) if is_done(one)}
        self.waiting = [job for job in jobs if job not in self.done]
        self.running: list[_Command] = []
        self.failed: list[str] = []
        self.is_stopped = self.is_calling = False
        self.parts: dict[Job, float] = {}  # how much of a job is done, from 0 to 1
        self.start, self.gained = time.monotonic(), 0.0  # the weight that was done since then
        total, bar = sum(job.weight for job in jobs), "{percentage:3.0f}%|{bar:20}| {desc}"
        initial = total - self._weight_left()
        self.bar = tqdm(total=total, initial=initial, bar_format=bar, leave=not quiet, disable=None)

    def loop(self) -> None:
        """Start what is ready and look after what runs, until nothing is left that can be done."""
        while True:
            self.check_interrupted()
            for command in [*self.running]:
                self._look_at(command)
            ready = [job for job in self.waiting if self.done.issuperset(job.needs)]
            together = [job for job in ready if not job.alone]
            if any(command.job.alone for command in self.running):
                ready = []
            elif self.running or together:
                ready = together
            else:
                ready = ready[:1]
            for job in ready:
                if not callable(job.run) and len(self.running) < self.parallel:
                    self._try(job, self._start)
            if function := next((job for job in ready if callable(job.run)), None):
                self._try(function, self._do)
            elif self.running:
                time.sleep(PAUSE)
            elif not ready:
                return

    def interrupt(self, *_: object) -> None:
        """Handle a signal: raise KeyboardInterrupt in the function of a job, and elsewhere at the loop's next turn.

        So nothing is half done elsewhere, such as a command that has started and that nobody would end.
        """
        if not self.is_stopped:  # once, because the commands are being ended after that
            self.is_stopped = True
            if self.is_calling:
                raise KeyboardInterrupt

    def check_interrupted(self) -> None:
        """Raise KeyboardInterrupt if there was a signal."""
        if self.is_stopped:
            raise KeyboardInterrupt

    def end(self) -> None:
        """End all commands, with what they have started, and wait for them."""
        for command in self.running:
            with suppress(ProcessLookupError):  # it has just ended
                os.killpg(command.process.pid, signal.SIGTERM)
        for command in [*self.running]:
            command.process.wait()
            with suppress(OSError):  # a full disk
                self._record(command)
        self.bar.close()

    def _try(self, job: Job, step: Callable[[Job], None]) -> None:
        """Take a step of a job; if it fails, as on a full disk, the other jobs go on."""
        self.waiting = [one for one in self.waiting if one is not job]
        try:
            step(job)
        except (InputError, OSError) as error:
            self.failed.append(f"{job.name}: {error}")
            self._print(self.failed[-1])

    def _start(self, job: Job) -> None:
        """Start a command, or complete a job whose command has succeeded before."""
        marker = _read_marker(job)
        if marker.get("state") == "ran" and not _differences(job, marker):
            self._complete(job, marker["seconds"], job.finish)
            return
        words = _words(job)
        program, *arguments = words
        if program in PROGRAMS:
            program, arguments = sys.executable, [*PROGRAMS[program], *arguments]
        # fairseq-train would use all GPUs, each for a batch
        uses_all = not self.gpus or any("--distributed-world-size" in word for word in words)
        gpu = None if uses_all else min(self.gpus, key=[command.gpu for command in self.running].count)
        _mark_started(job)
        job.log_path.parent.mkdir(parents=True, exist_ok=True)
        with open(job.log_path, "ab") as printed:
            begin = printed.tell()
            try:
                process = subprocess.Popen(
                    [program, *arguments],
                    cwd=self.cwd,
                    env=_environment(self.threads, gpu),
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    pass_fds=[self.lock],
                    start_new_session=True,  # Ctrl-C reaches only this process
                )
            except OSError as error:
                raise InputError(f"{program}: {error.strerror}; check the command") from None
        self.running.append(_Command(job, process, gpu, datetime.now(), begin, begin))
        self.bar.set_description_str(job.name)

    def _look_at(self, command: _Command) -> None:
        """Follow the log of a command, and complete its job if it has ended."""
        job, code = command.job, command.process.poll()  # before the last look at the log
        new = _read(job.log_path, command.read)
        command.read += len(new)
        *lines, command.rest = (command.rest + new).split(b"\n")
        for line in [*lines, *([] if code is None else [command.rest])]:
            text = line.decode(errors="replace")
            if WARNING in text:
                self._print(f"{job.name}: {text.split(' | ', 3)[-1]}")
            elif record := parse_record(text, "train_inner"):
                self._show(job, record)
        if code is not None:
            self._try(job, lambda job: self._ended(job, code, command))

    def _ended(self, job: Job, code: int, command: _Command) -> None:
        seconds = self._record(command)
        if code:
            reason = last_line(job.log_path, command.begin).removeprefix("error: ")
            raise InputError(f"failed with exit code {code}: {reason} (see {job.log_path})")
        self._call(job.check)
        _mark(job, "ran", seconds)
        self._complete(job, seconds, job.finish)

    def _do(self, job: Job) -> None:
        assert callable(job.run)
        _mark_started(job)
        self._complete(job, 0, job.run)

    def _complete(self, job: Job, seconds: float, function: Callable[[], None] | None) -> None:
        """Call the last function of a job, and mark it as done."""
        start = time.monotonic()
        self._call(function)
        if not job.output.exists():
            _mark_started(job)
            raise InputError(f"ended without {job.output}{'' if callable(job.run) else f' (see {job.log_path})'}")
        seconds += time.monotonic() - start
        _mark(job, "done", seconds)
        self.done.add(job)
        self._gain(job, 1)
        number = sum(one in self.done for one in self.jobs)
        self._print(f"[{number}/{len(self.jobs)}] {job.name}: {clock(seconds)}{self._time_left()}")

    def _call(self, function: Callable[[], None] | None) -> None:
        """Call a function of a job, which a signal interrupts at once."""
        self.is_calling = True
        try:
            self.check_interrupted()
            if function:
                function()
        finally:
            self.is_calling = False

    def _record(self, command: _Command) -> float:
        """Append a command that has ended to commands.jsonl; returns its seconds."""
        self.running.remove(command)
        log = command.job.log_path
        seconds = round((datetime.now() - command.started).total_seconds(), 1)
        record: dict[str, Any] = {"name": command.job.name, "command": shown(_words(command.job))}
        record |= {"threads": self.threads, "started": f"{command.started:%Y-%m-%d %H:%M:%S}", "seconds": seconds}
        record |= {"exit_code": command.process.returncode}
        record |= {"log": str(log.relative_to(self.folder) if log.is_relative_to(self.folder) else log)}
        with open(self.folder / RECORD, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        return seconds

    def _show(self, job: Job, record: Mapping[str, Any]) -> None:
        """Show the progress of fairseq-train."""
        words = _words(job)
        if "--max-update" in words[:-1]:
            part = min(1.0, float(record["num_updates"]) / float(words[words.index("--max-update") + 1]))
            self.parts.setdefault(job, part)  # a resumed command did this before
            self._gain(job, part)
        self.bar.set_description_str(f"{job.name}, loss {record.get('loss')}{self._time_left()}")

    def _print(self, text: str) -> None:
        if not self.quiet:
            _print(text)

    def _gain(self, job: Job, part: float) -> None:
        self.gained += (part - self.parts.get(job, 0)) * job.weight
        self.parts[job] = part
        self.bar.n = self.bar.total - self._weight_left()
        self.bar.refresh()

    def _weight_left(self) -> float:
        jobs = [*self.waiting, *(command.job for command in self.running)]
        return sum(job.weight * (1 - self.parts.get(job, 0)) for job in jobs)

    def _time_left(self) -> str:
        left, spent = self._weight_left(), time.monotonic() - self.start
        return f"; about {clock(left / self.gained * spent)} left" if left and self.gained else ""


def _words(job: Job) -> list[str]:
    """The words of a command."""
    assert not callable(job.run)
    return [str(word) for word in job.run]


def _read_marker(job: Job) -> dict[str, Any]:
    """The marker of a job, empty if there is none."""
    remedy = "delete it to do the job again"
    marker = read_json_object(job.marker, remedy) if job.marker.exists() else {}
    if marker and not (
        marker.get("state") in ("started", "ran", "done") and isinstance(marker.get("fingerprint"), dict)
    ):
        raise InputError(f"{job.marker}: not the marker of a job; {remedy}")
    return marker


def _mark_started(job: Job) -> None:
    if job.resumes:
        _mark(job, "started")
    else:  # a marker would create the output's folder, which some commands refuse to write to if it exists
        job.marker.unlink(missing_ok=True)


def _mark(job: Job, state: str, seconds: float = 0) -> None:
    content = {"name": job.name, "state": state, "fingerprint": job.fingerprint, "seconds": round(seconds, 1)}
    content |= {"written": str(datetime.now()), "needs": _times(job.needs)}
    write_text(job.marker, json.dumps(content, indent=2) + "\n")


def _times(jobs: Iterable[Job]) -> dict[str, Any]:
    """When jobs were done."""
    return {job.name: _read_marker(job).get("written") for job in jobs}


def _differences(job: Job, marker: Mapping[str, Any]) -> list[str]:
    """What differs between the fingerprint of a job and its marker, in words."""
    there, here = marker["fingerprint"], json.loads(json.dumps(job.fingerprint))
    found = []
    for key in (key for key in sorted({*there, *here}) if there.get(key) != here.get(key)):
        values = [one.get(key, "nothing") for one in (there, here)]
        texts = [" ".join(map(str, value)) if isinstance(value, list) else str(value) for value in values]
        flags = [re.split(" (?=--)", text) for text in texts]  # with their values; of a command, show those that differ
        old, new = (" ".join(one for one in ours if one not in theirs) for ours, theirs in (flags, flags[::-1]))
        found.append(f"{key}: {shorten(old or 'nothing more', 100)} there, {shorten(new or 'nothing more', 100)} here")
    return found


def shown(words: Sequence[object]) -> str:
    """The command as a user would type it."""
    return " ".join(USER_DIR if str(word) == str(PLUGIN) else shlex.quote(str(word)) for word in words)


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


def last_line(log: Path, begin: int = 0) -> str:
    """The last line of a log after its first bytes that is not empty: what went wrong, if the command failed."""
    lines = _read(log, begin).decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


def _read(log: Path, begin: int) -> bytes:
    with suppress(OSError), open(log, "rb") as file:  # it may have been deleted
        file.seek(begin)
        return file.read()
    return b""


def clock(seconds: float) -> str:
    """A time in words."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


def _print(text: str) -> None:
    tqdm.write(text, file=sys.stderr)
