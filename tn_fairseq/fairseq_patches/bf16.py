"""``--bf16`` on a CPU and on a GPU; fairseq 0.12 asks for a TPU.

On a GPU, fairseq converts the model to bfloat16 and keeps a float32 copy of the weights, which it does not save. On a
CPU, weights, gradients, optimizer and checkpoints stay float32, and the model runs under torch's autocast, so a resumed
run is exact. Criteria run in float32 on the model's output.
"""

import logging
from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from types import MethodType
from typing import Any

import torch
from fairseq import checkpoint_utils, utils
from fairseq.distributed import utils as distributed_utils
from fairseq.models import BaseFairseqModel
from fairseq.trainer import Trainer

from ..errors import InputError, one_line_errors

logger = logging.getLogger(__name__)

SAVED = "bf16 on a CPU"  # in a checkpoint's extra_state


def install() -> None:
    """Make fairseq accept ``--bf16`` without a TPU, and refuse to resume in another precision."""
    distributed_utils.call_main = without_a_tpu(distributed_utils.call_main)
    Trainer.__init__ = under_autocast(Trainer.__init__)
    Trainer.state_dict = with_the_precision(Trainer.state_dict)
    checkpoint_utils.load_checkpoint = check_precision_after(checkpoint_utils.load_checkpoint)


def without_a_tpu(call_main: Callable) -> Callable:
    """``distributed_utils.call_main`` that uses the GPU or CPU if there is no TPU."""

    @wraps(call_main)
    def call_main_without_a_tpu(cfg: Any, *args, **options):
        forget_the_tpu(cfg)
        return call_main(cfg, *args, **options)

    return call_main_without_a_tpu


def forget_the_tpu(cfg: Any) -> None:
    """Undo that ``--bf16`` implies ``--tpu``, if torch_xla is not installed."""
    if cfg.common.bf16 and utils.xm is None:
        cfg.common.tpu = cfg.distributed_training.tpu = False


def under_autocast(init: Callable) -> Callable:
    """``Trainer.__init__`` that runs the model under autocast if it trains in bfloat16 on a CPU."""

    @wraps(init)
    def __init__(trainer: Trainer, cfg: Any, task: Any, model: BaseFairseqModel, *args, **options):
        forget_the_tpu(cfg)  # for programs that call fairseq_cli.train.main themselves
        on_cpu = cfg.common.cpu or not torch.cuda.is_available()
        trainer.autocast = cfg.common.bf16 and on_cpu and not cfg.common.tpu
        if trainer.autocast:
            cfg = deepcopy(cfg)
            cfg.common.bf16 = False
            run_under_autocast(model)
        init(trainer, cfg, task, model, *args, **options)
        if trainer.autocast and trainer.is_data_parallel_master and not has_fast_bf16():
            logger.warning("this CPU has neither AMX nor AVX512-BF16, so --bf16 is slower than float32")

    return __init__


def run_under_autocast(model: BaseFairseqModel) -> None:
    """Make the model's products bfloat16 on a CPU; its parameters and their gradients stay float32."""
    forward = torch.autocast("cpu", torch.bfloat16)(type(model).forward)
    # a method, so that a copy of the model, such as its moving average, gets one of its own
    model.forward = MethodType(forward, model)


def has_fast_bf16() -> bool:
    """Whether this CPU multiplies matrices faster in bfloat16 than in float32."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def with_the_precision(state_dict: Callable) -> Callable:
    """``Trainer.state_dict`` that records autocast."""

    @wraps(state_dict)
    def state_dict_with_the_precision(trainer: Trainer) -> dict[str, Any]:
        state = state_dict(trainer)
        if trainer.autocast:
            state["cfg"]["common"]["bf16"] = state["extra_state"][SAVED] = True
        return state

    return state_dict_with_the_precision


def check_precision_after(resume: Callable) -> Callable:
    """``checkpoint_utils.load_checkpoint`` that exits with a one-line error if the run had another precision."""

    @wraps(resume)
    @one_line_errors()
    def load_checkpoint(cfg: Any, trainer: Trainer, **options):
        extra_state, iterator = resume(cfg, trainer, **options)
        was = bool(extra_state and extra_state.get(SAVED))
        if trainer.get_num_updates() and was != trainer.autocast:
            how = "with" if was else "without"
            raise InputError(
                f"the checkpoint was trained {how} --bf16; resume {how} it, or train on from its weights only: "
                "--finetune-from-model FILE and another --save-dir"
            )
        return extra_state, iterator

    return load_checkpoint
