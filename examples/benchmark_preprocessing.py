#!/usr/bin/env python3
"""Speed and memory of preprocessing, and how they grow with the text.

    python examples/benchmark_preprocessing.py --text wiki.txt --tokenizer vocab.txt --output preprocessing

First the complete binarize command takes turns with the bare `encode_batch` of the tokenizers library, on the same
cores and on 1, 2 and 4 copies of the text. Then synonyms build makes a table from WordNet for the tokenizer's
dictionary, and one from 400,000 random word vectors of 50 dimensions, as many as GloVe's smallest file has. The script
prints, and writes to OUTPUT.json, times, rates and the peak memory of the largest process.
"""

import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmark import circumstances, results_name, show, write_results
from tqdm import tqdm

PREPROCESS = Path(__file__).resolve().parent.parent / "preprocess"
BATCH = 1000  # lines per call of the library


class Measured(NamedTuple):
    """One run of a command."""

    seconds: float
    peak_bytes: int
    output: str


def main() -> None:
    """Measure, print tables, and write them."""
    if sys.argv[1:2] == ["--encode"]:
        print(encode(*sys.argv[2:]))
        return
    args = parse_args()
    results = circumstances("cpu", os.cpu_count())
    with tempfile.TemporaryDirectory() as folder:
        results["binarize"] = measure_binarize(args, Path(folder))
        results["synonym tables"] = measure_tables(args, Path(folder))
    write_results(results, args.output)


def parse_args() -> argparse.Namespace:
    """The command's options."""
    # imported here because it registers the plugin, which other processes that import this module must not do
    from tn_fairseq.commands.arguments import positive

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, metavar="FILE", help="UTF-8, one sentence a line")
    parser.add_argument("--tokenizer", type=Path, required=True, metavar="DIR-OR-FILE", help="as for binarize")
    parser.add_argument("--output", type=results_name, required=True, metavar="NAME", help="NAME.json is written")
    parser.add_argument("--rounds", type=positive, default=5, metavar="N", help="runs of each (default: %(default)s)")
    cores = sorted({1, os.cpu_count()})
    parser.add_argument(
        "--workers", type=positive, nargs="+", default=cores, metavar="N", help="(default: 1 and all cores)"
    )
    sizes = "copies of the text, the fewest first (default: %(default)s)"
    parser.add_argument("--sizes", type=positive, nargs="+", default=[1, 2, 4], metavar="N", help=sizes)
    parser.add_argument(
        "--vectors", type=positive, default=400_000, metavar="N", help="word vectors (default: %(default)s)"
    )
    return parser.parse_args()


def read_text(path: Path) -> bytes:
    """The text to measure with. Raises ``SystemExit`` with one line if it cannot be read."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise SystemExit(f"error: {path}: {error.strerror}; name a text file") from None
    if not text.strip():
        raise SystemExit(f"error: {path}: has no text; name a text file")
    return text


def measure_binarize(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Compare binarize with the library, for each number of cores and copies of the text."""
    text = read_text(args.text)
    texts = {times: folder / f"text{times}" for times in args.sizes}
    for times, path in texts.items():
        path.write_bytes(text * times)
    (folder / "valid").write_bytes(text.splitlines(keepends=True)[0])
    cases = [(cores, times) for cores in args.workers for times in args.sizes]
    found: dict[tuple[int, int], list[tuple[float, Measured]]] = {case: [] for case in cases}
    for _ in tqdm(range(args.rounds), desc="binarizing", leave=False, disable=None):
        for cores, times in cases:
            threads = {"RAYON_NUM_THREADS": str(cores), "TOKENIZERS_PARALLELISM": "true" if cores > 1 else "false"}
            library = run([__file__, "--encode", texts[times], args.tokenizer], threads)
            shutil.rmtree(folder / "bin", ignore_errors=True)
            command = [PREPROCESS / "binarize.py", "--train", texts[times], "--valid", folder / "valid"]
            command += ["--tokenizer", args.tokenizer, "--destdir", folder / "bin", "--workers", cores]
            found[cores, times].append((float(library.output), run(command)))
    rows, table = [], []
    for (cores, times), pairs in found.items():
        megabytes = times * len(text) / 1e6
        library = statistics.median(seconds for seconds, _ in pairs)
        ours = statistics.median(measured.seconds for _, measured in pairs)
        ratios = [seconds / measured.seconds for seconds, measured in pairs]
        row = {
            "cores": cores,
            "MB": megabytes,
            "encode_batch MB/s": megabytes / library,
            "binarize.py seconds": ours,
            "binarize.py MB/s": megabytes / ours,
            "ratio": statistics.median(ratios),
            "ratios": ratios,
            "peak bytes": max(measured.peak_bytes for _, measured in pairs),
        }
        rows.append(row)
        table.append(
            [str(cores), f"{megabytes:.1f}", f"{row['encode_batch MB/s']:.1f}", f"{ours:.2f}"]
            + [f"{row['binarize.py MB/s']:.1f}", f"{row['ratio']:.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]
            + [f"{row['peak bytes'] / 1e6:.0f}"]
        )
    print(f"\nthe complete binarize command compared with encode_batch alone; medians of {args.rounds} rounds")
    header = ["cores", "MB of text", "encode_batch MB/s", "binarize s", "MB/s", "ratio", "least to most", "peak MB"]
    show(header, table)
    further = {}
    for cores in args.workers if len(args.sizes) > 1 else []:
        smallest, *_, largest = (row for row in rows if row["cores"] == cores)
        # Starting Python and importing fairseq takes the same time for every size.
        rate = (largest["MB"] - smallest["MB"]) / (largest["binarize.py seconds"] - smallest["binarize.py seconds"])
        further[cores] = {"MB/s": rate, "ratio": rate / largest["encode_batch MB/s"]}
        print(f"{cores} cores, after startup: {rate:.1f} MB/s, {further[cores]['ratio']:.2f} of encode_batch's rate")
    return {"rows": rows, "once started": further}


def encode(text: str, tokenizer: str) -> float:
    """Seconds that the library takes to encode a file in batches of lines. RAYON_NUM_THREADS sets the threads."""
    from tn_fairseq.tokenizers import load_tokenizer

    backend = load_tokenizer(tokenizer).backend
    lines = Path(text).read_text(encoding="utf-8").split("\n")
    start = time.perf_counter()
    for first in range(0, len(lines), BATCH):
        backend.encode_batch(lines[first : first + BATCH], add_special_tokens=False)
    return time.perf_counter() - start


def measure_tables(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Measure synonyms build with the dictionary that binarize wrote."""
    dictionary = folder / "bin" / "dict.txt"
    vectors = write_vectors(folder / "vectors.txt", dictionary, args.vectors)
    sources = {
        "WordNet": ["--source", "wordnet"],
        f"{args.vectors:,} x 50 vectors": ["--source", "vectors", "--vectors", vectors],
    }
    rows, table = {}, []
    for name, source in sources.items():
        command = [PREPROCESS / "build_synonym_table.py", "--dict", dictionary, *source]
        runs = [run([*command, "--output", folder / "table.safetensors"]) for _ in range(args.rounds)]
        seconds = statistics.median(measured.seconds for measured in runs)
        peak = max(measured.peak_bytes for measured in runs)
        rows[name] = {"seconds": seconds, "peak bytes": peak}
        table.append([name, f"{seconds:.1f}", f"{peak / 1e6:.0f}"])
    size = len(dictionary.read_text(encoding="utf-8").splitlines())
    print(f"\nthe complete command synonyms build for a dict.txt of {size:,} lines; medians")
    show(["source", "seconds", "peak MB"], table)
    return {"dict.txt lines": size, **rows}


def write_vectors(path: Path, dictionary: Path, count: int) -> Path:
    """Write random vectors in GloVe's format, for the dictionary's words and for made-up ones."""
    words = [line.split(" ")[0] for line in dictionary.read_text(encoding="utf-8").splitlines()][:count]
    words += [f"made-up-{n}" for n in range(count - len(words))]
    rng = np.random.default_rng(1)
    with open(path, "w", encoding="utf-8") as file:
        for word in words:
            file.write(word + " " + " ".join(f"{value:.5f}" for value in rng.standard_normal(50)) + "\n")
    return path


def run(command: Sequence[object], environment: dict[str, str] | None = None) -> Measured:
    """Run a Python script and wait for it."""
    words = [sys.executable, *map(str, command)]
    start = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(words, stdout=output, stderr=output, env={**os.environ, **(environment or {})})
        _, status, usage = os.wait4(process.pid, 0)  # its peak memory is that of the largest process, workers included
        seconds = time.perf_counter() - start
        output.seek(0)
        printed = output.read().decode()
    if status:
        raise SystemExit(f"error: {shlex.join(words)} failed: {printed[-2000:]}")
    return Measured(seconds, usage.ru_maxrss * 1024, printed)


if __name__ == "__main__":
    main()
