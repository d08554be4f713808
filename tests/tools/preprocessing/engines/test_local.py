"""This process and local processes: the same results in the same order, even if workers are killed."""

import multiprocessing
import os
import resource
import signal
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from engine_checks import SQUARES, Consumed, call, map_until_refused, running, squares, wait_until
from files import refused, write

from tn_fairseq.core.errors import InputError
from tn_fairseq.tools.preprocessing.engines import local, map_chunks, open_engine
from tn_fairseq.tools.preprocessing.engines.local import ATTEMPTS, LOOK_AHEAD, LocalProcesses


def slow_first(number: int) -> int:
    time.sleep(0.1 if number == 0 else 0.001 * (number % 3))
    return number**2


@pytest.mark.parametrize(("workers", "count"), [(1, 4), (2, 0), (5, 60)])
def test_local_processes_keep_the_order_and_limit_the_look_ahead(workers, count):
    consumed = Consumed(range(count))
    with closing(LocalProcesses(slow_first, workers)) as engine:
        assert consumed.run(engine) == squares(count)
        assert consumed.run(engine) == squares(count)  # the next split
    assert consumed.ahead <= LOOK_AHEAD * workers


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_is_raised_at_its_turn(workers):
    results = []
    with open_engine(call, workers) as map_all, pytest.raises(ValueError, match="invalid literal") as caught:
        for result in map_all([*SQUARES[:20], partial(int, "x"), partial(abs, "y")]):
            results.append(result)
    assert results == squares(20)
    assert workers == 1 or "in _work" in str(caught.value.__cause__)  # where it happened in the worker


def killed_at_7(kills: Path, times: int, number: int) -> int:
    """The square of a number, but the first ``times`` workers that get the number 7 are killed."""
    if number == 7 and len(kills.read_text()) < times:
        with open(kills, "a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return slow_first(number)


@pytest.fixture
def kills(tmp_path) -> Path:
    return write(tmp_path / "kills", "")


def children() -> list[int]:
    return [process.pid for process in multiprocessing.active_children()]


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_workers_lose_no_results(kills, workers, capsys):
    with closing(LocalProcesses(partial(killed_at_7, kills, 1), workers)) as engine:
        assert list(engine.map(range(30))) == squares(30)
        assert kills.read_text() == "x"
        assert capsys.readouterr().err == "warning: a worker was killed (out of memory?); its work is retried\n"
        results = []
        for result in engine.map(range(40)):
            results.append(result)
            if len(results) % 10 == 5:
                for pid in children():
                    os.kill(pid, signal.SIGKILL)
    assert results == squares(40)


def test_an_item_that_always_kills_is_reported(kills):
    with closing(LocalProcesses(partial(killed_at_7, kills, 99), 2)) as engine:
        results, message = map_until_refused(engine, range(30))
    assert message.startswith("7: every worker that processed it was killed ")
    assert message.endswith(" fewer than 2 --workers")
    assert results == squares(7)
    assert len(kills.read_text()) == ATTEMPTS
    message = refused(map_chunks, partial(killed_at_7, kills, 99), range(70), 2, "swap", "texts")
    assert message.startswith("texts 1 to 64: every worker that processed it was killed")


def start_process(function) -> tuple[multiprocessing.Process, object]:
    """A process that calls the function with a queue, and the first item from the queue."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=function, args=(queue,))
    process.start()
    return process, queue.get()


def work_forever(pids: multiprocessing.Queue) -> None:
    with closing(LocalProcesses(time.sleep, 2)) as engine:
        results = engine.map([0.01] * 1_000_000)
        next(results)
        pids.put(children())
        list(results)


def test_workers_exit_with_the_engine_and_when_their_parent_is_killed():
    with closing(LocalProcesses(time.sleep, 2)) as engine:
        next(engine.map([0] * 100))
        pids = children()
        assert len(pids) == 2
    assert not any(map(running, pids))
    parent, pids = start_process(work_forever)
    assert len(pids) == 2 and all(map(running, pids))
    parent.kill()
    parent.join()
    wait_until(lambda: not any(map(running, pids)))


def is_interrupted(_) -> bool:
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return True
    return False


@pytest.fixture
def handle():
    """Set handlers of signals for one test."""
    before = []
    yield lambda number, handler: before.append((number, signal.signal(number, handler)))
    for number, handler in before:
        signal.signal(number, handler)


def test_workers_ignore_interrupts(handle):
    handle(signal.SIGINT, signal.default_int_handler)  # a shell may have started the tests without it
    with closing(LocalProcesses(is_interrupted, 2)) as engine:
        assert list(engine.map(range(10))) == [False] * 10
    assert is_interrupted(0)  # in this process it is as usual


def test_workers_that_wait_for_a_killed_one_end_with_it(handle, monkeypatch, capsys):
    """As if it was killed while it wrote a result, and the others had not yet given up this process's handler."""
    handle(signal.SIGTERM, lambda *_: None)
    monkeypatch.setattr(local, "_prepare_worker", lambda function: setattr(local, "_function", function))
    results = []
    with closing(LocalProcesses(abs, 2)) as engine:
        assert list(engine.map([0])) == [0]
        workers = list(engine._pool._processes.values())
        engine._pool._result_queue._wlock.acquire()  # nobody releases it
        work = threading.Thread(target=lambda: results.extend(engine.map([-1, -2])), daemon=True)
        work.start()
        os.kill(workers[0].pid, signal.SIGKILL)
        work.join()
        for worker in workers:
            worker.kill()
    assert results == [1, 2]
    assert "a worker was killed" in capsys.readouterr().err


def start_too_many(more_files: int, queue: multiprocessing.Queue) -> None:
    # the lowest free number, because files of earlier tests may still be open
    with open(os.devnull) as file:
        limit = file.fileno() + more_files
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    try:
        list(LocalProcesses(abs, 100).map([1]))
    except InputError as error:
        queue.put(str(error))


@pytest.mark.parametrize("more_files", [0, 30])  # too few for the pool, or for its processes
def test_more_processes_than_the_machine_allows(more_files):
    process, message = start_process(partial(start_too_many, more_files))
    assert message == "100 processes cannot be started (Too many open files); reduce --workers"
    process.join()
