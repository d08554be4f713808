"""Engines: the same results in the same order from this process, from local ones and from Dask, whoever is killed."""

import multiprocessing
import operator
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tn_fairseq import engines
from tn_fairseq.engines import ATTEMPTS, ITEMS_PER_TASK, LOOK_AHEAD, DaskCluster, LocalProcesses, ThisProcess
from tn_fairseq.errors import InputError

pytestmark = pytest.mark.xdist_group("engines")  # they share clusters
VERSIONS = engines._versions()
# What Dask's workers are given must be importable there: items are calls of Python's own functions.
call = operator.call
SQUARES = [partial(pow, number, 2) for number in range(100)]


def squares(count: int) -> list[int]:
    return [number**2 for number in range(count)]


def running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


def wait_until(condition, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


class Consumed:
    """Items, and how many of them were ahead of the results at most."""

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


def slow_first(number: int) -> int:
    time.sleep(0.2 if number == 0 else 0.001 * (number % 3))
    return number**2


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 4, 60])
def test_local_processes_keep_the_order_and_look_ahead_no_further_than_told(workers, count):
    consumed = Consumed(range(count))
    with LocalProcesses(slow_first, workers) as engine:
        assert consumed.run(engine) == squares(count)
        assert consumed.run(engine) == squares(count)  # the next split
    assert consumed.ahead <= LOOK_AHEAD * workers


def test_items_on_their_way_may_be_larger_than_a_pipe_holds():
    with LocalProcesses(bytes, 3) as engine:
        assert [len(result) for result in engine.map(bytes(300_000) for _ in range(20))] == [300_000] * 20


@pytest.mark.parametrize("open_engine", [ThisProcess, partial(LocalProcesses, workers=2)])
def test_an_error_comes_at_its_turn(open_engine):
    items = [*SQUARES[:20], partial(int, "x"), partial(abs, "y")]
    results = []
    with open_engine(call) as engine, pytest.raises(ValueError, match="invalid literal") as caught:
        for result in engine.map(items):
            results.append(result)
    assert results == squares(20)
    assert open_engine is ThisProcess or "in _work" in str(caught.value.__cause__)  # where it happened in the worker


def kill_once(flag: Path, number: int) -> int:
    if number == 7 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


@pytest.mark.parametrize("workers", [1, 3])
def test_a_killed_worker_costs_time_and_no_result(tmp_path, workers, capsys):
    with LocalProcesses(partial(kill_once, tmp_path / "killed"), workers) as engine:
        assert list(engine.map(range(30))) == squares(30)
    assert (tmp_path / "killed").exists()
    assert capsys.readouterr().err == "warning: a worker was killed (out of memory?); what it had is done again\n"


def children() -> list[int]:
    return [process.pid for process in multiprocessing.active_children()]


def test_all_workers_killed_again_and_again():
    with LocalProcesses(slow_first, 2) as engine:
        results = []
        for result in engine.map(range(40)):
            results.append(result)
            if len(results) % 10 == 5:
                for pid in children():
                    os.kill(pid, signal.SIGKILL)
    assert results == squares(40)


def kill_always(tries: Path, number: int) -> int:
    if number == 7:
        with open(tries, "a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def test_an_item_that_always_kills_is_given_up_and_named(tmp_path):
    results = []
    with (
        LocalProcesses(partial(kill_always, tmp_path / "tries"), 2) as engine,
        pytest.raises(InputError, match=r"^7: a worker was killed .* fewer than 2 --workers$"),
    ):
        for result in engine.map(range(30)):
            results.append(result)
    assert results == squares(7)
    assert len((tmp_path / "tries").read_text()) == ATTEMPTS


def test_leaving_ends_the_workers():
    with LocalProcesses(time.sleep, 2) as engine:
        results = engine.map([0] * 100)
        assert next(results) is None
        pids = children()
        assert len(pids) == 2
    assert not any(map(running, pids))


def start_process(function) -> tuple[multiprocessing.Process, object]:
    """A process that calls the function with a queue, and the first that comes through it."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=function, args=(queue,))
    process.start()
    return process, queue.get(timeout=20)


def work_for_ever(pids: multiprocessing.Queue) -> None:
    with LocalProcesses(time.sleep, 2) as engine:
        results = engine.map([0.01] * 1_000_000)
        next(results)
        pids.put(children())
        list(results)


def test_workers_end_when_their_parent_is_killed():
    parent, pids = start_process(work_for_ever)
    assert len(pids) == 2 and all(map(running, pids))
    parent.kill()
    parent.join()
    wait_until(lambda: not any(map(running, pids)))


def start_too_many(queue: multiprocessing.Queue) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    try:
        list(LocalProcesses(abs, 100).map([1]))
    except InputError as error:
        queue.put(str(error))


def test_more_processes_than_the_machine_allows():
    process, message = start_process(start_too_many)
    assert message == "100 processes cannot be started (Too many open files); try fewer --workers"
    process.join()


# Dask


@pytest.fixture(scope="module")
def make_cluster():
    """Real clusters: a scheduler and processes, started by Dask itself."""
    distributed = pytest.importorskip("distributed")
    import dask

    clusters = []

    def make(workers: int, allowed_failures: int = 3, **options):
        with dask.config.set({"distributed.scheduler.allowed-failures": allowed_failures}):
            cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, **options
            )
        clusters.append(cluster)
        return cluster

    yield make
    for cluster in clusters:
        cluster.close()


@pytest.fixture(scope="module")
def cluster(make_cluster):
    # One killed worker is enough to suspect what lay with it.
    return make_cluster(2, allowed_failures=0)


@pytest.fixture
def impatient(monkeypatch):
    """Where nothing comes, do not wait for it long."""
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 2)
    monkeypatch.setattr(engines, "ANSWER_SECONDS", 5)
    monkeypatch.setattr(engines, "PATIENCE_SECONDS", 1)
    monkeypatch.setattr(engines, "POLL_SECONDS", 0.2)


def test_dask_keeps_the_order_and_looks_ahead_no_further_than_told(cluster):
    consumed = Consumed(SQUARES)
    with DaskCluster(call, cluster.scheduler_address) as engine:
        assert consumed.run(engine) == squares(100)
        assert list(engine.map([])) == []
    assert consumed.ahead <= ITEMS_PER_TASK * (LOOK_AHEAD * 2 + 1)
    assert consumed.ahead < 100
    with DaskCluster(call, cluster.scheduler_address) as engine, pytest.raises(ValueError, match="invalid literal"):
        list(engine.map([*SQUARES, partial(int, "x")]))


def test_dask_workers_with_other_versions(cluster, monkeypatch):
    monkeypatch.setattr(engines, "_versions", lambda: {**VERSIONS, "Python": "3.99", "tokenizers": "0.1"})
    here = f"Python 3.{sys.version_info.minor}, tokenizers {VERSIONS['tokenizers']}"
    with (
        DaskCluster(call, cluster.scheduler_address) as engine,
        pytest.raises(InputError, match=f"a Dask worker has {here} where this machine has Python 3.99, tokenizers 0.1"),
    ):
        list(engine.map(SQUARES))


def test_a_dask_worker_is_no_scheduler(cluster):
    with pytest.raises(InputError, match="no Dask scheduler there .but a Worker"):
        DaskCluster(call, cluster.workers[1].worker_address)


def test_a_killed_dask_worker_costs_time_and_no_result(cluster):
    items = [partial(subprocess.getoutput, f"sleep 0.05; echo {number}") for number in range(100)]
    results = []
    with DaskCluster(call, cluster.scheduler_address) as engine:
        for result in engine.map(items):
            results.append(result)
            if len(results) == 20:
                killed = cluster.workers[0].pid
                os.kill(killed, signal.SIGKILL)
    assert results == [str(number) for number in range(100)]
    assert not running(killed)


def test_dask_names_the_item_that_kills_though_others_are_suspected(cluster):
    items = [*SQUARES[:20], partial(os._exit, 9), *SQUARES[20:60]]
    results = []
    with (
        DaskCluster(call, cluster.scheduler_address) as engine,
        pytest.raises(InputError, match=r"^functools\.partial\(<built-in function _exit>, 9\): a worker was killed"),
    ):
        for result in engine.map(items):
            results.append(result)
    assert results == squares(20)


def test_dask_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'tn_fairseq\[dask\]'$"):
        DaskCluster(call, "tcp://127.0.0.1:8786")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("tcp://127.0.0.1:1", "Timed out trying to connect"),
        ("tcp://127.0.0.1:{mute}", "no answer"),
        ("scheduler", "missing port number"),
        ("carrier://pigeon:8786", "unknown address scheme"),
    ],
)
def test_no_dask_scheduler_there(address, reason, impatient):
    pytest.importorskip("distributed")
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = address.format(mute=mute.getsockname()[1])
        with pytest.raises(InputError, match=f"^--dask {address}: no Dask scheduler there .*{reason}") as caught:
            DaskCluster(call, address)
    assert "\n" not in str(caught.value)


def test_a_dask_cluster_without_workers(make_cluster, impatient):
    with pytest.raises(InputError, match=r"the cluster has no workers; start some: dask worker tcp://"):
        DaskCluster(call, make_cluster(0).scheduler_address)


def test_dask_workers_without_this_package(make_cluster):
    cluster = make_cluster(1, preload=["import sys; sys.modules['tn_fairseq'] = None"])
    with (
        DaskCluster(call, cluster.scheduler_address) as engine,
        pytest.raises(InputError, match="a worker cannot load tn_fairseq .*; start the workers in an environment like"),
    ):
        list(engine.map(SQUARES))


def scaled(cluster, *workers: int):
    """Items, with the first of which the cluster is scaled to other numbers of workers."""
    for item in SQUARES:
        if item is SQUARES[0]:
            for count in workers:
                cluster.scale(count)
                wait_until(lambda count=count: len(cluster.scheduler.workers) == count)
        yield item


def test_a_dask_worker_that_comes_later_is_given_the_work(make_cluster):
    cluster = make_cluster(1)
    with DaskCluster(call, cluster.scheduler_address) as engine:
        assert list(engine.map(scaled(cluster, 0, 1))) == squares(100)


def test_no_dask_worker_is_left(make_cluster, impatient, capsys):
    cluster = make_cluster(1)
    with (
        DaskCluster(call, cluster.scheduler_address) as engine,
        pytest.raises(InputError, match="no worker has been left for 1 s; start some, then this again"),
    ):
        list(engine.map(scaled(cluster, 0)))
    address = cluster.scheduler_address
    assert capsys.readouterr().err == f"warning: no worker is left; waiting for new ones: dask worker {address}\n"


def test_the_dask_scheduler_goes_away(make_cluster, impatient, capfd):
    def items():
        cluster.close()
        yield from SQUARES

    cluster = make_cluster(1)
    address = cluster.scheduler_address
    capfd.readouterr()
    with DaskCluster(call, address) as engine:
        with pytest.raises(InputError, match=f"^--dask {address}: the scheduler is gone; start the cluster and this"):
            list(engine.map(items()))
        assert "Error" not in capfd.readouterr().err
