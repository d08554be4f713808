"""``--bf16`` on a CPU and on a GPU; fairseq 0.12 asks for a TPU.

On a GPU, fairseq converts the model to bfloat16 and keeps a float32 copy of the weights, which it does not save. On a
CPU, weights, gradients, optimizer and checkpoints stay float32, and the model runs under torch's autocast, so a resumed
run is exact. Criteria run in float32 on the model's output.
"""

import logging
from argparse import Namespace
from collections.abc import Callable
from copy import deepcopy
from types import MethodType
from typing import Any

import torch
from fairseq import utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import BaseFairseqModel
from fairseq.trainer import Trainer

from .replacing import replaces

logger = logging.getLogger(__name__)


def forget_the_tpu(cfg: Any) -> None:
    """Undo that ``--bf16`` implies ``--tpu``, if torch_xla is not installed."""
    groups: list[Any] = [getattr(cfg, name, None) for name in ("common", "distributed_training")]
    if getattr(groups[0], "bf16", False) and utils.xm is None:
        for group in groups:
            if getattr(group, "tpu", False):
                group.tpu = False


def is_built(trainer: Any) -> bool:
    """Whether fairseq's own ``Trainer`` was built under the plugin; a stand-in or a mock of another program was not."""
    return "autocast" in getattr(trainer, "__dict__", {})


@replaces(Trainer, "__init__")
def build_trainer(
    original: Callable, trainer: Trainer, cfg: Any, task: Any, model: BaseFairseqModel, *args: Any, **options: Any
) -> None:
    """A trainer that runs the model under autocast if it trains in bfloat16 on a CPU."""
    if isinstance(cfg, Namespace):  # which fairseq still accepts
        cfg = convert_namespace_to_omegaconf(cfg)
    forget_the_tpu(cfg)  # for programs that call fairseq_cli.train.main themselves
    on_cpu = not torch.cuda.is_available() or cfg.common.cpu
    trainer.autocast = bool(getattr(cfg.common, "bf16", False) and on_cpu and not cfg.common.tpu)
    if trainer.autocast:
        cfg = deepcopy(cfg)
        cfg.common.bf16 = False
        run_under_autocast(model)
    original(trainer, cfg, task, model, *args, **options)
    if trainer.autocast and trainer.is_data_parallel_master and not has_fast_bf16():
        logger.warning("this CPU has neither AMX nor AVX512-BF16, so --bf16 is slower than float32; omit it")


def run_under_autocast(model: BaseFairseqModel) -> None:
    """Make the model's products bfloat16 on a CPU; its parameters and their gradients stay float32."""
    forward = torch.autocast("cpu", torch.bfloat16)(type(model).forward)
    # a method, so that a copy of the model, such as its moving average, gets one of its own
    model.forward = MethodType(forward, model)


def has_fast_bf16() -> bool:
    """Whether this CPU multiplies matrices faster in bfloat16 than in float32."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
