"""Score checkpoints fine-tuned on SQuAD on attacked questions, and on the same questions before the attack.

    tn-fairseq evaluate robustness SCORES --original FILE --attacked FILE [FILE ...] --output DIR

SCORES is the --output of tn-fairseq evaluate squad, with --keep-checkpoints.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import one_line_errors
from .arguments import command_parser
from .evaluating import add_comparison_options, print_report


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = command_parser("evaluate robustness", __doc__)
    add = parser.add_argument
    add("runs", nargs="+", metavar="SCORES", help="--output of squad, or [NAME=]CHECKPOINT.pt of one run")
    text = "what was attacked, in SQuAD 1.1's format"
    add("--original", type=Path, required=True, metavar="FILE", help=text)
    text = "output of swap-synonyms or add-distractors"
    add("--attacked", nargs="+", type=Path, required=True, metavar="FILE", help=text)
    add_comparison_options(parser, paper=True)
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Predict, write the report, and print its tables."""
    options = get_parser().parse_args(argv)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.evaluation.robustness.robustness_report import RobustnessOptions, evaluate_robustness

    print_report(lambda: evaluate_robustness(RobustnessOptions(**vars(options))))
