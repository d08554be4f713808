"""Score fine-tuned checkpoints on attacked data, and on the same data before the attack.

    tn-fairseq evaluate robustness SCORES --original DATA --attacked DATA [DATA ...] --output DIR

SCORES is the --output of tn-fairseq evaluate glue or squad, with --keep-checkpoints.
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
    add("runs", nargs="+", metavar="SCORES", help="--output of glue or squad, or [NAME=]CHECKPOINT.pt of one run")
    text = "what was attacked: a file in the format of SQuAD 1.1, or a GLUE folder"
    add("--original", type=Path, metavar="DATA", help=text)
    text = "attacked files or folders, or AdvGLUE's dev.json, which needs no --original"
    add("--attacked", nargs="+", type=Path, required=True, metavar="DATA", help=text)
    add_comparison_options(parser, paper=True)
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Predict, write the report, and print its tables."""
    options = get_parser().parse_args(argv)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.evaluation.robustness.robustness_report import RobustnessOptions, evaluate_robustness

    print_report(lambda: evaluate_robustness(RobustnessOptions(**vars(options))))
