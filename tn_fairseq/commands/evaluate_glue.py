"""Fine-tune and score checkpoints on GLUE as Clark et al. (2020) do: every checkpoint on every task with every seed.

    tn-fairseq evaluate glue CHECKPOINT.pt [NAME=CHECKPOINT.pt ...] --data GLUE_BIN --output DIR

After an interruption, run the same command again to resume. Finished runs are not repeated, so you can add seeds, tasks
and checkpoints later.
"""

import logging

from ..core.errors import if_interrupted
from ..tools.evaluate.finetune_options import GlueOptions
from .arguments import command_line


def glue(options: GlueOptions) -> None:
    """Fine-tune, write the report, and print its tables."""
    logging.disable(logging.INFO)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.evaluate.finetune_glue import evaluate_glue

    with if_interrupted("run the same command again"):
        print(evaluate_glue(options))


main = command_line("evaluate glue", __doc__, glue)
