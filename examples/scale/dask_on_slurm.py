#!/usr/bin/env python3
"""Binarize on a Slurm cluster. Dask's workers run as jobs; this machine sends them the text and writes the output.

    pip install 'tn_fairseq[dask]' dask-jobqueue
    python examples/scale/dask_on_slurm.py --jobs 4 --cores 16 --partition cpu --walltime 02:00:00 -- \\
        --train corpus.train.txt --valid corpus.valid.txt --tokenizer tokenizer --destdir data-bin --shards 10

Arguments after -- go to `tn-fairseq data binarize`. The jobs use this Python environment, so the
nodes must see its files. Only this machine reads the text and writes the output; it needs two cores and a few gigabytes
of memory. If a job is killed, the other jobs do its work, and Slurm queues it again if the cluster allows that. You can
request more --jobs than can run at once.
"""

import argparse
import shutil
import subprocess
import sys


def main() -> None:
    """Submit jobs, wait for the first one, and run binarize on them."""
    args = parse_args()
    try:
        from dask_jobqueue import SLURMCluster
        from distributed import Client
    except ImportError:
        raise SystemExit("error: dask-jobqueue is missing; pip install 'tn_fairseq[dask]' dask-jobqueue") from None
    if shutil.which("sbatch") is None:
        raise SystemExit("error: sbatch is not on the PATH; run this on a machine that can submit Slurm jobs")
    with SLURMCluster(
        queue=args.partition,
        account=args.account,
        walltime=args.walltime,
        cores=args.cores,
        processes=args.cores,  # one process per core, because Python threads wait for each other
        memory=f"{args.gigabytes * args.cores}GB",
        interface=args.interface,
        job_extra_directives=["--requeue"],
    ) as cluster:
        cluster.scale(jobs=args.jobs)
        with Client(cluster) as client:
            print(f"{args.jobs} jobs of {args.cores} workers submitted; waiting for the first one", flush=True)
            client.wait_for_workers(1)
        command = [
            sys.executable,
            "-m",
            "tn_fairseq",
            "data",
            "binarize",
            "--dask",
            cluster.scheduler_address,
            *args.binarize,
        ]
        sys.exit(subprocess.run(command).returncode)


def parse_args() -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="number of jobs (default: %(default)s)")
    parser.add_argument("--cores", type=int, default=16, metavar="N", help="cores per job (default: %(default)s)")
    parser.add_argument("--gigabytes", type=int, default=2, metavar="N", help="memory per core (default: %(default)s)")
    parser.add_argument("--walltime", default="04:00:00", metavar="TIME", help="time per job (default: %(default)s)")
    parser.add_argument("--partition", metavar="NAME", help="(default: the cluster's)")
    parser.add_argument("--account", metavar="NAME", help="(default: yours)")
    parser.add_argument("--interface", metavar="NAME", help="network interface for Dask, such as ib0")
    parser.add_argument("binarize", nargs="+", metavar="OPTION", help="arguments of binarize, after --")
    return parser.parse_args()


if __name__ == "__main__":
    main()
