#!/usr/bin/env python3
"""Binarize on a SLURM cluster: Dask's workers run as jobs; binarize.py here sends them text and writes the output.

    pip install 'tn_fairseq[dask]' dask-jobqueue
    python examples/scale/dask_on_slurm.py --jobs 4 --cores 16 --partition cpu --walltime 02:00:00 -- \\
        --train corpus.train.txt --valid corpus.valid.txt --tokenizer tokenizer --destdir data-bin --shards 10

What follows the lone -- goes to binarize.py. The jobs use this environment, so the nodes must see its files; the text
and the output are for this machine alone, which needs two cores and some gigabytes for itself. A job that is killed
costs time: SLURM queues it again where it may, and the others do its work. --jobs may be more than will run at once.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

BINARIZE = Path(__file__).resolve().parents[2] / "preprocess" / "binarize.py"


def main() -> None:
    """Submit jobs, wait for the first of them, and run binarize.py on them."""
    args = parse_args()
    try:
        from dask_jobqueue import SLURMCluster
        from distributed import Client
    except ImportError:
        raise SystemExit("error: no dask-jobqueue; pip install 'tn_fairseq[dask]' dask-jobqueue") from None
    if shutil.which("sbatch") is None:
        raise SystemExit("error: no sbatch; run this where SLURM takes jobs")
    with SLURMCluster(
        queue=args.partition,
        account=args.account,
        walltime=args.walltime,
        cores=args.cores,
        processes=args.cores,  # a process for each core, since Python's own work keeps threads waiting
        memory=f"{args.gigabytes * args.cores}GB",
        interface=args.interface,
        job_extra_directives=["--requeue"],
    ) as cluster:
        cluster.scale(jobs=args.jobs)
        with Client(cluster) as client:
            print(f"{args.jobs} jobs of {args.cores} workers submitted; waiting for the first one", flush=True)
            client.wait_for_workers(1)
        command = [sys.executable, BINARIZE, "--dask", cluster.scheduler_address, *args.binarize]
        sys.exit(subprocess.run(command).returncode)


def parse_args() -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--cores", type=int, default=16, metavar="N", help="of each job (default: %(default)s)")
    parser.add_argument("--gigabytes", type=int, default=2, metavar="N", help="for each core (default: %(default)s)")
    parser.add_argument("--walltime", default="04:00:00", metavar="TIME", help="of each job (default: %(default)s)")
    parser.add_argument("--partition", metavar="NAME", help="(default: the cluster's)")
    parser.add_argument("--account", metavar="NAME", help="(default: yours)")
    parser.add_argument("--interface", metavar="NAME", help="network interface for Dask, such as ib0")
    parser.add_argument("binarize", nargs="+", metavar="OPTION", help="what binarize.py is given, behind a lone --")
    return parser.parse_args()


if __name__ == "__main__":
    main()
