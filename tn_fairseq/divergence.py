"""A run that diverges stops in one line that says at which update.

fairseq looks at the gradients of every update, and ends in a traceback where they are NaN or infinite (in half
precision: where they still are at the least loss scale; until then it skips such updates and says so).
"""

import sys
from functools import wraps

from fairseq.trainer import Trainer

_fairseq_train_step = Trainer.train_step


def install() -> None:
    """Put ``train_step`` in the place of fairseq's own."""
    Trainer.train_step = train_step


@wraps(_fairseq_train_step)
def train_step(trainer: Trainer, *args, **options):
    """fairseq's own step; exits in one line where it finds that the gradients are no numbers."""
    try:
        return _fairseq_train_step(trainer, *args, **options)
    except FloatingPointError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        sys.exit(
            f"error: update {trainer.get_num_updates() + 1:,}: {reason}; go on from the last checkpoint with a lower "
            "--lr, a longer --warmup-updates or --clip-norm 1"
        )
