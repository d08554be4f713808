"""Refuse invalid settings of fairseq-train, fairseq-hydra-train and fairseq-validate with a one-line error.

fairseq ends in a traceback, or trains something else. Programs that call fairseq's functions are not checked.
"""

import argparse
import logging
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

from fairseq import options, utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.data import data_utils
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed import utils as distributed_utils
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.optim import OPTIMIZER_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from fairseq.tasks.masked_lm import MaskedLMTask
from hydra import compose
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from torch.multiprocessing import ProcessExitedException

from ..core.checkpoints import load_checkpoint, registered_name
from ..core.errors import InputError, one_line_errors
from ..core.flags import explain
from ..criterions import MaskedLMCriterion
from ..models.electra import ElectraModel
from .bf16 import forget_the_tpu
from .replacing import replaces
from .workers import check_workers

logger = logging.getLogger(__name__)
_PLUGIN = __name__.partition(".")[0]
# warnings about how fairseq calls Hydra and torch, about which a user can do nothing
for _part in (
    "hydra.experimental",
    "version_base",
    "@package",
    "ConfigStore schema",
    "strict flag",
    "cuda.amp",
    "pin_memory",
):
    warnings.filterwarnings("ignore", rf"(?s).*{re.escape(_part)}")


def is_ours(kind: type | None) -> bool:
    """Whether the plugin defines a class, or it is the criterion of an objective, which users can define."""
    return kind is not None and (kind.__module__.startswith(f"{_PLUGIN}.") or issubclass(kind, MaskedLMCriterion))


@replaces(options, "parse_args_and_arch")
@one_line_errors()
def parse_args_and_arch(original: Callable, *args: Any, **kwargs: Any) -> argparse.Namespace:
    """Raises InputError (as a one-line exit) for flags that do not exist or have an invalid value.

    Also if fairseq-validate gets no task, and for ``--bf16 --fp16``. argparse prints a hundred lines of usage first.
    """
    parser = args[0] if args else kwargs["parser"]
    has_own_error = "error" in vars(parser) or type(parser).error is not argparse.ArgumentParser.error
    try:
        with nullcontext() if has_own_error else patch.object(parser, "error", partial(_refuse_flags, parser)):
            namespace = original(*args, **kwargs)
    except SyntaxError as error:  # fairseq evaluates --lr and other lists as Python
        raise InputError(f"{error.text}: not a number; write numbers as 0.0005 or 5e-4, with a point") from None
    except KeyError as error:
        if error.args != (None,):
            raise
        raise InputError(
            "fairseq-validate needs --task; give the one used in training, such as --task electra"
        ) from None
    except ValueError as error:
        if "--fp16 and --tpu" not in str(error):  # --bf16 implies --tpu
            raise
        raise InputError("--fp16 and --bf16 (or --tpu) are two precisions; give one of them") from None
    except RuntimeError as error:
        if error.args:
            raise
        raise InputError("no model; give --arch, such as --arch electra_small") from None
    schedule = (getattr(namespace, name, "") for name in ("lr_scheduler", "total_num_update"))
    if tuple(schedule) == ("polynomial_decay", None):
        raise InputError("--lr-scheduler polynomial_decay needs --total-num-update N, usually the same as --max-update")
    return namespace


def _refuse_flags(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    """Raises InputError with argparse's message, and with names that are similar to the wrong one."""
    message = explain(parser, message, "no --task, --arch, --criterion or other part of this run has it")
    raise InputError(message.replace("invalid <lambda> value", "not a number"))


@replaces(distributed_utils, "call_main")
@one_line_errors()
def call_main(original: Callable, cfg: Any, main: Callable, **kwargs: Any) -> None:
    """Check the settings first; use the GPU or CPU if ``--bf16`` is given without a TPU."""
    code = getattr(main, "__code__", None)  # a callable object has none
    command = Path(code.co_filename).parts[-2:] if code and _is_complete(cfg) else ()
    if command == ("fairseq_cli", "train.py"):
        check_settings(cfg)
    elif command == ("fairseq_cli", "validate.py"):
        _check_batch_size(cfg, _as_flag)
        path = cfg.common_eval.path
        if path is None or not Path(path.partition(":")[0]).is_file():
            raise InputError(f"--path {path or 'is missing'}: name a checkpoint of fairseq-train")
        if kwargs.get("override_args"):
            _check_overrides(path, vars(kwargs["override_args"]))
    forget_the_tpu(cfg)
    try:
        original(cfg, main, **kwargs)
    except ProcessExitedException as error:  # a worker of several that fairseq started has printed its error
        sys.exit(error.exit_code if error.exit_code > 0 else f"error: {error}")


def _check_overrides(path: str, given: dict[str, Any]) -> None:
    """Raises InputError for a task or criterion that fairseq-validate would not use, because it uses the checkpoint's.

    With ``--mask-prob``, the share does not change over the run.
    """
    for part, registry in (("task", TASK_REGISTRY), ("criterion", CRITERION_REGISTRY)):
        name = given.get(part)
        saved = registered_name(load_checkpoint(path)["cfg"][part], part) if name else None
        kinds = [registry.get(name), registry.get(saved)]
        if any(map(is_ours, kinds)) and len({getattr(kind, "__name__", None) for kind in kinds}) > 1:  # not an alias
            raise InputError(
                f"--{part} {name}: fairseq-validate uses the checkpoint's, which is {saved}; give --{part} {saved}"
            )
    if "mask_prob" in given:
        given.setdefault("final_mask_prob", None)


def _is_complete(cfg: Any) -> bool:
    """Whether a configuration has all settings that are checked, as those of fairseq's commands do."""
    if not isinstance(cfg, DictConfig) or not {"model", "task", "criterion"} <= cfg.keys():
        return False
    known = FairseqConfig()
    for name in ("common", "common_eval", "dataset", "distributed_training", "optimization"):
        group = cfg.get(name)
        if not isinstance(group, DictConfig) or not getattr(known, name).__dataclass_fields__.keys() <= group.keys():
            return False
    return True


@one_line_errors()
def check_recipe() -> None:
    """Check the recipe if this program is fairseq-hydra-train, which imports the plugin in the middle of a run."""
    main = Path(getattr(sys.modules["__main__"], "__file__", None) or "")
    if HydraConfig.initialized() and ("fairseq_cli.hydra_train" in sys.modules or main.name == "hydra_train.py"):
        job = HydraConfig.get()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            recipe = compose(job.job.config_name, overrides=list(job.overrides.task))
        check_settings(recipe, _in_yaml)
        save_dir, folder = recipe.checkpoint.save_dir, OmegaConf.to_container(job.run, resolve=False)["dir"]
        if _has_ours(recipe) and "${now:" in folder and job.job.chdir is not False and not Path(save_dir).is_absolute():
            raise InputError(
                f"checkpoint.save_dir={save_dir} is in a new folder of each run, {job.run.dir}, so no run would "
                "resume; give its absolute path, or hydra.run.dir=FOLDER"
            )


def _as_flag(group: str, name: str, value: Any = True) -> str:
    flag = "--" + name.replace("_", "-")
    return flag if value is True else f"{flag} {value}"


def _in_yaml(group: str, name: str, value: Any = True) -> str:
    return f"{group}.{name}={'true' if value is True else value}"


def check_settings(cfg: Any, say: Callable[..., str] = _as_flag) -> None:
    """Check a configuration of fairseq-train; ``say`` spells a setting in errors.

    Raises InputError if ``check_workers`` does, if precisions exclude each other, and without a batch size.
    """
    check_workers(cfg.distributed_training, cfg.common.cpu, partial(say, "distributed_training"))
    common = cfg.common
    if common.memory_efficient_bf16:  # it keeps the weights in bfloat16 only
        raise InputError(
            f"{say('common', 'memory_efficient_bf16')} would lose small updates; give {say('common', 'bf16')}"
        )
    for other in ("fp16", "memory_efficient_fp16", "amp"):
        if common.bf16 and common[other]:
            two = f"{say('common', 'bf16')} and {say('common', other)}"
            raise InputError(f"{two} are two precisions; give one of them")
    for name in ("amp", "memory_efficient_fp16"):
        if common[name] and _has_ours(cfg):
            other = " ".join(say("common", flag) for flag in ("fp16", "fp16_no_flatten_grads"))
            raise InputError(f"{say('common', name)} does not work with our models and optimizer; give {other}")
    # as a flag, --bf16 implies it
    if common.tpu and utils.xm is None and (not common.bf16 or say is _in_yaml or "--tpu" in sys.argv):
        raise InputError(f"{say('common', 'tpu')} needs torch_xla, which is not installed; remove it")
    if not 0 <= common.seed < 1 << 31:
        raise InputError(f"{say('common', 'seed', common.seed)}: must be non-negative and below 2**31")
    if min(cfg.optimization.update_freq) < 1:
        raise InputError(f"{say('optimization', 'update_freq', min(cfg.optimization.update_freq))}: must be positive")
    _check_batch_size(cfg, say)
    _check_task(cfg)
    _check_warmup(cfg, say)
    if is_ours(TASK_REGISTRY.get(getattr(cfg.task, "_name", None))):
        _check_subsets(cfg, say)


def _check_warmup(cfg: Any, say: Callable[..., str]) -> None:
    """Warn if the run ends before its warm-up, which is easily forgotten when a command is shortened."""
    updates, warmup = cfg.optimization.max_update, getattr(cfg.get("lr_scheduler"), "warmup_updates", None) or 0
    if 0 < updates <= warmup:
        logger.warning(
            f"{say('lr_scheduler', 'warmup_updates', warmup)}: the learning rate does not reach "
            f"{say('optimization', 'lr')} in {say('optimization', 'max_update', updates)}"
        )


def _check_subsets(cfg: Any, say: Callable[..., str]) -> None:
    """Raises InputError if validation would read the training data, or ignore a split of the data folder."""
    dataset = cfg.dataset
    if not dataset.disable_validation and dataset.train_subset in dataset.valid_subset.split(","):
        # fairseq would continue the epoch of training for validation
        raise InputError(
            f"{say('dataset', 'valid_subset', dataset.valid_subset)} has the training data; leave "
            f"{dataset.train_subset} out"
        )
    if not cfg.task.get("data"):  # of a recipe; fairseq says that it is missing
        return
    try:
        data_utils.raise_if_valid_subsets_unintentionally_ignored(cfg)
    except OSError:  # the task says that the folder is missing
        return
    except ValueError as error:
        combine, ignore = (say("dataset", f"{name}_valid_subsets") for name in ("combine", "ignore_unused"))
        splits = str(error).partition("[")[2].partition("]")[0]
        raise InputError(f"{cfg.task.data} also has {splits}; give {combine} or {ignore}") from None


def _check_task(cfg: Any) -> None:
    """Raises InputError if an objective gets a task that does not mask words, or ELECTRA the criterion masked_lm."""
    task, criterion, arch = (getattr(cfg.get(part), "_name", None) for part in ("task", "criterion", "model"))
    if criterion == "masked_lm" and issubclass(ARCH_MODEL_REGISTRY.get(arch, object), ElectraModel):
        raise InputError("the criterion masked_lm trains no discriminator; give the criterion electra")
    has_objective = issubclass(CRITERION_REGISTRY.get(criterion, object), MaskedLMCriterion)
    if has_objective and not issubclass(TASK_REGISTRY.get(task, MaskedLMTask), MaskedLMTask):
        raise InputError(
            f"the criterion {criterion} does not work with the task {task}, because that masks no words; give the task "
            "electra or masked_lm"
        )


def _has_ours(cfg: Any) -> bool:
    """Whether the task, the criterion or the optimizer is one of ours."""
    registries = {"task": TASK_REGISTRY, "criterion": CRITERION_REGISTRY, "optimizer": OPTIMIZER_REGISTRY}
    names = ((registry, getattr(cfg.get(part), "_name", None)) for part, registry in registries.items())
    return any(is_ours(registry.get(name)) for registry, name in names)


def _check_batch_size(cfg: Any, say: Callable[..., str]) -> None:
    if _has_ours(cfg) and cfg.dataset.batch_size is None and cfg.dataset.max_tokens is None:
        sequences, tokens = (say("dataset", name, "N") for name in ("batch_size", "max_tokens"))
        raise InputError(f"no batch size; give {sequences} (sequences) or {tokens}")
    multiple = cfg.dataset.required_batch_size_multiple
    for name in ("batch_size", "batch_size_valid"):
        size = cfg.dataset[name] or 0
        if _has_ours(cfg) and size > multiple and size % multiple:
            one = say("dataset", "required_batch_size_multiple", 1)
            raise InputError(
                f"{say('dataset', name, size)}: fairseq would round it to a multiple of {multiple}; give {one}"
            )
