"""Write a text with exact synonyms, to measure what false negatives cost and what an objective can recover.

    tn-fairseq data twins --data data-bin --destdir twin-bin --share 0.5 --seed 1

Words are drawn at random. Each gets a twin: a new symbol that replaces it in half of its occurrences. DIR gets the text
with twins, the original text with the same dictionary (DIR/oracle), the exact synonym table (DIR/synonyms.safetensors),
and what was done (DIR/twins.json).
"""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import InputError, one_line_errors
from ..tools.reporting.layout import align
from .arguments import command_parser, positive
from .binarizing import cells, percentage


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("data twins", __doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="DATA_BIN", help="a folder that binarize wrote")
    parser.add_argument("--destdir", type=Path, required=True, metavar="DIR", help="folder for the output")
    text = "share of the training text's tokens that have a twin, from 0 to 1"
    parser.add_argument("--share", type=float, required=True, metavar="S", help=text)
    text = "share of the occurrences of a word that its twin replaces (default: %(default)s)"
    parser.add_argument("--occurrences", type=float, default=0.5, metavar="S", help=text)
    text = "only words that occur at least this often in the training text (default: %(default)s)"
    parser.add_argument("--min-count", type=positive, default=10, metavar="N", help=text)
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="random seed (default: %(default)s)")
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Write the text with twins, and print how many there are."""
    args = get_parser().parse_args(argv)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.preprocessing.twins import ORACLE, REPORT, TABLE, write_twins

    for flag in ("share", "occurrences"):
        if not 0 <= getattr(args, flag) <= 1:
            raise InputError(f"--{flag} must be between 0 and 1, not {getattr(args, flag)}")
    if args.seed < 0:
        raise InputError(f"--seed must be non-negative, not {args.seed}")
    logging.getLogger("fairseq.data.data_utils").setLevel(logging.WARNING)  # it names each file that it loads
    counts = write_twins(args.data, args.destdir, args.share, args.occurrences, args.min_count, args.seed)
    rows = [["split", "tokens", "with a twin", "replaced by it"]]
    for split, n in counts.items():
        rows.append(cells(split, n.tokens, percentage(n.with_twin, n.tokens), percentage(n.replaced, n.tokens)))
    print(*align(rows), sep="\n")
    print(f"wrote the text with twins to {args.destdir}, with {ORACLE}/, {TABLE} and {REPORT}")
