"""Pre-training on true negatives, as a fairseq plugin: ``fairseq-train DATA_BIN --user-dir tn_fairseq ...``."""

import argparse

import torch

# fairseq itself imports a plugin's tasks and models, but neither its criteria nor its optimizers
from . import (  # noqa: F401
    background_threads,
    criterions,
    distributed,
    divergence,
    durable_checkpoints,
    models,
    moving_average,
    optim,
    tasks,
)

# fairseq's checkpoints hold argparse.Namespace, which torch's safe loader refuses unless told: else no run would resume
torch.serialization.add_safe_globals([argparse.Namespace])

background_threads.install()
distributed.install()
divergence.install()
durable_checkpoints.install()
moving_average.install()
distributed.check_training_command()
