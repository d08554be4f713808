"""Training with several workers: check how they were launched, let them resume, and count all of their batches.

fairseq takes the number of workers from the visible GPUs, not from the launcher. On CPUs, and on machines with one GPU,
each of N processes would silently train its own model.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

import torch
from fairseq.distributed import utils as distributed_utils
from fairseq.trainer import Trainer

from ..errors import InputError

ON_CPUS = ("legacy_ddp", "no_c10d")  # two names for the same
REFUSED = {
    "fully_sharded": "weight decay and soft regularization need complete weights, not flat shards",
    "slowmo": "workers take steps of their own between synchronizations",
}


class Launch(NamedTuple):
    """The processes that a launcher started: how many, and the environment variables that tell them apart."""

    launcher: str
    size_variable: str
    rank_variable: str
    local_rank_variable: str
    size: int = 1


# Slurm's variables of a job step: SLURM_NTASKS is also set in a batch script, which runs only once
LAUNCHERS = (
    Launch("torchrun", "WORLD_SIZE", "RANK", "LOCAL_RANK"),
    Launch("srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"),
    Launch("mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    Launch("mpirun", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID"),
)


def check_workers(settings: Any, *, cpu: bool, gpus: int, environment: Mapping[str, str], in_yaml: bool) -> None:
    """Check fairseq's ``DistributedTrainingConfig`` against the machine and the launcher's environment variables.

    Raises InputError if processes would train separate models or nothing at all, if there are more workers than GPUs,
    or if the way to exchange gradients does not work. The error names the flags to add, or a recipe's settings.
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
        raise InputError(f"{size} workers on a CPU: fairseq cannot train with these flags; add {flags}, or give {one}")
    if size > 1:
        problem = f"{launch.launcher} started {launch.size} workers, but fairseq cannot connect them; add {flags}"
    else:
        problem = f"{launch.launcher} started {launch.size} processes, which would train separate models; add {flags}"
    if launch.launcher != "torchrun":
        problem += (
            ", in a shell of each process, or start one torchrun per machine (examples/launch); to train "
            f"{launch.size} models, unset {launch.size_variable}"
        )
    raise InputError(problem)


def _needed_to_join(
    settings: Any, launch: Launch, cpu: bool, gpus: int, environment: Mapping[str, str]
) -> dict[str, Any]:
    """The settings that fairseq needs so that the workers find each other; the given ones are kept if they work."""
    size, init_method = settings.distributed_world_size, settings.distributed_init_method
    if launch.launcher == "torchrun":
        if gpus and not init_method:
            # fairseq reads the rest, and also the number, from torchrun's variables
            return {"distributed_world_size": size if size > 1 else launch.size}
        rank = settings.distributed_rank
        by_hand = init_method and size == launch.size and str(rank) == environment.get(launch.rank_variable)
        return {
            "distributed_init_method": init_method or "env://",
            "distributed_world_size": launch.size,
            "distributed_rank": rank if by_hand else -1,  # -1 uses torchrun's
            "distributed_no_spawn": True,
        }
    # given a port, fairseq reads the rest from Slurm's variables
    slurm = launch.launcher == "srun" and gpus and settings.distributed_port > 0
    if launch.size == 1 or size > 1 and (init_method or slurm):
        # configured by hand; fairseq starts one worker per GPU, and without GPUs would train nothing
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
    """Raises InputError if there are more workers than GPUs."""
    size = settings.distributed_world_size
    here = _number(environment, "LOCAL_WORLD_SIZE")
    if launch.launcher == "torchrun" and not cpu and here > gpus:
        raise InputError(f"torchrun started {here} workers on a machine with {gpus} GPUs; start one per GPU")
    # under Slurm fairseq counts the GPUs of all machines
    in_slurm = environment.keys() & {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}
    if size > max(gpus, 1) and launch.size == 1 and not settings.distributed_init_method and not in_slurm:
        raise InputError(
            f"{say('distributed_world_size', size)}, but this machine has {gpus or 'no'} GPUs; give a smaller one, or "
            "start the workers with torchrun, on several machines or on a CPU (examples/launch)"
        )


def _check_torchruns_together(environment: Mapping[str, str]) -> None:
    """Raises InputError if srun or mpirun started several torchruns that are not connected."""
    together = _number(environment, "GROUP_WORLD_SIZE")
    outer = find_launch({key: value for key, value in environment.items() if key != "WORLD_SIZE"})
    if together and outer.size > together:
        raise InputError(
            f"{outer.launcher} started {outer.size} torchruns, of which only {together} are connected; give them "
            f"--nnodes {outer.size} --rdzv-backend c10d --rdzv-endpoint HOST:PORT instead of --standalone "
            f"(examples/launch); to train several models, unset {outer.size_variable}"
        )


def find_launch(environment: Mapping[str, str]) -> Launch:
    """The innermost launcher that started several processes, or a ``Launch`` of size 1 without a name."""
    for launch in LAUNCHERS:
        if _number(environment, launch.size_variable) > 1:
            return launch._replace(size=_number(environment, launch.size_variable))
    return Launch("", "", "", "")


def install() -> None:
    """Make fairseq's workers resume together and count every batch."""
    Trainer.train_step = count_every_batch(Trainer.train_step)
    distributed_utils._broadcast_object_slow = broadcast_object


def broadcast_object(obj: Any, src_rank: int, group: Any, dist_device: torch.device) -> Any:
    """Send a checkpoint from the first worker to the others.

    fairseq's own function uses torch's safe loader on the receiving side, which refuses the OmegaConf classes of a
    checkpoint. The first worker has already read the file safely.
    """
    received = [obj]
    torch.distributed.broadcast_object_list(received, src=src_rank, group=group, device=dist_device)
    return received[0]


def count_every_batch(step: Callable) -> Callable:
    """``Trainer.train_step`` that counts the batches of workers with fewer batches than others at the end of an epoch.

    With ``--update-freq`` above 1, fairseq appends an empty batch to theirs. It then omits all of their batches from
    the log and from the divisor of the gradient, but not from the gradient. We remove the empty batches.
    """

    @wraps(step)
    def train_step(trainer: Trainer, samples: Sequence, *args, **options):
        # a worker without batches must still take part in the update
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
