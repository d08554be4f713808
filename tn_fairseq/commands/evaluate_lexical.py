"""Measure what synonym tables and checkpoints know about words: substitutes, word similarities and minimal pairs.

    tn-fairseq evaluate lexical [CHECKPOINT.pt ...] [NAME='SEEDS*.pt' ...] --data DATA_BIN --output DIR

Nothing is trained.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import one_line_errors
from .arguments import command_parser, positive
from .evaluating import add_comparison_options, print_report


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("evaluate lexical", __doc__)
    add = parser.add_argument
    text = "checkpoints; with a name, a quoted pattern of its seeds"
    add("checkpoints", nargs="*", metavar="[NAME=]CKPT", help=text)
    add("--data", type=Path, required=True, metavar="DATA_BIN", help="output of tn-fairseq data binarize")
    add("--encoder-json", type=Path, metavar="FILE", help="that of GPT-2, if dict.txt has numbers")
    add_comparison_options(parser)
    add("--swords", type=Path, metavar="FILE", help="substitutes that people judged: a file of SWORDS")
    text = "output of tn-fairseq synonyms build, to compare with --swords"
    add("--synonym-table", nargs="+", type=Path, default=[], metavar="TABLE", help=text)
    text = "a file for --correction-judge: what would it accept of the tables' synonyms in SWORDS?"
    add("--judge", type=Path, metavar="CKPT", help=text)
    text = "pairs with similarities, such as SimLex-999.txt"
    add("--word-pairs", nargs="+", type=Path, default=[], metavar="FILE", help=text)
    add("--blimp", type=Path, metavar="FILE", help="pairs of sentences: BLiMP.zip")
    text = "pairs of each of BLiMP's files (default: 100)"
    add("--blimp-pairs", type=positive, metavar="N", help=text)
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Measure, write the report, and print its tables."""
    options = get_parser().parse_args(argv)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.evaluation.lexical.lexical_measures import LexicalOptions
    from ..tools.evaluation.lexical.lexical_report import evaluate_lexical

    print_report(lambda: evaluate_lexical(LexicalOptions(**vars(options))))
