"""Work for engines, and helpers to observe it."""

import multiprocessing.forkserver
import operator
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
from files import refused
from fork_server import MODULES

# Dask workers must be able to import their work, so items are calls of Python's built-in functions.
call = operator.call
SQUARES = [partial(pow, number, 2) for number in range(100)]


def squares(count: int) -> list[int]:
    return [number**2 for number in range(count)]


def running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


@contextmanager
def dask_cluster(workers: int, allowed_failures: int = 3, **options) -> Iterator:
    """A real cluster: a scheduler and processes, started by Dask itself, from a process that has imported torch."""
    distributed = pytest.importorskip("distributed")
    import dask

    options |= {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    multiprocessing.set_forkserver_preload([*MODULES, "distributed"])
    multiprocessing.forkserver.ensure_running()
    settings = {"scheduler.allowed-failures": allowed_failures, "worker.multiprocessing-method": "forkserver"}
    with (
        mock.patch.dict(os.environ),  # Dask sets variables such as PYTHONHASHSEED, with which nothing could be forked
        dask.config.set({f"distributed.{name}": value for name, value in settings.items()}),
        distributed.LocalCluster(**options) as cluster,
    ):
        yield cluster


def wait_until(condition) -> None:
    """Wait for an event; one that never comes reaches the time limit of every test."""
    while not condition():
        time.sleep(0.05)


def map_until_refused(engine, items) -> tuple[list, str]:
    """The results before an item that is refused, and the error."""
    results: list = []

    def consume() -> None:
        for result in engine.map(items):
            results.append(result)

    return results, refused(consume)


class Consumed:
    """Items that count how far, at most, an engine reads ahead of its results."""

    def __init__(self, items):
        self.items, self.ahead, self.results = items, 0, 0

    def __iter__(self):
        for number, item in enumerate(self.items, 1):
            self.ahead = max(self.ahead, number - self.results)
            yield item

    def run(self, engine) -> list:
        results = []
        for result in engine.map(self):
            results.append(result)
            self.results += 1
        return results
