"""The engine that uses the workers of a Dask cluster."""

import asyncio
import logging
import math
import operator
import pickle
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import cache, lru_cache, partial, reduce
from itertools import islice
from typing import Any, Generic

from ....core.errors import InputError, first_line
from ....core.packages import require, version_of
from .local import LOOK_AHEAD, Item, Result, killed_each_time, warn

CONNECT_SECONDS = 10  # to connect to a scheduler, and for a first worker to appear
ANSWER_SECONDS = 20  # longer than CONNECT_SECONDS, because a connection timeout has the better error message
PATIENCE_SECONDS = 600  # for a new worker if none is left
POLL_SECONDS = 5
# Scheduler and client spend a few milliseconds per task; this much text takes half a second.
ITEMS_PER_TASK = 8
SAME_ENVIRONMENT = "start the workers in an environment like this one"


class DaskCluster(Generic[Item, Result]):
    """The workers of an existing Dask cluster; items and results are sent, so workers need no access to the files.

    Raises InputError if there is no scheduler, if it has no workers, if workers lack tn_fairseq or have other versions
    of the packages that the results depend on, and if the cluster is lost.
    """

    def __init__(self, function: Callable[[Item], Result], address: str):
        distributed = require("distributed", "--dask", "dask")
        self._dask, self._address = distributed, address
        self._client: Any = None
        self._threads, self._warned, self._counted = 0, False, -math.inf
        self._log_level = logging.root.manager.disable
        logging.disable()  # our one-line error is enough
        try:
            self._find_workers()
            with warnings.catch_warnings(action="ignore"):  # the workers check the versions that matter
                self._client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            self._seen = time.monotonic()
            self._count_threads()
            # A task's result, not scattered data: Dask computes it again if all workers that hold it are killed.
            shared = pickle.dumps((function, _versions()))
            self._sent = self._submit(bytes, pickle.dumps(partial(_map_batch, shared)))
        except BaseException:
            self.close()
            raise

    def map(self, items: Iterable[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items; raises InputError for an item that kills its workers."""
        items = iter(items)
        pending: deque[tuple[list[Item], Any]] = deque()
        while batch := list(islice(items, ITEMS_PER_TASK)):
            pending.append((batch, self._submit_batch(batch)))
            self._count_threads()
            while len(pending) > LOOK_AHEAD * self._threads:
                yield from self._next(pending)
        while pending:
            yield from self._next(pending)

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
        logging.disable(self._log_level)

    def _find_workers(self) -> None:
        """Ask the scheduler for workers without a client, because a client would keep retrying in the background."""
        arguments = self._dask.Security().get_connection_args("client")
        deadline = time.monotonic() + CONNECT_SECONDS

        async def find() -> dict[str, Any]:
            async with self._dask.rpc(self._address, timeout=CONNECT_SECONDS, connection_args=arguments) as scheduler:
                while True:
                    identity = await asyncio.wait_for(scheduler.identity(), ANSWER_SECONDS)
                    if identity["type"] != "Scheduler":
                        raise ValueError(f"it is a {identity['type']}")
                    if identity["workers"] or time.monotonic() > deadline:
                        return identity["workers"]
                    await asyncio.sleep(0.2)

        try:
            workers = asyncio.run(find())
        except Exception as error:  # there are many kinds of invalid addresses
            reason = "no answer" if isinstance(error, TimeoutError) else first_line(error)
            advice = "give the address that `dask scheduler` prints"
            raise self._error(f"no Dask scheduler there ({reason}); {advice}") from None
        if not workers:
            raise self._error(f"the cluster has no workers; start some with: dask worker {self._address}")

    def _submit_batch(self, batch: list[Item]) -> Any:
        # This is loads(sent)(batch), written so that the task itself unpickles to Python built-ins. The scheduler then
        # does not need tn_fairseq, and on a worker without it the task fails. Otherwise we would wait forever.
        return self._submit(reduce, operator.call, [pickle.loads, self._sent, pickle.dumps(batch)])

    def _submit(self, function: Callable, *arguments: Any) -> Any:
        try:
            with warnings.catch_warnings(action="ignore"):  # Dask warns about large vocabularies
                return self._client.submit(function, *arguments, pure=False)
        except self._dask.client.ClosedClientError:
            raise self._lost() from None

    def _result(self, future: Any) -> list[Result]:
        while True:
            try:
                return future.result(timeout=POLL_SECONDS)
            except TimeoutError:
                self._count_threads()
            except (ImportError, AttributeError) as error:  # AttributeError: another version of it
                problem = f"a worker cannot load tn_fairseq ({first_line(error)})"
                raise self._error(f"{problem}; {SAME_ENVIRONMENT}") from None
            except (CancelledError, OSError):
                raise self._lost() from None

    def _next(self, pending: deque[tuple[list[Item], Any]]) -> Iterator[Result]:
        """The results of the first batch; if it is blamed for killed workers, those of its items one by one."""
        batch, future = pending.popleft()
        try:
            yield from self._result(future)
            return
        except self._dask.KilledWorker:  # Dask blames all tasks that were on the workers: wait for the others
            for _, other in pending:
                with suppress(self._dask.KilledWorker, InputError):  # handled when its turn comes
                    self._result(other)
        for item in batch:
            try:
                yield from self._result(self._submit_batch([item]))
            except self._dask.KilledWorker:
                raise killed_each_time(item, "give each worker more memory") from None

    def _count_threads(self) -> None:
        """Update the number of threads every few seconds; raises InputError if there have been none for too long."""
        now = time.monotonic()
        if now < self._counted + POLL_SECONDS:
            return
        try:
            threads = sum(self._client.nthreads().values())
        except (OSError, RuntimeError):  # which one depends on what is already closed
            raise self._lost() from None
        self._counted = now
        if threads:
            self._threads, self._seen, self._warned = threads, now, False
        elif now > self._seen + PATIENCE_SECONDS:
            raise self._error(f"no workers for {PATIENCE_SECONDS} s; start some and run the same command again")
        elif not self._warned:
            self._warned = True
            warn(f"no workers left; waiting for new ones: dask worker {self._address}")

    def _error(self, problem: str) -> InputError:
        return InputError(f"--dask {self._address}: {problem}")

    def _lost(self) -> InputError:
        return self._error("lost the scheduler; restart the cluster and run the same command again")


def _map_batch(shared: bytes, batch: bytes) -> list:
    """The results of a pickled batch, in a worker; ``shared`` is the pickled function and the versions it needs."""
    return list(map(_load_shared(shared), pickle.loads(batch)))


@lru_cache(maxsize=1)
def _load_shared(shared: bytes) -> Callable[[Item], Result]:
    function, expected = pickle.loads(shared)
    here = _versions()
    other = [name for name in {**expected, **here} if here.get(name) != expected.get(name)]
    if other:
        there, expected = (", ".join(f"{name} {of.get(name, 'missing')}" for name in other) for of in (here, expected))
        raise InputError(f"a Dask worker has {there}, but this machine has {expected}; {SAME_ENVIRONMENT}")
    return function


@cache
def _versions() -> dict[str, str]:
    names = ("tn_fairseq", "tokenizers", "sentencepiece", "sentencex")
    versions = {name: version for name in names if (version := version_of(name))}
    return {"Python": "{}.{}".format(*sys.version_info), **versions}
