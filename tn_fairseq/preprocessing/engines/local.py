"""The engine with several local processes."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice

from ...errors import InputError
from .base import ATTEMPTS, LOOK_AHEAD, Engine, Item, Result, killed_each_time, warn

_function: Callable  # set in each worker


class LocalProcesses(Engine):
    """A pool of local processes; if one of them is killed, all are restarted."""

    def __init__(self, function: Callable[[Item], Result], workers: int):
        super().__init__(function)
        self._workers = workers
        self._pool = self._new_pool()

    def map(self, items):
        items = iter(items)
        pending: deque[tuple[Item, Future]] = deque()
        while True:
            for item in islice(items, LOOK_AHEAD * self._workers - len(pending)):
                pending.append((item, self._submit(item)))
            if not pending:
                return
            try:
                result = pending[0][1].result()
            except BrokenProcessPool:
                # All pending items are lost, and any of them may be the one that kills: run each alone.
                self._restart()
                yield from map(self._do_alone, [item for item, _ in pending])
                pending.clear()
            else:
                pending.popleft()
                yield result

    def close(self):
        self._pool.shutdown(cancel_futures=True)

    def _new_pool(self) -> ProcessPoolExecutor:
        # send the function to each process once, not with every item
        try:
            return ProcessPoolExecutor(self._workers, initializer=_prepare_worker, initargs=(self._function,))
        except OSError as error:
            raise self._cannot_start(error) from None

    def _restart(self) -> None:
        warn("a worker was killed (out of memory?); its work is retried")
        self.close()
        self._pool = self._new_pool()

    def _submit(self, item: Item) -> Future:
        try:
            return self._pool.submit(_work, item)
        except BrokenProcessPool as error:
            lost: Future = Future()
            lost.set_exception(error)
            return lost
        except OSError as error:
            for process in self._pool._processes.values():  # the pool does not stop those that did start
                process.kill()
            raise self._cannot_start(error) from None

    def _cannot_start(self, error: OSError) -> InputError:
        return InputError(f"{self._workers} processes cannot be started ({error.strerror}); reduce --workers")

    def _do_alone(self, item: Item) -> Result:
        for _ in range(1, ATTEMPTS):
            try:
                return self._submit(item).result()
            except BrokenProcessPool:
                self._restart()
        raise killed_each_time(item, f"use fewer than {self._workers} --workers")


def _prepare_worker(function: Callable) -> None:
    global _function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C for all
    # The pool ends its workers with this signal if one of them was killed. If it was killed while it wrote a result,
    # the others wait for a lock that nobody releases, and a handler of the parent would let them wait forever.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _work(item: Item) -> Result:
    return _function(item)


def _exit_with_parent() -> None:
    # Without this, a worker would wait forever for work from a parent that was killed.
    multiprocessing.parent_process().join()
    os._exit(1)
