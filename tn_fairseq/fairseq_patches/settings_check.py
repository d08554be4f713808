"""Refuse invalid settings with a one-line error before the first update.

fairseq ends in a traceback, and with a wrong --best-checkpoint-metric only after the first validation.
"""

import argparse
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, options, utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.logging import metrics
from fairseq.tasks import TASK_REGISTRY
from fairseq.trainer import Trainer
from hydra import compose
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from ..errors import InputError, one_line_errors
from .distributed import check_workers

PRECISIONS = ("fp16", "memory_efficient_fp16", "amp", "bf16", "memory_efficient_bf16", "tpu")


def install() -> None:
    """Check --save-dir when fairseq first uses it, and --best-checkpoint-metric when it has built the criterion."""
    checkpoint_utils.verify_checkpoint_directory = refuse_unwritable_folder(
        checkpoint_utils.verify_checkpoint_directory
    )
    checkpoint_utils.load_checkpoint = check_metric_after(checkpoint_utils.load_checkpoint)


@one_line_errors()
def check_command() -> None:
    """Check the command line of fairseq-train, fairseq-hydra-train or fairseq-validate, and of no other program.

    Raises InputError (as a one-line exit) if ``check_workers`` does, if there is no batch size, or if fairseq-validate
    gets no task. Child processes, which train on other GPUs or load data, are not checked again.
    """
    if multiprocessing.parent_process() is not None:
        return
    if _runs("train") and HydraConfig.initialized():
        check_recipe(_recipe())
    elif any(word.split("=")[0] == "--user-dir" for word in sys.argv):
        if _runs("train"):
            check_training_flags(sys.argv[1:])
        elif _runs("validate"):
            check_validation_flags(sys.argv[1:])


def check_training_flags(words: list[str]) -> None:
    """Raises InputError if the batch size is missing, or the workers or the precisions do not go together."""
    parser = _parser()
    options.add_distributed_training_args(parser)
    for flag in ("cpu", *PRECISIONS):
        parser.add_argument(f"--{flag.replace('_', '-')}", action="store_true")
    settings, _ = parser.parse_known_args(words)
    check_workers(settings, cpu=settings.cpu, gpus=torch.cuda.device_count(), environment=os.environ, in_yaml=False)
    _check_precision(settings, lambda name: f"--{name.replace('_', '-')}")
    _check_batch_size(settings)


def check_validation_flags(words: list[str]) -> None:
    """Raises InputError if fairseq-validate's arguments lack a task, or a batch size for one of our tasks."""
    settings, _ = _parser().parse_known_args(words)
    if settings.task is None:
        raise InputError("fairseq-validate needs --task; give the one used in training, such as --task electra")
    _check_batch_size(settings)


def check_recipe(recipe: DictConfig) -> None:
    """The same as ``check_training_flags`` for fairseq-hydra-train; the error names the recipe's settings."""
    workers, cpu = recipe.distributed_training, recipe.common.cpu
    check_workers(workers, cpu=cpu, gpus=torch.cuda.device_count(), environment=os.environ, in_yaml=True)
    _check_precision(recipe.common, lambda name: f"common.{name}")
    sizes = recipe.dataset.batch_size, recipe.dataset.max_tokens
    names = OmegaConf.select(recipe, "task._name"), OmegaConf.select(recipe, "criterion._name")
    if sizes == (None, None) and _are_ours(*names):
        raise InputError("no batch size; give dataset.batch_size=N (sequences) or dataset.max_tokens=N")


def refuse_unwritable_folder(verify: Callable[[str], None]) -> Callable[[str], None]:
    """``verify_checkpoint_directory`` that exits with a one-line error if no file can be written there."""

    @wraps(verify)
    @one_line_errors()
    def verify_checkpoint_directory(save_dir: str) -> None:
        try:
            verify(save_dir)
        except OSError as error:
            raise InputError(
                f"--save-dir {save_dir}: cannot be written ({error.strerror}); give a folder that you can write to"
            ) from None

    return verify_checkpoint_directory


def check_metric_after(resume: Callable) -> Callable:
    """``checkpoint_utils.load_checkpoint`` that also checks the metric, just before training starts."""

    @wraps(resume)
    def load_checkpoint(cfg: Any, trainer: Trainer, **options):
        resumed = resume(cfg, trainer, **options)
        check_metric(cfg.best_checkpoint_metric, trainer)
        return resumed

    return load_checkpoint


@one_line_errors()
def check_metric(metric: str, trainer: Trainer) -> None:
    """Raises InputError (as a one-line exit) if validation with our task or criterion would not log the metric.

    What it logs depends on the model, the criterion and its synonym table, so this validates one sequence, unless the
    metric is the loss, which is always logged.
    """
    task, criterion = trainer.task, trainer.get_criterion()
    ours = any(type(part).__module__.startswith(f"{_PLUGIN}.") for part in (task, criterion))
    if metric == "loss" or trainer.cfg.dataset.disable_validation or not ours:
        return
    dataset = task.dataset(trainer.cfg.dataset.valid_subset.split(",")[0])
    sample, _ = trainer._prepare_sample(dataset.collater([dataset[0]]))
    with metrics.aggregate(new_root=True) as logged:
        _, _, logging_output = task.valid_step(sample, trainer.get_model(), criterion)
        task.reduce_metrics([logging_output], criterion)
    names = logged.get_smoothed_values()
    if metric not in names:
        raise InputError(f"--best-checkpoint-metric {metric} is not logged; give one of {', '.join(sorted(names))}")


_PLUGIN = __name__.partition(".")[0]


def _runs(command: str) -> bool:
    """Whether this program is fairseq's command with this name."""
    main = Path(getattr(sys.modules["__main__"], "__file__", None) or "")
    return f"fairseq_cli.{command}" in sys.modules or main.parts[-2:] == ("fairseq_cli", f"{command}.py")


def _recipe() -> DictConfig:
    job = HydraConfig.get()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compose(job.job.config_name, overrides=list(job.overrides.task))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--task")
    parser.add_argument("--criterion")
    parser.add_argument("--batch-size", "--max-sentences", "--max-tokens", dest="batch_size")
    return parser


def _check_batch_size(settings: argparse.Namespace) -> None:
    if settings.batch_size is None and _are_ours(settings.task, settings.criterion):
        raise InputError("no batch size; give --batch-size N (sequences) or --max-tokens N")


def _check_precision(settings: Any, name_of: Callable[[str], str]) -> None:
    fp16 = next(filter(partial(getattr, settings), ("fp16", "memory_efficient_fp16", "amp")), None)
    if settings.memory_efficient_bf16:  # it keeps the weights in bfloat16 only
        raise InputError(f"{name_of('memory_efficient_bf16')} would lose small updates; give {name_of('bf16')}")
    if settings.bf16 and fp16:
        raise InputError(f"{name_of('bf16')} and {name_of(fp16)} are two precisions; give one of them")
    if settings.tpu and utils.xm is None:
        raise InputError(f"{name_of('tpu')} needs torch_xla, which is not installed; remove it")


def _are_ours(task: str | None, criterion: str | None) -> bool:
    """Whether the plugin defines the task or the criterion."""
    classes = TASK_REGISTRY.get(task), CRITERION_REGISTRY.get(criterion)
    return any(known is not None and known.__module__.startswith(f"{_PLUGIN}.") for known in classes)
