"""Score checkpoints fine-tuned on SQuAD on attacked questions, and on the same questions before the attack.

    tn-fairseq evaluate robustness SCORES --original FILE --attacked FILE [FILE ...] --output DIR

SCORES is the --output of tn-fairseq evaluate squad, with --keep-checkpoints.
"""

import logging

from ..core.errors import if_interrupted
from ..tools.evaluate.finetune_options import RobustnessOptions
from .arguments import command_line


def robustness(options: RobustnessOptions) -> None:
    """Predict, write the report, and print its tables."""
    logging.disable(logging.INFO)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.evaluate.robustness import evaluate_robustness

    with if_interrupted("run the same command again"):
        print(evaluate_robustness(options))


main = command_line("evaluate robustness", __doc__, robustness)
