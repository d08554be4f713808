#!/usr/bin/env python3
"""The cost of binarizing a billion tokens, and estimates for corpora that are too large to try.

    python examples/benchmark_scale.py --text wiki.txt --tokenizer vocab.txt --output scale

The script binarizes several copies of the text, with processes and with as many workers of a local Dask cluster. It
measures the CPU time of the workers and that of the single process that reads the text, sends it to the workers and
writes the output. More workers cannot make that process faster. The script prints, and writes to OUTPUT.json, the cost
of a billion tokens. It also prints the estimated time and disk space for known corpora.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmark import circumstances, results_name, show, write_results
from benchmark_preprocessing import read_text
from tqdm import tqdm

# gigabytes of text, from the RoBERTa paper
CORPORA = {"Wikipedia + BooksCorpus": 16, "OpenWebText": 38, "100 times both": 5400}
WORKERS = (2, 16, 128)
BILLION = 1e9
ENGINES = ("processes", "dask")


def main() -> None:
    """Measure, print tables, and write them."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(*sys.argv[2:])))
        return
    args = parse_args()
    text = read_text(args.text)
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for copies in tqdm(args.copies, desc="binarizing", leave=False, disable=None):
            path = Path(folder, f"text{copies}")
            with open(path, "wb") as file:
                for _ in range(copies):
                    file.write(text)
            for engine in ENGINES:
                runs.append(run_one(engine, args.workers, path, args.tokenizer, Path(folder)))
            path.unlink()
    results = {
        **circumstances("cpu", os.cpu_count()),
        "runs": runs,
        "costs": {engine: costs([run for run in runs if run["engine"] == engine]) for engine in ENGINES},
    }
    report(results)
    write_results(results, args.output)


def parse_args() -> argparse.Namespace:
    """The command's options."""
    # imported here because it registers the plugin, which other processes that import this module must not do
    from tn_fairseq.commands.arguments import positive

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, metavar="FILE", help="UTF-8, one sentence a line")
    parser.add_argument("--tokenizer", type=Path, required=True, metavar="DIR-OR-FILE", help="as for binarize")
    parser.add_argument("--output", type=results_name, required=True, metavar="NAME", help="NAME.json is written")
    parser.add_argument("--workers", type=positive, default=os.cpu_count(), metavar="N", help="(default: all cores)")
    sizes = "copies of the text, two or more increasing numbers (default: %(default)s)"
    parser.add_argument("--copies", type=positive, nargs="+", default=[4, 16], metavar="N", help=sizes)
    args = parser.parse_args()
    if len(args.copies) < 2 or sorted(set(args.copies)) != args.copies:
        parser.error("--copies must be two or more increasing numbers")
    return args


def run_one(engine: str, workers: int, text: Path, tokenizer: Path, folder: Path) -> dict[str, Any]:
    """Measure one run in its own process, so that its peak memory is its own."""
    words = [sys.executable, __file__, "--one", engine, workers, text, tokenizer, folder]
    process = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if process.returncode:
        raise SystemExit(process.stderr.strip().splitlines()[-1])
    return json.loads(process.stdout.splitlines()[-1])


def measure(engine: str, workers: str, text: str, tokenizer: str, folder: str) -> dict[str, Any]:
    """Binarize once; return seconds, CPU time and bytes."""
    from tn_fairseq.core.errors import one_line_errors
    from tn_fairseq.tokenizers import load_tokenizer
    from tn_fairseq.tools.preprocessing.binarization import binarize

    with ExitStack() as stack:
        stack.enter_context(one_line_errors())
        loaded = load_tokenizer(tokenizer)
        where: int | str = int(workers)
        if engine == "dask":
            from distributed import LocalCluster

            cluster = LocalCluster(n_workers=int(workers), threads_per_worker=1, dashboard_address=None)
            where = stack.enter_context(cluster).scheduler_address
        valid = Path(folder, "valid")
        with open(text, "rb") as file:
            valid.write_bytes(file.readline())
        # Starting the workers takes the same time for every size and is not counted.
        before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        out = stack.enter_context(tempfile.TemporaryDirectory(dir=folder))
        counts = binarize({"train": [Path(text)], "valid": [valid]}, loaded, out, where)["train"]
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
        written = sum(Path(out, name).stat().st_size for name in ("train.bin", "train.idx"))
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "engine": engine,
        "workers": int(workers),
        "text bytes": os.path.getsize(text),
        "tokens": counts.tokens,
        "seconds": seconds,
        "writer seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "worker seconds": ended.ru_utime + ended.ru_stime,
        "written bytes": written,
        "writer peak bytes": after.ru_maxrss * 1024,
        "worker peak bytes": ended.ru_maxrss * 1024,
    }


def costs(runs: list[dict[str, Any]]) -> dict[str, float]:
    """The cost of another billion tokens, from the smallest and the largest run."""
    less, more = runs[0], runs[-1]
    tokens = (more["tokens"] - less["tokens"]) / BILLION
    return {
        name: (more[name] - less[name]) / tokens
        for name in ("text bytes", "seconds", "writer seconds", "worker seconds", "written bytes")
    }


def report(results: dict[str, Any]) -> None:
    """Print the measurements and the estimates."""
    print("measured; peak MB of the writer process and of the largest worker")
    header = ["engine", "workers", "MB of text", "M tokens", "s", "tokens/s", "writer MB", "worker MB"]
    rows = []
    for run in results["runs"]:
        numbers = [run["text bytes"] / 1e6, run["tokens"] / 1e6, run["seconds"]]
        rates = [run["tokens"] / run["seconds"], run["writer peak bytes"] / 1e6, run["worker peak bytes"] / 1e6]
        row = [run["engine"], str(run["workers"]), *(f"{number:.1f}" for number in numbers)]
        rows.append(row + [f"{rate:,.0f}" for rate in rates])
    show(header, rows)

    print("\nanother billion tokens, in minutes of one core; workers that keep the writer busy")
    rows = []
    for engine, cost in results["costs"].items():
        busy = cost["worker seconds"] / cost["writer seconds"]
        minutes = [cost[f"{who} seconds"] / 60 for who in ("worker", "writer")]
        size = [cost["text bytes"] / BILLION, cost["written bytes"] / BILLION]
        rows.append([engine, *(f"{number:.1f}" for number in (*minutes, busy, *size))])
    show(["engine", "workers' min", "writer's min", "workers", "GB of text", "GB written"], rows)

    print("\nestimated hours by number of workers, with the writer's limit")
    rows = []
    for corpus, gigabytes in CORPORA.items():
        for engine, cost in results["costs"].items():
            billions = gigabytes * BILLION / cost["text bytes"]
            hours = [billions * max(cost["worker seconds"] / n, cost["writer seconds"]) / 3600 for n in WORKERS]
            written = billions * cost["written bytes"] / BILLION
            numbers = [f"{hour:,.2f}" for hour in hours]
            rows.append([corpus, engine, f"{gigabytes:,}", f"{billions:,.1f}", *numbers, f"{written:,.0f}"])
    show(["corpus", "engine", "GB", "B tokens", *(f"{n} workers" for n in WORKERS), "GB written"], rows)


if __name__ == "__main__":
    main()
