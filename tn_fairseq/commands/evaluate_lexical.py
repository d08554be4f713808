"""Measure what synonym tables and checkpoints know about words: substitutes, word similarities and minimal pairs.

    tn-fairseq evaluate lexical [CHECKPOINT.pt ...] [NAME='SEEDS*.pt' ...] --data DATA_BIN --output DIR

Nothing is trained.
"""

import logging

from ..core.errors import if_interrupted
from ..tools.evaluate.lexical.lexical_options import LexicalOptions
from .arguments import command_line


def lexical(options: LexicalOptions) -> None:
    """Measure, write the report, and print its tables."""
    logging.disable(logging.INFO)
    # imported here because fairseq takes seconds to import and --help does not need it
    from ..tools.evaluate.lexical.lexical import evaluate_lexical

    with if_interrupted("run the same command again"):
        print(evaluate_lexical(options))


main = command_line("evaluate lexical", __doc__, lexical)
