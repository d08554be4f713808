"""Fine-tune and score checkpoints on GLUE as Clark et al. (2020) do: every checkpoint on every task with every seed.

    tn-fairseq evaluate glue CHECKPOINT.pt [NAME=CHECKPOINT.pt ...] --data GLUE_BIN --output DIR

After an interruption, run the same command again to resume. Finished runs are not repeated, so you can add seeds, tasks
and checkpoints later.
"""

import argparse
from collections.abc import Sequence

from ..core.errors import one_line_errors
from .evaluating import fine_tuning_parser, parse_with_flags, print_report


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = fine_tuning_parser("glue", __doc__)
    parser.add_argument("--tasks", default="all", metavar="T,T", help="such as CoLA,RTE (default: all in --data)")
    return parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Fine-tune, and print the table."""
    options = vars(parse_with_flags(get_parser(), argv))
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.evaluation.finetuning import FineTuningOptions
    from ..tools.evaluation.glue import evaluate_glue

    tasks = options.pop("tasks")
    print_report(lambda: evaluate_glue(FineTuningOptions(**options), tasks))
