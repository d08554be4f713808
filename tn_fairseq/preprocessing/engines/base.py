"""The base class of all engines, which works in this process."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from tqdm import tqdm

from ...errors import InputError

LOOK_AHEAD = 2  # items, or Dask tasks, in flight per worker
ATTEMPTS = 3  # an item that kills this many workers is an error

Item, Result = TypeVar("Item"), TypeVar("Result")


class Engine(AbstractContextManager, Generic[Item, Result]):
    """Maps one function over items, one after the other; subclasses have processes to stop at the end."""

    def __init__(self, function: Callable[[Item], Result]):
        self._function = function

    def __exit__(self, *_):
        self.close()

    def map(self, items: Iterable[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items; an error of the function is raised when its item's turn comes.

        Raises InputError for an item that kills its workers.
        """
        return map(self._function, items)

    def close(self) -> None:
        """Stop the engine's processes and connections."""


def killed_each_time(item: Any, remedy: str) -> InputError:
    return InputError(
        f"{item}: every worker that processed it was killed (out of memory?); check the text there, or {remedy}"
    )


def warn(message: str) -> None:
    tqdm.write(f"warning: {message}", file=sys.stderr)
