"""Dask: the same results in the same order, even if workers are killed, and one-line errors."""

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from functools import partial

import pyarrow as pa
import pytest
from engine_checks import SQUARES, Consumed, call, dask_cluster, map_until_refused, running, squares, wait_until
from files import contents, refused, write
from pyarrow import parquet
from tokenizer_folders import TEXT, bert_folder

from tn_fairseq.tokenizers import load_tokenizer
from tn_fairseq.tools.preprocessing import binarization, text
from tn_fairseq.tools.preprocessing.engines import dask as engine_of_dask
from tn_fairseq.tools.preprocessing.engines.dask import ITEMS_PER_TASK, DaskCluster
from tn_fairseq.tools.preprocessing.engines.local import LOOK_AHEAD

pytestmark = pytest.mark.xdist_group("engines")  # these tests share clusters


@pytest.fixture(scope="module")
def make_cluster():
    """Clusters that are closed at the end."""
    with ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(dask_cluster(*args, **options))


@pytest.fixture(scope="module")
def cluster(make_cluster):
    # One killed worker is enough to blame its tasks.
    return make_cluster(2, allowed_failures=0)


@pytest.fixture(scope="module")
def address(cluster):
    return cluster.scheduler_address


@pytest.fixture
def impatient(monkeypatch):
    """Short timeouts for tests in which nothing happens."""
    for name, seconds in {"CONNECT": 1, "ANSWER": 2, "PATIENCE": 1, "POLL": 0.2}.items():
        monkeypatch.setattr(engine_of_dask, f"{name}_SECONDS", seconds)


def test_dask_keeps_the_order_and_limits_the_look_ahead(address):
    consumed = Consumed(SQUARES)
    with closing(DaskCluster(call, address)) as engine:
        assert consumed.run(engine) == squares(100)
        assert list(engine.map([])) == []
        with pytest.raises(ValueError, match="invalid literal"):
            list(engine.map([*SQUARES, partial(int, "x")]))
    assert consumed.ahead <= ITEMS_PER_TASK * (LOOK_AHEAD * 2 + 1) < 100


def test_a_corpus_is_binarized_as_without_dask(address, tmp_path, monkeypatch):
    monkeypatch.setattr(text, "CHUNK_BYTES", 100)
    tokenizer = load_tokenizer(bert_folder(tmp_path / "tokenizer"))
    records = "".join(json.dumps({"text": text}) + "\n" for text in TEXT * 20)
    parquet.write_table(pa.table({"text": TEXT * 20}), tmp_path / "text.parquet")
    inputs = [
        write(tmp_path / "text", "\n\n".join(TEXT * 20)),
        write(tmp_path / "text.jsonl.gz", gzip.compress(records.encode())),
    ]
    splits = {"train": [*inputs, tmp_path / "text.parquet"]}
    for folder, workers in ((tmp_path / "dask", address), (tmp_path / "here", 1)):
        binarization.binarize(splits, tokenizer, folder, workers, shards=3)
    assert contents(tmp_path / "dask") == contents(tmp_path / "here")


def test_dask_workers_with_other_versions(address, monkeypatch):
    versions = engine_of_dask._versions()
    monkeypatch.setattr(engine_of_dask, "_versions", lambda: {**versions, "Python": "3.99", "tokenizers": "0.1"})
    here = f"Python 3.{sys.version_info.minor}, tokenizers {versions['tokenizers']}"
    with closing(DaskCluster(call, address)) as engine:
        message = map_until_refused(engine, SQUARES)[1]
    assert f"a Dask worker has {here}, but this machine has Python 3.99, tokenizers 0.1" in message


def test_no_dask_or_no_scheduler_there(cluster, impatient, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        for address, reason in (
            (f"tcp://127.0.0.1:{mute.getsockname()[1]}", "no answer"),
            ("scheduler", "missing port number"),
            (cluster.workers[1].worker_address, "it is a Worker"),
        ):
            message = refused(DaskCluster, call, address)
            assert message.startswith(f"--dask {address}: no Dask scheduler there ") and reason in message
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "pip install 'tn_fairseq[dask]'" in refused(DaskCluster, call, "tcp://127.0.0.1:8786")


def test_a_killed_dask_worker_loses_no_results(cluster, address):
    items = [partial(subprocess.getoutput, f"sleep 0.03; echo {number}") for number in range(60)]
    results = []
    with closing(DaskCluster(call, address)) as engine:
        for result in engine.map(items):
            results.append(result)
            if len(results) == 10:
                killed = cluster.workers[0].pid
                os.kill(killed, signal.SIGKILL)
    assert results == [str(number) for number in range(60)]
    assert not running(killed)


def test_dask_names_the_item_that_kills_even_if_it_blames_others(address):
    with closing(DaskCluster(call, address)) as engine:
        items = [*SQUARES[:20], partial(os._exit, 9), *SQUARES[20:60]]
        results, message = map_until_refused(engine, items)
    item = "functools.partial(<built-in function _exit>, 9)"
    assert message.startswith(f"{item}: every worker that processed it was killed")
    assert results == squares(20)


def test_dask_workers_without_this_package(make_cluster):
    cluster = make_cluster(1, preload=["import sys; sys.modules['tn_fairseq'] = None"])
    with closing(DaskCluster(call, cluster.scheduler_address)) as engine:
        message = map_until_refused(engine, SQUARES)[1]
    assert "a worker cannot load tn_fairseq (" in message and "start the workers in an environment like" in message


def scaled(cluster, *workers: int):
    """Items; before the first one, the cluster is scaled to each number of workers in turn."""
    for count in workers:
        cluster.scale(count)
        wait_until(lambda count=count: len(cluster.scheduler.workers) == count)
    yield from SQUARES


def test_workers_or_the_scheduler_are_lost(make_cluster, impatient, capfd):
    cluster = make_cluster(1)
    address = cluster.scheduler_address
    with closing(DaskCluster(call, address)) as engine:
        assert list(engine.map(scaled(cluster, 0, 1))) == squares(100)  # a new worker gets the work
        capfd.readouterr()
        message = map_until_refused(engine, scaled(cluster, 0))[1]
    assert "no workers for 1 s; start some and run the same command again" in message
    assert capfd.readouterr().err == f"warning: no workers left; waiting for new ones: dask worker {address}\n"
    assert "the cluster has no workers" in refused(DaskCluster, call, address)

    def items():
        cluster.close()
        yield from SQUARES

    cluster.scale(1)
    wait_until(lambda: len(cluster.scheduler.workers) == 1)
    with closing(DaskCluster(call, address)) as engine:
        capfd.readouterr()
        message = map_until_refused(engine, items())[1]
        assert message.startswith(f"--dask {address}: lost the scheduler")
        assert "Error" not in capfd.readouterr().err
