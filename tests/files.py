"""Write and read files, and what a function says if it refuses them."""

import json
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import pytest

from tn_fairseq.core.errors import InputError


def write(path: Path, content: object) -> Path:
    """Write bytes, text, or anything else as JSON."""
    if not isinstance(content, bytes):
        content = (content if isinstance(content, str) else json.dumps(content)).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """All files in a folder and its subfolders."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(function: Callable, *args, **options) -> str:
    """The one-line error of a function, or of a command, also of its usage."""
    with pytest.raises((InputError, SystemExit)) as caught, redirect_stderr(StringIO()) as printed:
        function(*args, **options)
    message = str(caught.value)
    if message == "2":
        return printed.getvalue().splitlines()[-1]
    sys.stderr.write(printed.getvalue())
    assert "\n" not in message and (isinstance(caught.value, InputError) or message.startswith("error: "))
    return message


def read_commands(folder: Path) -> list[dict]:
    """The commands that ran in a folder of jobs, oldest first."""
    return [json.loads(line) for line in (folder / "commands.jsonl").read_text().splitlines()]
