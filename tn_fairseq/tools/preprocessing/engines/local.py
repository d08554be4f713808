"""The engine with several local processes, and what the engines share."""

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, Generic, TypeVar

from tqdm import tqdm

from ....core.errors import InputError

LOOK_AHEAD = 2  # items, or Dask tasks, in flight per worker
ATTEMPTS = 3  # an item that kills this many workers is an error

Item = TypeVar("Item")
Result = TypeVar("Result")

_function: Callable  # set in each worker


def killed_each_time(item: Any, remedy: str) -> InputError:
    killed = "every worker that processed it was killed (out of memory?)"
    return InputError(f"{item}: {killed}; check the text there, or {remedy}")


def warn(message: str) -> None:
    tqdm.write(f"warning: {message}", file=sys.stderr)


class LocalProcesses(Generic[Item, Result]):
    """A pool of local processes; if one of them is killed, all are restarted.

    Raises InputError if the machine does not allow so many.
    """

    def __init__(self, function: Callable[[Item], Result], workers: int):
        self._function, self._workers = function, workers
        self._start()

    def map(self, items: Iterable[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items; raises InputError for an item that kills its workers."""
        items = iter(items)
        pending: deque[Item] = deque()
        futures: deque[Future[Result]] = deque()
        while True:
            pending.extend(islice(items, LOOK_AHEAD * self._workers - len(pending)))
            if not pending:
                return
            try:
                while len(futures) < len(pending):
                    futures.append(self._pool.submit(_work, pending[len(futures)]))
                result = futures[0].result()
            except BrokenProcessPool:
                # All pending items are lost, and any of them may be the one that kills: run each alone.
                self._restart()
                yield from map(self._do_alone, pending)
                pending.clear()
                futures.clear()
            else:
                pending.popleft()
                futures.popleft()
                yield result

    def close(self) -> None:
        """Stop the processes."""
        self._pool.shutdown(cancel_futures=True)

    def _start(self) -> None:
        pool = None
        try:
            # This sends the function to each process once, and not with every item.
            pool = ProcessPoolExecutor(self._workers, initializer=_prepare_worker, initargs=(self._function,))
            pool.submit(int)  # starts the processes
        except OSError as error:
            for process in pool._processes.values() if pool else ():  # the pool does not stop those that did start
                process.kill()
            problem = f"{self._workers} processes cannot be started ({error.strerror})"
            raise InputError(f"{problem}; reduce --workers") from None
        self._pool, self._processes = pool, [*pool._processes.values()]

    def _restart(self) -> None:
        warn("a worker was killed (out of memory?); its work is retried")
        # If it was killed while it wrote a result, the others wait for a lock that nobody releases. The pool only
        # terminates them, which the parent's handler of signals, if it has one, ignores before _prepare_worker runs.
        for process in self._processes:
            process.kill()
        self.close()
        self._start()

    def _do_alone(self, item: Item) -> Result:
        for _ in range(1, ATTEMPTS):
            try:
                return self._pool.submit(_work, item).result()
            except BrokenProcessPool:
                self._restart()
        raise killed_each_time(item, f"use fewer than {self._workers} --workers")


def _prepare_worker(function: Callable) -> None:
    global _function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C for all
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Without this, a worker would wait forever for work from a parent that was killed.
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _work(item: Any) -> Any:
    return _function(item)


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
