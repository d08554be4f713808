"""Run the commands of a study in its folder, with a record of each."""

import json
import shlex
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core import PLUGIN
from ...core.earlier_names import renamed
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
        records = read_record(self.folder)
        made_by = {one.get("output"): one["command"] for one in records if one["exit_code"] == 0}
        last_code = {one.get("output"): one["exit_code"] for one in records}
        for number, step in enumerate(steps, start=1):
            words, log = shlex.split(step.command), Path("logs", f"{title}.prepare{number}.log")
            # a command that failed may have written its output before
            if (self.folder / step.output).exists() and not last_code.get(step.output):
                if made_by.get(step.output, shown(words)) != shown(words):
                    raise InputError(
                        f"{self.folder / step.output}: was made by another command than that of the plan now; give "
                        f"another --output, or delete it with the runs that used it (see {self.folder / RECORD})"
                    )
                continue
            print(f"$ {shown(words)}", flush=True)
            if self.run(words, log, step.output) or not (self.folder / step.output).exists():
                reason = f"{last_line(self.folder / log)} (see {self.folder / log})"
                raise InputError(f"{title}: {step.output} could not be prepared: {reason}")


def say(text: str, end: str = "\n") -> None:
    """Print a line. On a terminal, it replaces a line that was printed with an empty ``end``."""
    print(f"{CLEAR}{text}" if sys.stdout.isatty() else text, end=end, flush=True)


def read_record(folder: Path) -> list[dict[str, Any]]:
    """The commands that ran so far, oldest first; raises InputError if a line is incomplete, as after a full disk."""
    path, records = folder / RECORD, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines() if path.exists() else [], start=1):
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            raise InputError(f"{path}, line {number}: is not a complete record; delete this line") from None
        records.append(record | {"command": renamed(record["command"])})
    return records
