#!/usr/bin/env python3
"""Validation losses of bfloat16 and float32, for each criterion and several seeds.

    python examples/benchmark_precisions.py --data data-bin --synonym-table synonyms.safetensors --output precisions

Trains `electra_tiny` with the same initialization, data order and masks in both precisions, on one thread. Runs that
are finished are not repeated. The script prints, and writes to OUTPUT/precisions.json, the mean validation loss of each
criterion and precision, the spread over seeds, and the differences between the precisions.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from itertools import product
from pathlib import Path

from benchmark import CRITERIA
from tqdm import tqdm

from tn_fairseq.core.files import write_atomically
from tn_fairseq.tools.results.layout import align
from tn_fairseq.tools.training_log import read_records

ROOT = Path(__file__).resolve().parents[1]
PRECISIONS = {"float32": [], "bfloat16": ["--bf16"]}


def main() -> None:
    """Train what is missing, print the table, and write it."""
    args = parse_args()
    check_settings(args)
    seeds = range(1, args.seeds + 1)
    runs = list(product(CRITERIA, seeds, PRECISIONS))
    losses = {run: train(*run, args) for run in tqdm(runs, disable=None)}
    rows, results = [], {}
    for criterion in CRITERIA:
        exact, rounded = ([losses[criterion, seed, precision] for seed in seeds] for precision in PRECISIONS)
        results[criterion] = {
            "float32": exact,
            "bfloat16": rounded,
            "sd over seeds": statistics.stdev(exact),
            "differences": [after - before for before, after in zip(exact, rounded)],
        }
        differences = results[criterion]["differences"]
        rows.append(
            [criterion, f"{statistics.mean(exact):.3f}", f"{statistics.mean(rounded):.3f}"]
            + [f"{statistics.stdev(exact):.3f}", f"{statistics.mean(differences):+.3f}"]
            + [", ".join(f"{difference:+.3f}" for difference in differences)]
        )
    print(*align([["", *PRECISIONS, "sd over seeds", "mean difference", "of each seed"], *rows]), sep="\n")
    with write_atomically(args.output / "precisions.json") as temporary:
        temporary.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def check_settings(args: argparse.Namespace) -> None:
    """Keep the settings with the logs, and exit if the logs there are of other settings."""
    path = args.output / "settings.json"
    settings = {name: str(getattr(args, name)) for name in ("data", "synonym_table", "updates", "batch_size", "length")}
    if path.exists() and json.loads(path.read_text(encoding="utf-8")) != settings:
        raise SystemExit(f"error: {args.output}: has runs with other settings; give another --output")
    args.output.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as temporary:
        temporary.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def parse_args() -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DATA_BIN", help="binarized text")
    parser.add_argument("--synonym-table", type=Path, required=True, metavar="FILE", help="for its dictionary")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="for logs and results")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="at least 2 (default: %(default)s)")
    parser.add_argument("--updates", type=int, default=1000, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=16, metavar="N", help="sequences (default: %(default)s)")
    parser.add_argument("--length", type=int, default=64, metavar="N", help="tokens in each (default: %(default)s)")
    args = parser.parse_args()
    if args.seeds < 2:
        parser.error("--seeds must be at least 2, to measure their spread")
    return args


def train(criterion: str, seed: int, precision: str, args: argparse.Namespace) -> float:
    """The validation loss of a run, in bits, from its log if the run is already finished."""
    log = args.output / f"{criterion}.{seed}.{precision}.log"
    if not log.exists():
        command = [sys.executable, "-m", "fairseq_cli.train", args.data, "--user-dir", ROOT / "tn_fairseq"]
        # else, it would resume from a checkpoint that the current folder has in checkpoints/
        command += ["--cpu", "--no-save", "--save-dir", args.output, "--seed", seed]
        command += ["--task", "electra", "--sample-break-mode", "none", "--tokens-per-sample", args.length]
        command += ["--arch", "electra_tiny"]
        command += ["--criterion", criterion, "--synonym-table", args.synonym_table, *PRECISIONS[precision]]
        command += ["--optimizer", "electra_adamw", "--lr", 1e-3, "--adam-bias-correction", "--clip-norm", 1]
        command += ["--lr-scheduler", "polynomial_decay", "--warmup-updates", args.updates // 10]
        command += ["--total-num-update", args.updates, "--max-update", args.updates]
        command += ["--batch-size", args.batch_size, "--log-format", "json"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        run = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
        if run.returncode:
            raise SystemExit(f"error: fairseq-train failed: {run.stderr[-2000:]}")
        with write_atomically(log) as temporary:
            temporary.write_text(run.stdout + run.stderr, encoding="utf-8")
    return float(read_records(log, "valid")[-1]["valid_loss"])


if __name__ == "__main__":
    main()
