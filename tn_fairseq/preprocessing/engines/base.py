"""What the engines share."""

import sys
from typing import Any, TypeVar

from tqdm import tqdm

from ...errors import InputError

LOOK_AHEAD = 2  # items, or Dask tasks, in flight per worker

Item = TypeVar("Item")
Result = TypeVar("Result")


def killed_each_time(item: Any, remedy: str) -> InputError:
    killed = "every worker that processed it was killed (out of memory?)"
    return InputError(f"{item}: {killed}; check the text there, or {remedy}")


def warn(message: str) -> None:
    tqdm.write(f"warning: {message}", file=sys.stderr)
