"""Stop a diverging run with a one-line error that names the update, and name the updates that half precision skips.

fairseq checks the gradients of every update and ends in a traceback if they are NaN or infinite. In half precision, it
first halves the loss scale and skips the update, down to the minimum loss scale; its log line does not say which update
it skips.
"""

import logging
import sys
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from functools import wraps

import torch
from fairseq.trainer import Trainer


def install() -> None:
    """Make fairseq's trainer name the update; wraps functions that are already replaced."""
    Trainer.train_step = stop_in_one_line(Trainer.train_step)
    Trainer.clip_grad_norm = name_the_update(Trainer.clip_grad_norm)
    # its warnings name the module with NaN; its info lines print the norms and gradients of all parameters
    logging.getLogger("fairseq.nan_detector").setLevel(logging.WARNING)


def stop_in_one_line(step: Callable) -> Callable:
    """``Trainer.train_step`` that exits with a one-line error if the gradients are NaN or infinite."""

    @wraps(step)
    def train_step(trainer: Trainer, *args, **options):
        try:
            with nullcontext() if trainer.cuda or not trainer.cfg.common.fp16 else _overflows_without_a_gpu():
                return step(trainer, *args, **options)
        except FloatingPointError as error:
            reason = str(error).splitlines()[0].rstrip(".")
            sys.exit(
                f"error: update {_next_update(trainer)}: {reason}; resume from the last checkpoint with a lower "
                "--lr, a longer --warmup-updates or --clip-norm 1"
            )

    return train_step


def name_the_update(clip: Callable) -> Callable:
    """``Trainer.clip_grad_norm`` whose error, which skips an update and is logged, names the update."""

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
    """Let fairseq skip an update on a CPU, although it then creates an unused zero with ``.cuda()``."""
    to_gpu = torch.Tensor.cuda
    torch.Tensor.cuda = torch.Tensor.cpu
    try:
        yield
    finally:
        torch.Tensor.cuda = to_gpu
