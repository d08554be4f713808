"""Training with several workers: check how they were launched, and let them resume.

fairseq takes the number of workers from the visible GPUs, not from the launcher. On CPUs, and on machines with one GPU,
each of N processes would silently train its own model.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from fairseq.distributed import utils as distributed_utils

from ..core.errors import InputError
from .replacing import replaces

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


def check_workers(settings: Any, cpu: bool, say: Callable[[str, Any], str]) -> None:
    """Check fairseq's ``DistributedTrainingConfig`` against the machine and the launcher's environment variables.

    Raises InputError if processes would train separate models or nothing at all, if there are more workers than GPUs,
    or if the way to exchange gradients does not work. The error names what to add; ``say`` spells a setting.
    """
    gpus = torch.cuda.device_count()
    cpu = cpu or not gpus
    size, ddp_backend = settings.distributed_world_size, str(settings.ddp_backend)
    launch = find_launch()
    if ddp_backend in REFUSED:
        works = " or ".join(say("ddp_backend", choice) for choice in ("pytorch_ddp", "legacy_ddp")[cpu:])
        raise InputError(f"{say('ddp_backend', ddp_backend)}: {REFUSED[ddp_backend]}; give {works}")
    if size < 1:
        raise InputError(f"{say('distributed_world_size', size)} trains nothing; give the number of workers")
    _check_torchruns_together()
    here = _number("LOCAL_WORLD_SIZE")
    if launch.launcher == "torchrun" and not cpu and here > gpus:
        raise InputError(f"torchrun started {here} workers on a machine with {gpus} GPUs; start one per GPU")
    # under Slurm fairseq counts the GPUs of all machines
    in_slurm = "SLURM_STEP_NODELIST" in os.environ or "SLURM_JOB_NODELIST" in os.environ
    if size > max(gpus, 1) and launch.size == 1 and not settings.distributed_init_method and not in_slurm:
        raise InputError(
            f"{say('distributed_world_size', size)}, but this machine has {gpus or 'no'} GPUs; give a smaller one, or "
            "start the workers with torchrun, on several machines or on a CPU (examples/launch)"
        )

    needed = _needed_to_join(settings, launch, cpu, gpus)
    if cpu and max(size, launch.size) > 1:
        needed["distributed_backend"] = "gloo"
        needed["ddp_backend"] = ddp_backend if ddp_backend in ON_CPUS else ON_CPUS[0]
    missing = " ".join(say(name, value) for name, value in needed.items() if getattr(settings, name) != value)
    if missing and launch.size == 1:
        one = say("distributed_world_size", 1)
        raise InputError(f"{size} workers on a CPU cannot train with these settings; add {missing}, or give {one}")
    if missing:
        problem = f"{launch.launcher} started {launch.size} processes, which would not train one model; add {missing}"
        if launch.launcher != "torchrun":
            problem += (
                ", in a shell of each process, or start one torchrun per machine (examples/launch); to train "
                f"{launch.size} models, unset {launch.size_variable}"
            )
        raise InputError(problem)


def _needed_to_join(settings: Any, launch: Launch, cpu: bool, gpus: int) -> dict[str, Any]:
    """The settings that fairseq needs so that the workers find each other; a given one stays if it works."""
    size, init_method = settings.distributed_world_size, settings.distributed_init_method
    if launch.launcher == "torchrun":
        if gpus and not init_method:
            # fairseq reads the rest, and also the number, from torchrun's variables
            return {"distributed_world_size": size if size > 1 else launch.size}
        rank = settings.distributed_rank
        by_hand = init_method and size == launch.size and str(rank) == os.environ.get(launch.rank_variable)
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


def _check_torchruns_together() -> None:
    """Raises InputError if srun or mpirun started several torchruns that are not connected."""
    together, outer = _number("GROUP_WORLD_SIZE"), find_launch(LAUNCHERS[1:])
    if together and outer.size > together:
        raise InputError(
            f"{outer.launcher} started {outer.size} torchruns, of which only {together} are connected; give them "
            f"--nnodes {outer.size} --rdzv-backend c10d --rdzv-endpoint HOST:PORT instead of --standalone "
            f"(examples/launch); to train several models, unset {outer.size_variable}"
        )


def find_launch(launchers: tuple[Launch, ...] = LAUNCHERS) -> Launch:
    """The innermost launcher that started several processes, or a ``Launch`` of size 1 without a name."""
    for launch in launchers:
        if (size := _number(launch.size_variable)) > 1:
            return launch._replace(size=size)
    return Launch("", "", "", "")


def _number(variable: str) -> int:
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() else 0


@replaces(distributed_utils, "_broadcast_object_slow")
def broadcast_object(original: Callable, obj: Any, src_rank: int, group: Any, dist_device: torch.device) -> Any:
    """Send a checkpoint from the first worker to the others; on TPUs as fairseq does.

    fairseq's own function uses torch's safe loader on the receiving side, which refuses the OmegaConf classes of a
    checkpoint. The first worker has already read the file safely.
    """
    if distributed_utils.use_xla():
        return original(obj, src_rank, group, dist_device)
    received = [obj]
    torch.distributed.broadcast_object_list(received, src=src_rank, group=group, device=dist_device)
    return received[0]
