#!/usr/bin/env python3
"""Print how the training of the quickstart went in each of some folders, and plot their masked-LM losses.

    python examples/quickstart/losses.py demo --output losses.png

A row of the table is the mean of 20 updates, and a point of the plot of 100. The training may still be running.
Matplotlib must be installed.
"""

import argparse
import itertools
import statistics
from collections.abc import Sequence
from pathlib import Path

from report import loss_curve

from tn_fairseq.core.errors import InputError, one_line_errors
from tn_fairseq.core.files import write_atomically
from tn_fairseq.tools.results.plot import COLORS, DASHES, drawing
from tn_fairseq.tools.training_log import read_records

LOG = "pretraining.log"
WINDOW = 100  # updates; the losses of single batches differ too much to see a curve


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="DIR", help="the --output of quickstart.py --from-scratch"
    )
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="the plot, a PNG file")
    args = parser.parse_args(argv)
    curves = [curve(run / LOG) for run in args.runs]
    for run in args.runs:
        print(f"{run}:", *loss_curve(run / LOG), "", sep="\n")
    draw(curves, args.output)


def curve(log: Path) -> tuple[int, list[float], list[float]]:
    """The number of updates, the middle of each window of updates, and the mean losses there in bits."""
    records = read_records(log, "train_inner", "give the --output of quickstart.py --from-scratch")
    losses = {int(record["num_updates"]): float(record["nll_loss"]) for record in records}
    windows = [list(window) for _, window in itertools.groupby(losses, key=lambda update: (update - 1) // WINDOW)]
    if not windows:
        raise InputError(f"{log}: no losses in it; train for at least 20 updates")
    return (
        max(losses),
        [statistics.mean(window) for window in windows],
        [statistics.mean(losses[update] for update in window) for window in windows],
    )


def draw(runs: Sequence[tuple[int, list[float], list[float]]], path: Path) -> None:
    """Draw a line for each run, named after its number of updates."""
    with drawing((8, 4)) as figure, write_atomically(path) as temporary:
        axes = figure.subplots()
        for (total, updates, losses), color, dash in zip(runs, itertools.cycle(COLORS), itertools.cycle(DASHES)):
            axes.plot(updates, losses, color=color, linestyle=dash, linewidth=1.4, label=f"{total:,} updates")
        axes.set_xlabel("update")
        axes.set_ylabel(f"masked-LM loss (bits), mean of {WINDOW} updates")
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.legend()
        figure.savefig(temporary, format="png")


if __name__ == "__main__":
    main()
