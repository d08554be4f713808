"""Fine-tune and score checkpoints on SQuAD as Clark et al. (2020) do: every checkpoint with every seed.

    tn-fairseq evaluate squad CHECKPOINT.pt [NAME=CHECKPOINT.pt ...] --data SQUAD_BIN --output DIR

After an interruption, run the same command again to resume. Finished runs are not repeated, so you can add seeds and
checkpoints later.
"""

import logging

from ..core.errors import if_interrupted
from ..tools.evaluate.finetune_options import FineTuningOptions
from .arguments import command_line


def squad(options: FineTuningOptions) -> None:
    """Fine-tune, write the report, and print its tables."""
    logging.disable(logging.INFO)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.evaluate.finetune_squad import evaluate_squad

    with if_interrupted("run the same command again"):
        print(evaluate_squad(options))


main = command_line("evaluate squad", __doc__, squad)
