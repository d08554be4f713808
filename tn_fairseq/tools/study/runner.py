"""Run the commands of a study in its folder, with a record of each."""

import json
import shlex
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...core import PLUGIN
from ...core.errors import InputError
from ..launching import Launcher, last_line
from .plan import Step

RECORD, LOCK = "commands.jsonl", ".study-lock"
CLEAR = "\r\033[K"  # of a terminal: the current line
USER_DIR = '"$(tn-fairseq user-dir)"'  # how the plugin's path is shown, because it is different on each machine


def shown(words: Sequence[str]) -> str:
    """The command as a user would type it in the study's folder."""
    return " ".join(USER_DIR if word == str(PLUGIN) else shlex.quote(word) for word in words)


class Runner:
    """Runs commands in the study's folder and appends each to commands.jsonl, with its time and its exit code."""

    def __init__(self, folder: Path, launcher: Launcher, threads: int):
        self.folder, self.launcher, self.threads = folder, launcher, threads
        self._guard = threading.Lock()

    def run(self, words: Sequence[str], log: Path, output: str | None = None) -> int:
        """Run a command, append what it prints to ``log`` (relative to the folder), and return its exit code.

        ``output`` is the file that it writes, for the record. Raises Stopped if the study is ending.
        """
        started, start = time.strftime("%Y-%m-%d %H:%M:%S"), time.monotonic()
        code = self.launcher.start(words, self.folder / log, self.threads).wait()
        record: dict[str, Any] = {"command": shown(words), "threads": self.threads, "started": started}
        record |= {"seconds": round(time.monotonic() - start, 1), "exit_code": code, "log": str(log)}
        record |= {"output": output} if output else {}
        with self._guard, open(self.folder / RECORD, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        return code

    def prepare(self, title: str, steps: Sequence[Step]) -> None:
        """Run the steps whose output is missing; raises InputError if one fails, or its command was another one."""
        made_by = {one.get("output"): one["command"] for one in read_record(self.folder) if one["exit_code"] == 0}
        for number, step in enumerate(steps, start=1):
            words, log = shlex.split(step.command), Path("logs", f"{title}.prepare{number}.log")
            if is_prepared(self.folder, step):
                if made_by.get(step.output, shown(words)) != shown(words):
                    raise InputError(
                        f"{self.folder / step.output}: was made by another command than that of the plan now; give "
                        f"another --output, or delete it with the runs that used it (see {self.folder / RECORD})"
                    )
                continue
            print(f"$ {shown(words)}", flush=True)
            unfinished = _unfinished(self.folder, step)
            unfinished.parent.mkdir(exist_ok=True)
            unfinished.touch()
            if self.run(words, log, step.output) or not (self.folder / step.output).exists():
                reason = f"{last_line(self.folder / log)} (see {self.folder / log})"
                raise InputError(f"{title}: {step.output} could not be prepared: {reason}")
            unfinished.unlink()


def is_prepared(folder: Path, step: Step) -> bool:
    """Whether the output of a step exists, and the command that wrote it has ended without a failure."""
    return (folder / step.output).exists() and not _unfinished(folder, step).exists()


def _unfinished(folder: Path, step: Step) -> Path:
    """A file that exists while the command of a step runs, and afterwards unless it succeeds: it may be killed."""
    return folder / "logs" / f"{quote(step.output, safe='')}.unfinished"


def say(text: str, end: str = "\n") -> None:
    """Print a line. On a terminal, it replaces a line that was printed with an empty ``end``."""
    print(f"{CLEAR}{text}" if sys.stdout.isatty() else text, end=end, flush=True)


def read_record(folder: Path) -> list[dict[str, Any]]:
    """The commands that ran so far, oldest first; raises InputError if a line is incomplete, as after a full disk."""
    path, records = folder / RECORD, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.exists() else [], start=1):
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            raise InputError(f"{path}, line {number}: is not a complete record; delete this line") from None
    return records
