"""Compare what --correction-judge would accept with what people accept.

tn-fairseq evaluate judge CHECKPOINT.pt --data DATA_BIN --swords FILE --synonym-table TABLE [TABLE ...]
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import one_line_errors
from .arguments import command_parser
from .evaluating import print_report


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("evaluate judge", __doc__)
    add = parser.add_argument
    add("checkpoint", type=Path, metavar="CHECKPOINT.pt", help="the file for --correction-judge")
    add("--swords", type=Path, required=True, metavar="FILE", help="substitutes that people judged: a file of SWORDS")
    text = "output of tn-fairseq synonyms build"
    add("--synonym-table", nargs="+", type=Path, required=True, metavar="TABLE", help=text)
    add("--data", type=Path, required=True, metavar="DATA_BIN", help="output of tn-fairseq data binarize")
    add("--encoder-json", type=Path, metavar="FILE", help="that of GPT-2, if dict.txt has numbers")
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Print how the judge agrees with people."""
    options = get_parser().parse_args(argv)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.evaluation.lexical.judged_corrections import judge_report

    print_report(lambda: judge_report(**vars(options)))
