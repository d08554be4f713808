"""Fine-tune and score checkpoints on SQuAD as Clark et al. (2020) do: every checkpoint with every seed.

    tn-fairseq evaluate squad CHECKPOINT.pt [NAME=CHECKPOINT.pt ...] --data SQUAD_BIN --output DIR

After an interruption, run the same command again to resume. Finished runs are not repeated, so you can add seeds and
checkpoints later.
"""

import argparse
from collections.abc import Sequence

from ..core.errors import one_line_errors
from .evaluating import fine_tuning_parser, parse_with_flags, print_report


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    return fine_tuning_parser("squad", __doc__)


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Fine-tune, and print the table."""
    options = parse_with_flags(get_parser(), argv)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.evaluation.finetuning import FineTuningOptions
    from ..tools.evaluation.squad import evaluate_squad

    print_report(lambda: evaluate_squad(FineTuningOptions(**vars(options))))
