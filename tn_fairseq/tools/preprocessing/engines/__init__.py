"""Engines run the work: in this process, in several local processes, or on a Dask cluster.

Every engine maps a function over items and yields the results in the order of the items, so the output does not depend
on the engine. Only a few items are in flight at a time, and the items of a killed worker are retried. The ``str`` of an
item says where it comes from.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import chain
from typing import NamedTuple

from tqdm import tqdm

from .dask import DaskCluster
from .local import Item, LocalProcesses, Result

CHUNK = 64  # items of map_chunks that a worker gets at a time


@contextmanager
def open_engine(
    function: Callable[[Item], Result], workers: int | str = 1
) -> Iterator[Callable[[Iterable[Item]], Iterator[Result]]]:
    """Open the engine for a number of local processes, or for the address of a Dask scheduler; yields its ``map``.

    An error of the function is raised when its item's turn comes. Raises InputError for an item that kills its workers,
    and as ``LocalProcesses`` and ``DaskCluster`` do.
    """
    if workers == 1:
        yield partial(map, function)
        return
    with closing(
        DaskCluster(function, workers) if isinstance(workers, str) else LocalProcesses(function, workers)
    ) as engine:
        yield engine.map


def map_chunks(
    function: Callable[[Item], Result], items: Sequence[Item], workers: int, title: str, unit: str
) -> list[Result]:
    """The function's results for all items, in order, from local processes that get many items at a time."""
    chunks = [_Chunk(unit, start, min(start + CHUNK, len(items))) for start in range(0, len(items), CHUNK)]
    with open_engine(partial(_do, function, items), workers) as map_all:
        results = chain.from_iterable(map_all(chunks))
        return list(tqdm(results, title, len(items), unit=f" {unit}", disable=None))


class _Chunk(NamedTuple):
    unit: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.unit} {self.start + 1:,} to {self.end:,}"


def _do(function: Callable[[Item], Result], items: Sequence[Item], chunk: _Chunk) -> list[Result]:
    return [function(item) for item in items[chunk.start : chunk.end]]
