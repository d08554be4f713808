"""Where work is done: in this process, in processes of this machine, or on a Dask cluster.

Every engine maps a function over items and gives the results in the order of the items, so that what is made of them
does not depend on the engine. Few items are on their way at a time, and those of a killed worker are done again. The
``str`` of an item says where it comes from.
"""

import asyncio
import logging
import math
import multiprocessing
import operator
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache, lru_cache, partial, reduce
from importlib import metadata
from itertools import islice
from typing import Any, Generic, TypeVar

from tqdm import tqdm

from .errors import InputError

LOOK_AHEAD = 2  # items, or Dask's tasks, on their way for each worker
ATTEMPTS = 3  # an item that kills as many workers is given up
CONNECT_SECONDS = 10  # to reach a scheduler, and for it to have a worker
ANSWER_SECONDS = 20  # includes the connecting, whose own limit comes first: it knows what was wrong
PATIENCE_SECONDS = 600  # for a new worker where none is left
POLL_SECONDS = 5
# Scheduler and client spend some milliseconds on a task: little beside the half second that so much text takes.
ITEMS_PER_TASK = 8

Item, Result = TypeVar("Item"), TypeVar("Result")


class Engine(ABC, Generic[Item, Result]):
    """Maps one function over items; a context manager, for there may be processes to end."""

    def __init__(self, function: Callable[[Item], Result]):
        self._function = function

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @abstractmethod
    def map(self, items: Iterable[Item]) -> Iterator[Result]:
        """The results in the order of the items; what the function raises is raised at its turn.

        Raises InputError for an item that kills its workers.
        """

    def close(self) -> None:
        """Give back what the engine holds."""


def open_engine(function: Callable[[Item], Result], workers: int = 1, dask: str | None = None) -> Engine[Item, Result]:
    """The engine for a number of local processes, or for the address of a Dask scheduler.

    Raises InputError as ``DaskCluster`` does.
    """
    if dask is not None:
        return DaskCluster(function, dask)
    return LocalProcesses(function, workers) if workers > 1 else ThisProcess(function)


class ThisProcess(Engine):
    """One item after the other."""

    def map(self, items):
        return map(self._function, items)


class LocalProcesses(Engine):
    """A pool of processes of this machine; where one of them is killed, all start anew."""

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
                # all of them are lost, and any of them may be the one that kills: each alone, then
                self._restart()
                yield from map(self._do_alone, [item for item, _ in pending])
                pending.clear()
            else:
                pending.popleft()
                yield result

    def close(self):
        self._pool.shutdown(cancel_futures=True)

    def _new_pool(self) -> ProcessPoolExecutor:
        # the function goes to each process once, not with every item
        return ProcessPoolExecutor(self._workers, initializer=_prepare_worker, initargs=(self._function,))

    def _restart(self) -> None:
        _warn("a worker was killed (out of memory?); what it had is done again")
        self.close()
        self._pool = self._new_pool()

    def _submit(self, item: Item) -> Future:
        try:
            return self._pool.submit(_work, item)
        except BrokenProcessPool as error:
            lost = Future()
            lost.set_exception(error)
            return lost
        except OSError as error:
            for process in self._pool._processes.values():  # the pool forgets those that did start
                process.kill()
            raise InputError(
                f"{self._workers} processes cannot be started ({error.strerror}); try fewer --workers"
            ) from None

    def _do_alone(self, item: Item) -> Result:
        for _ in range(1, ATTEMPTS):
            try:
                return self._submit(item).result()
            except BrokenProcessPool:
                self._restart()
        raise _killer(item, f"try fewer than {self._workers} --workers")


_function: Callable  # of a worker


def _prepare_worker(function: Callable) -> None:
    global _function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent answers Ctrl-C for all
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _work(item: Item) -> Result:
    return _function(item)


def _exit_with_parent() -> None:
    # A worker would wait for ever for the work of a parent that was killed.
    multiprocessing.parent_process().join()
    os._exit(1)


class DaskCluster(Engine):
    """The workers of an existing Dask cluster; items and results travel, so that they need not see the same files.

    Raises InputError where there is no scheduler, where it has no workers, where these lack tn_fairseq or differ from
    this machine in what the results depend on, and where the cluster is lost.
    """

    def __init__(self, function: Callable[[Item], Result], address: str):
        super().__init__(function)
        try:
            import distributed
        except ImportError:
            raise InputError("--dask needs Dask; install it: pip install 'tn_fairseq[dask]'") from None
        self._dask = distributed
        self._address = address
        self._log_level = logging.root.manager.disable
        logging.disable()  # what goes wrong is said in one line, and by one
        self._client = None
        try:
            self._connect(function)
        except BaseException:
            self.close()
            raise

    def _connect(self, function: Callable[[Item], Result]) -> None:
        self._find_workers()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the workers compare the versions that matter
            self._client = self._dask.Client(self._address, timeout=CONNECT_SECONDS, set_as_default=False)
        self._threads, self._warned = 0, False
        self._counted, self._seen = -math.inf, time.monotonic()
        self._count_threads()
        # A task's result rather than scattered data: where all workers that hold it are killed, it is made again.
        self._sent = self._submit(bytes, pickle.dumps(_Shared(pickle.dumps((function, _versions())))))

    def map(self, items):
        items = iter(items)
        pending: deque[tuple[list[Item], Any]] = deque()
        while batch := list(islice(items, ITEMS_PER_TASK)):
            pending.append((batch, self._submit_batch(batch)))
            self._count_threads()
            while len(pending) > LOOK_AHEAD * self._threads:
                yield from self._next(pending)
        while pending:
            yield from self._next(pending)

    def close(self):
        if self._client is not None:
            self._client.close()
        logging.disable(self._log_level)

    def _find_workers(self) -> None:
        """Ask the scheduler for workers without a client, which would go on trying behind the scenes."""
        arguments = self._dask.Security().get_connection_args("client")
        deadline = time.monotonic() + CONNECT_SECONDS

        async def find() -> dict[str, Any]:
            async with self._dask.rpc(self._address, timeout=CONNECT_SECONDS, connection_args=arguments) as scheduler:
                while True:
                    identity = await asyncio.wait_for(scheduler.identity(), ANSWER_SECONDS)
                    if identity["type"] != "Scheduler":
                        raise ValueError(f"but a {identity['type']}")
                    if identity["workers"] or time.monotonic() > deadline:
                        return identity["workers"]
                    await asyncio.sleep(0.2)

        try:
            workers = asyncio.run(find())
        except Exception as error:  # an address can be wrong in many ways
            reason = "no answer" if isinstance(error, TimeoutError) else _reason(error)
            raise InputError(
                f"--dask {self._address}: no Dask scheduler there ({reason}); give the address that `dask scheduler` "
                "prints"
            ) from None
        if not workers:
            raise InputError(
                f"--dask {self._address}: the cluster has no workers; start some: dask worker {self._address}"
            )

    def _submit_batch(self, batch: list[Item]) -> Any:
        # loads(sent)(batch), put so that it unpickles to Python's own on the way: a scheduler needs no tn_fairseq, and
        # of a worker without it the task fails, where a result that cannot be unpickled would be waited for for ever.
        return self._submit(reduce, operator.call, [pickle.loads, self._sent, pickle.dumps(batch)])

    def _submit(self, function: Callable, *arguments: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Dask finds a large vocabulary large
                return self._client.submit(function, *arguments, pure=False)
        except self._dask.client.ClosedClientError:
            raise self._lost() from None

    def _result(self, future: Any) -> list[Result]:
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except TimeoutError:
                self._count_threads()
            except ImportError as error:
                raise InputError(
                    f"--dask {self._address}: a worker cannot load tn_fairseq ({_reason(error)}); start the workers in "
                    "an environment like this one"
                ) from None
            except (CancelledError, OSError):
                raise self._lost() from None

    def _next(self, pending: deque[tuple[list[Item], Any]]) -> Iterator[Result]:
        batch, future = pending.popleft()
        try:
            results = self._result(future)
        except self._dask.KilledWorker:
            results = self._one_by_one(batch, [other for _, other in pending])
        yield from results

    def _one_by_one(self, batch: list[Item], others: list[Any]) -> Iterator[Result]:
        """Do a batch again, alone: Dask suspects all that lay with the killed workers."""
        for other in others:
            with suppress(self._dask.KilledWorker, InputError):  # its turn will come
                self._result(other)
        for item in batch:
            try:
                yield from self._result(self._submit_batch([item]))
            except self._dask.KilledWorker:
                raise _killer(item, "give each of them more memory") from None

    def _count_threads(self) -> None:
        """Look from time to time how many there are; raises InputError where there have been none for long."""
        now = time.monotonic()
        if now < self._counted + POLL_SECONDS:
            return
        try:
            threads = sum(self._client.nthreads().values())
        except (OSError, RuntimeError):  # depending on what has been closed so far
            raise self._lost() from None
        self._counted = now
        if threads:
            self._threads, self._seen, self._warned = threads, now, False
        elif now > self._seen + PATIENCE_SECONDS:
            raise InputError(
                f"--dask {self._address}: no worker has been left for {PATIENCE_SECONDS} s; start some, then this again"
            )
        elif not self._warned:
            self._warned = True
            _warn(f"no worker is left; waiting for new ones: dask worker {self._address}")

    def _lost(self) -> InputError:
        return InputError(f"--dask {self._address}: the scheduler is gone; start the cluster and this again")


class _Shared:
    """A function and versions, pickled: what all tasks of Dask share. To unpickle it again gives what they call."""

    def __init__(self, content: bytes):
        self._content = content

    def __reduce__(self):
        return _load_shared, (self._content,)


@lru_cache(maxsize=1)
def _load_shared(content: bytes) -> Callable[[bytes], list]:
    function, expected = pickle.loads(content)
    here = _versions()
    other = [name for name in here if here[name] != expected[name]]
    if other:
        there, expected = (", ".join(f"{name} {of[name]}" for name in other) for of in (here, expected))
        raise InputError(
            f"a Dask worker has {there} where this machine has {expected}; start the workers in an environment like "
            "this one"
        )
    return partial(_map_pickled, function)


def _map_pickled(function: Callable[[Item], Result], batch: bytes) -> list[Result]:
    return list(map(function, pickle.loads(batch)))


@cache
def _versions() -> dict[str, str]:
    versions = {"Python": "{}.{}".format(*sys.version_info)}
    for name in ("tn_fairseq", "tokenizers", "sentencepiece"):
        versions[name] = metadata.version(name)
    return versions


def _killer(item: Any, mend: str) -> InputError:
    return InputError(
        f"{item}: a worker was killed each time it had it (out of memory?); look at the text there, or {mend}"
    )


def _reason(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _warn(message: str) -> None:
    tqdm.write(f"warning: {message}", file=sys.stderr)
