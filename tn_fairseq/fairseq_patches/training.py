"""Training steps: one-line errors for NaN gradients, and every batch counts."""

import atexit
import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import torch
from fairseq.data.iterators import BackgroundConsumer
from fairseq.models.ema.ema import EMA
from fairseq.trainer import Trainer
from torch import nn

from ..models.electra import ElectraModel
from ..modules.transformer_encoder import without_graphs
from .bf16 import is_built
from .replacing import replaces

SECONDS = 30  # enough to prepare a batch

# its warnings name the module with NaN; its info lines print the norms and gradients of all parameters
logging.getLogger("fairseq.nan_detector").setLevel(logging.WARNING)


@replaces(Trainer, "train_step")
def train_step(original: Callable, trainer: Trainer, samples: Sequence[Any], *args: Any, **options: Any) -> Any:
    """A step that counts all batches, and exits with a one-line error if the gradients are NaN or infinite.

    With ``--update-freq`` above 1, fairseq appends an empty batch to those of a worker that has fewer batches at the
    end of an epoch. It then omits all of them from the log and from the divisor of the gradient, but not from the
    gradient. We remove the empty batches; a worker without any batch must still take part in the update.
    """
    if not is_built(trainer):
        return original(trainer, samples, *args, **options)
    without_gpu = trainer.cfg.common.fp16 and not trainer.cuda
    try:
        # if half precision overflows, fairseq skips the update, but first creates an unused zero with .cuda()
        with patch.object(torch.Tensor, "cuda", torch.Tensor.cpu) if without_gpu else nullcontext():
            batches = [sample for sample in samples if sample is not None and len(sample)]
            with without_graphs() if len(batches) > 1 else nullcontext():
                return original(trainer, batches or samples[:1], *args, **options)
    except FloatingPointError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        sys.exit(
            f"error: update {_next_update(trainer)}: {reason}; resume from the last checkpoint with a lower --lr, a "
            "longer --warmup-updates or --clip-norm 1"
        )


@replaces(Trainer, "clip_grad_norm")
def clip_grad_norm(original: Callable, trainer: Trainer, *args: Any, **options: Any) -> Any:
    """The norm on the CPU, because fairseq asks for it several times, and each time would wait for a GPU.

    The error for an overflow in half precision, which fairseq logs when it skips the update, names the update.
    """
    try:
        norm = original(trainer, *args, **options)
        return norm.cpu() if is_built(trainer) else norm
    except OverflowError as error:
        if not is_built(trainer):
            raise
        raise OverflowError(f"at update {_next_update(trainer)}, {error}") from error


def _next_update(trainer: Trainer) -> str:
    return f"{trainer.get_num_updates() + 1:,}"


@replaces(EMA, "__init__")
def build_average(original: Callable, average: EMA, model: nn.Module, *args: Any, **options: Any) -> None:
    """A moving average (``--store-ema``) that copies integer tensors, and the frozen ones of our models.

    fairseq would fail on integers, such as the dictionary fingerprint of our models. The average of equal weights
    differs from them by rounding, but another model may train frozen weights later.
    """
    original(average, model, *args, **options)
    if not issubclass(type(model), nn.Module):  # isinstance would accept a mock of one
        return
    copied = {name for name, tensor in model.state_dict().items() if _is_integer(tensor)}
    if isinstance(model, ElectraModel):
        copied |= {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    average.skip_keys = copied.union(average.skip_keys)


def _is_integer(value: Any) -> bool:
    """Whether an entry of a model's state is a tensor of integers or Booleans; it can also be another object."""
    return isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex())


@atexit.register
def wait_until_at_rest() -> None:
    """Wait until each of fairseq's threads that prepare batches has ended or waits for room in its queue.

    Such a thread is still running if a run stops inside an epoch. Python kills it, and if it is inside torch's C++
    code, that aborts the process after all work is done: "terminate called", exit code 134. Returns after ``SECONDS``
    in any case.
    """
    deadline = time.monotonic() + SECONDS
    for thread in threading.enumerate():
        while isinstance(thread, BackgroundConsumer) and thread.is_alive() and time.monotonic() < deadline:
            frame = sys._current_frames().get(thread.ident or 0)
            # a thread that adds a batch to its queue is in other functions of the module threading for a moment
            if frame and frame.f_code is threading.Condition.wait.__code__ and thread._queue.full():
                break
            time.sleep(0.005)
