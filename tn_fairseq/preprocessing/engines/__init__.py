"""Engines run the work: in this process, in several local processes, or on a Dask cluster.

Every engine maps a function over items and yields the results in the order of the items, so the output does not depend
on the engine. Only a few items are in flight at a time, and the items of a killed worker are retried. The ``str`` of an
item says where it comes from.
"""

from collections.abc import Callable

from .base import Engine, Item, Result
from .dask import DaskCluster
from .local import LocalProcesses


def open_engine(function: Callable[[Item], Result], workers: int = 1, dask: str | None = None) -> Engine[Item, Result]:
    """Open the engine for a number of local processes, or for the address of a Dask scheduler.

    Raises InputError as ``DaskCluster`` does.
    """
    if dask is not None:
        return DaskCluster(function, dask)
    return LocalProcesses(function, workers) if workers > 1 else Engine(function)
