"""What the commands of evaluate share: their options, flags for fairseq-train after "--", and how they end."""

import argparse
import logging
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ..core.errors import if_interrupted
from .arguments import command_parser, positive

EPILOG = 'Flags for fairseq-train go after "--": -- --dropout 0.2'


def add_comparison_options(parser: argparse.ArgumentParser, paper: bool = False) -> None:
    """Add the output and the baseline, and --paper if the paper has such numbers."""
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder for what is written")
    parser.add_argument("--baseline", metavar="NAME", help="checkpoint to compare the others with")
    if paper:
        parser.add_argument("--paper", action="store_true", help="show the paper's numbers below ours")


def fine_tuning_parser(command: str, description: str | None) -> argparse.ArgumentParser:
    """The parser of ``evaluate glue`` or ``evaluate squad``."""
    parser = command_parser(f"evaluate {command}", description)
    parser.epilog = EPILOG
    add = parser.add_argument
    add("checkpoints", nargs="+", metavar="[NAME=]CHECKPOINT.pt", help="checkpoints to fine-tune")
    add("--data", type=Path, required=True, metavar="DIR", help=f"output of tn-fairseq data {command}")
    add_comparison_options(parser, paper=True)
    add("--seeds", type=_seeds, default="1,2,3", metavar="N,N", help="random seeds (default: %(default)s)")
    text = "passes over the training data (default: the task's)"
    add("--epochs", type=positive, metavar="N", help=text)
    add("--max-update", type=positive, metavar="N", help="maximum updates (default: no limit)")
    add("--batch-size", type=positive, default=32, metavar="N", help="examples per update (default: %(default)s)")
    text = "peak learning rate (default: 3e-4 for small models, 1e-4 base, 5e-5 large)"
    add("--lr", type=_rate, metavar="X", help=text)
    add("--parallel", type=positive, default=1, metavar="N", help="runs at the same time (default: %(default)s)")
    add("--keep-checkpoints", action="store_true", help="keep the last one of each run, such as for robustness")
    return parser


def parse_with_flags(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the options; what follows "--" becomes ``more_flags``."""
    words = list(sys.argv[1:] if argv is None else argv)
    own, flags = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    options, unknown = parser.parse_known_args(own)
    if unknown:
        hint = '; flags for fairseq-train go last, after "--"'
        parser.error(f"unrecognized arguments {' '.join(unknown)}{hint}")
    options.more_flags = tuple(flags)
    return options


def print_report(evaluate: Callable[[], str]) -> None:
    """Print the table that a function returns."""
    logging.disable(logging.INFO)
    with if_interrupted("run the same command again"):
        print(evaluate())


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number, not {text}")
    return rate


def _seeds(text: str) -> list[int]:
    seeds = [int(seed) for seed in text.split(",") if seed.isdecimal()]
    if len(set(seeds)) != len(text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of different numbers such as 1,2,3")
    if max(seeds) >= 1 << 31:
        raise argparse.ArgumentTypeError(f"{max(seeds)}: must be below 2**31")
    return seeds
