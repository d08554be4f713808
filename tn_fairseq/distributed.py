"""Many workers, one model: checked before they meet, as fairseq imports the plugin; made to resume, and to count right.

fairseq takes its number of workers from the GPUs it sees, not from the launcher: on a CPU, and on machines of one GPU,
each of N processes would silently train a model of its own.
"""

import argparse
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq import options
from fairseq.distributed import utils as distributed_utils
from fairseq.trainer import Trainer
from hydra import compose
from hydra.core.hydra_config import HydraConfig

from .errors import InputError, one_line_errors

ON_CPUS = ("legacy_ddp", "no_c10d")  # one under two names
REFUSED = {
    "fully_sharded": "weight decay and soft regularization need whole weights, not flat pieces",
    "slowmo": "workers take steps of their own between meetings",
}


class Launch(NamedTuple):
    """The processes that a launcher started: how many, and the environment variables that tell them apart."""

    launcher: str
    size_variable: str
    rank_variable: str
    local_rank_variable: str
    size: int = 1


# in srun's own steps only: SLURM_NTASKS is set in a batch script, too, of which there is but one
LAUNCHERS = (
    Launch("torchrun", "WORLD_SIZE", "RANK", "LOCAL_RANK"),
    Launch("srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"),
    Launch("mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    Launch("mpirun", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID"),
)


@one_line_errors()
def check_training_command() -> None:
    """Check the workers of the fairseq-train or fairseq-hydra-train that imports this plugin; of no other program.

    Raises InputError (as a one-line exit) for what ``check_workers`` refuses. Processes that this one starts, be it to
    train on other GPUs or to load data, are not checked again.
    """
    main = Path(getattr(sys.modules["__main__"], "__file__", None) or "")
    trains = "fairseq_cli.train" in sys.modules or main.parts[-2:] == ("fairseq_cli", "train.py")
    if not trains or multiprocessing.parent_process() is not None:
        return
    if HydraConfig.initialized():
        job = HydraConfig.get()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            recipe = compose(job.job.config_name, overrides=list(job.overrides.task))
        settings, cpu, in_yaml = recipe.distributed_training, recipe.common.cpu, True
    elif any(word.split("=")[0] == "--user-dir" for word in sys.argv):
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        options.add_distributed_training_args(parser)
        parser.add_argument("--cpu", action="store_true")
        settings, _ = parser.parse_known_args()
        cpu, in_yaml = settings.cpu, False
    else:
        return
    check_workers(settings, cpu=cpu, gpus=torch.cuda.device_count(), environment=os.environ, in_yaml=in_yaml)


def check_workers(settings: Any, *, cpu: bool, gpus: int, environment: Mapping[str, str], in_yaml: bool) -> None:
    """Check fairseq's ``DistributedTrainingConfig`` against the machine, and what the environment says of a launcher.

    Raises InputError for processes that would train models of their own or nothing at all, for more workers than GPUs,
    and for ways to exchange gradients that do not work; it names the flags to add, or a recipe's settings.
    """
    cpu = cpu or not gpus
    say = _in_yaml if in_yaml else _as_flag
    size, ddp_backend = settings.distributed_world_size, str(settings.ddp_backend)
    launch = find_launch(environment)
    if ddp_backend in REFUSED:
        works = " or ".join(
            say("ddp_backend", choice) for choice in (["legacy_ddp"] if cpu else ["pytorch_ddp", "legacy_ddp"])
        )
        raise InputError(f"{say('ddp_backend', ddp_backend)}: {REFUSED[ddp_backend]}; give {works}")
    if size < 1:
        raise InputError(f"{say('distributed_world_size', size)} trains nothing; give the number of workers")
    _check_torchruns_together(environment)
    _check_gpus(settings, launch, cpu, gpus, environment, say)

    needed = _needed_to_join(settings, launch, cpu, gpus, environment)
    workers = max(size, launch.size)
    if cpu and workers > 1:
        needed["distributed_backend"] = "gloo"
        needed["ddp_backend"] = ddp_backend if ddp_backend in ON_CPUS else ON_CPUS[0]
    missing = [say(name, value) for name, value in needed.items() if getattr(settings, name) != value]
    if not missing:
        return
    flags = " ".join(missing)
    if size > 1 and launch.size == 1:
        one = say("distributed_world_size", 1)
        raise InputError(
            f"{size} workers on a CPU: fairseq cannot train with them like this; add {flags}, or give {one}"
        )
    if size > 1:
        problem = f"{launch.launcher} started {launch.size} workers, which fairseq cannot join yet; add {flags}"
    else:
        problem = f"{launch.launcher} started {launch.size} processes, each to train a model of its own; add {flags}"
    if launch.launcher != "torchrun":
        problem += (
            ", in a shell of each process, or start one torchrun a machine (examples/launch); to train "
            f"{launch.size} models, unset {launch.size_variable}"
        )
    raise InputError(problem)


def _needed_to_join(
    settings: Any, launch: Launch, cpu: bool, gpus: int, environment: Mapping[str, str]
) -> dict[str, Any]:
    """What fairseq must be told so that the workers find each other, with what it has been told where that will do."""
    size, init_method = settings.distributed_world_size, settings.distributed_init_method
    if launch.launcher == "torchrun":
        if gpus and not init_method:
            # fairseq reads the rest from torchrun's variables, and the number, too
            return {"distributed_world_size": size if size > 1 else launch.size}
        rank = settings.distributed_rank
        by_hand = init_method and size == launch.size and str(rank) == environment.get(launch.rank_variable)
        return {
            "distributed_init_method": init_method or "env://",
            "distributed_world_size": launch.size,
            "distributed_rank": rank if by_hand else -1,  # -1 takes torchrun's
            "distributed_no_spawn": True,
        }
    # from Slurm's variables fairseq reads the rest as soon as it is given a port
    slurm = launch.launcher == "srun" and gpus and settings.distributed_port > 0
    if launch.size == 1 or size > 1 and (init_method or slurm):
        # told by hand; fairseq starts as many workers as there are GPUs, and without them would train nothing
        return {"distributed_no_spawn": True} if size > 1 and not gpus else {}
    return {
        "distributed_init_method": "tcp://HOST:PORT",
        "distributed_world_size": launch.size,
        "distributed_rank": f"${launch.rank_variable}",
        **({} if cpu else {"device_id": f"${launch.local_rank_variable}"}),
        "distributed_no_spawn": True,
    }


def _check_gpus(
    settings: Any,
    launch: Launch,
    cpu: bool,
    gpus: int,
    environment: Mapping[str, str],
    say: Callable[[str, Any], str],
) -> None:
    """Raises InputError where there are more workers than GPUs."""
    size = settings.distributed_world_size
    here = _number(environment, "LOCAL_WORLD_SIZE")
    if launch.launcher == "torchrun" and not cpu and here > gpus:
        raise InputError(f"torchrun started {here} workers on a machine of {gpus} GPUs; start one a GPU")
    # under Slurm fairseq counts the GPUs of all machines
    in_slurm = environment.keys() & {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}
    if size > max(gpus, 1) and launch.size == 1 and not settings.distributed_init_method and not in_slurm:
        raise InputError(
            f"{say('distributed_world_size', size)}, but this machine has {gpus or 'no'} GPUs; give a smaller one, or "
            "start the workers with torchrun, on several machines or on a CPU (examples/launch)"
        )


def _check_torchruns_together(environment: Mapping[str, str]) -> None:
    """Raises InputError where srun or mpirun started several torchruns that do not know of each other."""
    together = _number(environment, "GROUP_WORLD_SIZE")
    outer = find_launch({key: value for key, value in environment.items() if key != "WORLD_SIZE"})
    if together and outer.size > together:
        raise InputError(
            f"{outer.launcher} started {outer.size} torchruns, of which only {together} know of each other; give them "
            f"--nnodes {outer.size} --rdzv-backend c10d --rdzv-endpoint HOST:PORT instead of --standalone "
            f"(examples/launch); to train several models, unset {outer.size_variable}"
        )


def find_launch(environment: Mapping[str, str]) -> Launch:
    """The launcher nearest to this process that started more than one; else one process of no launcher."""
    for launch in LAUNCHERS:
        if _number(environment, launch.size_variable) > 1:
            return launch._replace(size=_number(environment, launch.size_variable))
    return Launch("", "", "", "")


def install() -> None:
    """Make fairseq's workers resume together and count every batch; it has no hook for either."""
    Trainer.train_step = count_every_batch(Trainer.train_step)
    distributed_utils._broadcast_object_slow = broadcast_object


def broadcast_object(obj: Any, src_rank: int, group: Any, dist_device: torch.device) -> Any:
    """Hand a checkpoint from the first worker to the others.

    The first worker has read the file with torch's safe loader. With that one fairseq's own function reads what comes
    from the first worker, too; but it holds OmegaConf's classes, which that loader refuses.
    """
    received = [obj]
    torch.distributed.broadcast_object_list(received, src=src_rank, group=group, device=dist_device)
    return received[0]


def count_every_batch(step: Callable) -> Callable:
    """``Trainer.train_step``, made to count the batches of a worker that has fewer than others as an epoch ends.

    With ``--update-freq`` above 1 fairseq lays an empty batch behind them, and forgets them all in what it logs and in
    what it divides the gradient by, though not in the gradient. Without empty batches it has nothing to forget.
    """

    @wraps(step)
    def train_step(trainer: Trainer, samples: Sequence, *args, **options):
        # a worker without any still has to meet the others
        return step(trainer, [sample for sample in samples if sample] or samples[:1], *args, **options)

    return train_step


def _number(environment: Mapping[str, str], variable: str) -> int:
    value = environment.get(variable, "")
    return int(value) if value.isdecimal() else 0


def _as_flag(name: str, value: Any) -> str:
    flag = "--" + name.replace("_", "-")
    return flag if value is True else f"{flag} {value}"


def _in_yaml(name: str, value: Any) -> str:
    return f"distributed_training.{name}={str(value).lower() if value is True else value}"
