"""A run that diverges stops in one line that says at which update; one in half precision says which update it skips.

fairseq looks at the gradients of every update, and ends in a traceback where they are NaN or infinite. In half
precision it first halves the loss scale and tries again with the next batch, down to the least loss scale; the note
that it logs then does not say at which update.
"""

import logging
import sys
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from functools import wraps

import torch
from fairseq.trainer import Trainer


def install() -> None:
    """Have fairseq's trainer say the update; around whatever stands in the place of its functions already."""
    Trainer.train_step = stop_in_one_line(Trainer.train_step)
    Trainer.clip_grad_norm = name_the_update(Trainer.clip_grad_norm)
    # its warnings say in which module numbers end; its notes print the norms and gradients of all parameters
    logging.getLogger("fairseq.nan_detector").setLevel(logging.WARNING)


def stop_in_one_line(step: Callable) -> Callable:
    """``Trainer.train_step``, which exits in one line where it finds that the gradients are no numbers."""

    @wraps(step)
    def train_step(trainer: Trainer, *args, **options):
        try:
            with nullcontext() if trainer.cuda or not trainer.cfg.common.fp16 else _overflows_without_a_gpu():
                return step(trainer, *args, **options)
        except FloatingPointError as error:
            reason = str(error).splitlines()[0].rstrip(".")
            sys.exit(
                f"error: update {_next_update(trainer)}: {reason}; go on from the last checkpoint with a lower "
                "--lr, a longer --warmup-updates or --clip-norm 1"
            )

    return train_step


def name_the_update(clip: Callable) -> Callable:
    """``Trainer.clip_grad_norm``; what it raises to have an update skipped says which, and with it the log."""

    @wraps(clip)
    def clip_grad_norm(trainer: Trainer, *args, **options):
        try:
            return clip(trainer, *args, **options)
        except OverflowError as error:
            raise OverflowError(f"at update {_next_update(trainer)}, {error}") from error

    return clip_grad_norm


def _next_update(trainer: Trainer) -> str:
    return f"{trainer.get_num_updates() + 1:,}"


@contextmanager
def _overflows_without_a_gpu():
    """Let fairseq skip an update on a CPU, too, although it makes a zero on the GPU then, which nothing reads."""
    to_gpu = torch.Tensor.cuda
    torch.Tensor.cuda = torch.Tensor.cpu
    try:
        yield
    finally:
        torch.Tensor.cuda = to_gpu
