"""Dask: the same results in the same order, even if workers are killed, and one-line errors."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from functools import partial

import pytest
from engine_checks import SQUARES, Consumed, call, dask_cluster, running, squares, wait_until

from tn_fairseq.errors import InputError
from tn_fairseq.preprocessing.engines import dask as engine_of_dask
from tn_fairseq.preprocessing.engines.base import LOOK_AHEAD
from tn_fairseq.preprocessing.engines.dask import ITEMS_PER_TASK, DaskCluster

pytestmark = pytest.mark.xdist_group("engines")  # these tests share clusters
VERSIONS = engine_of_dask._versions()


@pytest.fixture(scope="module")
def make_cluster():
    """Clusters that are closed at the end."""
    with ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(dask_cluster(*args, **options))


@pytest.fixture(scope="module")
def cluster(make_cluster):
    # One killed worker is enough to blame its tasks.
    return make_cluster(2, allowed_failures=0)


@pytest.fixture
def impatient(monkeypatch):
    """Short timeouts for tests in which nothing happens."""
    monkeypatch.setattr(engine_of_dask, "CONNECT_SECONDS", 2)
    monkeypatch.setattr(engine_of_dask, "ANSWER_SECONDS", 5)
    monkeypatch.setattr(engine_of_dask, "PATIENCE_SECONDS", 1)
    monkeypatch.setattr(engine_of_dask, "POLL_SECONDS", 0.2)


def test_dask_keeps_the_order_and_limits_the_look_ahead(cluster):
    consumed = Consumed(SQUARES)
    with DaskCluster(call, cluster.scheduler_address) as engine:
        assert consumed.run(engine) == squares(100)
        assert list(engine.map([])) == []
    assert consumed.ahead <= ITEMS_PER_TASK * (LOOK_AHEAD * 2 + 1)
    assert consumed.ahead < 100
    with DaskCluster(call, cluster.scheduler_address) as engine, pytest.raises(ValueError, match="invalid literal"):
        list(engine.map([*SQUARES, partial(int, "x")]))


def test_dask_workers_with_other_versions(cluster, monkeypatch):
    monkeypatch.setattr(engine_of_dask, "_versions", lambda: {**VERSIONS, "Python": "3.99", "tokenizers": "0.1"})
    here = f"Python 3.{sys.version_info.minor}, tokenizers {VERSIONS['tokenizers']}"
    with (
        DaskCluster(call, cluster.scheduler_address) as engine,
        pytest.raises(InputError, match=f"a Dask worker has {here}, but this machine has Python 3.99, tokenizers 0.1"),
    ):
        list(engine.map(SQUARES))


def test_a_dask_worker_is_not_a_scheduler(cluster):
    with pytest.raises(InputError, match="no Dask scheduler there .it is a Worker"):
        DaskCluster(call, cluster.workers[1].worker_address)


def test_a_killed_dask_worker_loses_no_results(cluster):
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


def test_dask_names_the_item_that_kills_even_if_it_blames_others(cluster):
    items = [*SQUARES[:20], partial(os._exit, 9), *SQUARES[20:60]]
    results = []
    with (
        DaskCluster(call, cluster.scheduler_address) as engine,
        pytest.raises(
            InputError,
            match=r"^functools\.partial\(<built-in function _exit>, 9\): every worker that processed it was killed",
        ),
    ):
        for result in engine.map(items):
            results.append(result)
    assert results == squares(20)


def test_without_dask_installed(monkeypatch):
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
    with pytest.raises(InputError, match=r"the cluster has no workers; start some with: dask worker tcp://"):
        DaskCluster(call, make_cluster(0).scheduler_address)


def test_dask_workers_without_this_package(make_cluster):
    cluster = make_cluster(1, preload=["import sys; sys.modules['tn_fairseq'] = None"])
    with (
        DaskCluster(call, cluster.scheduler_address) as engine,
        pytest.raises(InputError, match="a worker cannot load tn_fairseq .*; start the workers in an environment like"),
    ):
        list(engine.map(SQUARES))


def scaled(cluster, *workers: int):
    """Items; before the first one, the cluster is scaled to each number of workers in turn."""
    for item in SQUARES:
        if item is SQUARES[0]:
            for count in workers:
                cluster.scale(count)
                wait_until(lambda count=count: len(cluster.scheduler.workers) == count)
        yield item


def test_a_new_dask_worker_gets_the_work(make_cluster):
    cluster = make_cluster(1)
    with DaskCluster(call, cluster.scheduler_address) as engine:
        assert list(engine.map(scaled(cluster, 0, 1))) == squares(100)


def test_no_dask_workers_are_left(make_cluster, impatient, capsys):
    cluster = make_cluster(1)
    with (
        DaskCluster(call, cluster.scheduler_address) as engine,
        pytest.raises(InputError, match="no workers for 1 s; start some and run this again"),
    ):
        list(engine.map(scaled(cluster, 0)))
    address = cluster.scheduler_address
    assert capsys.readouterr().err == f"warning: no workers left; waiting for new ones: dask worker {address}\n"


def test_the_dask_scheduler_is_lost(make_cluster, impatient, capfd):
    def items():
        cluster.close()
        yield from SQUARES

    cluster = make_cluster(1)
    address = cluster.scheduler_address
    capfd.readouterr()
    with DaskCluster(call, address) as engine:
        with pytest.raises(
            InputError, match=f"^--dask {address}: lost the scheduler; restart the cluster and run this"
        ):
            list(engine.map(items()))
        assert "Error" not in capfd.readouterr().err
