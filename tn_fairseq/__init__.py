"""Pre-training on true negatives, as a fairseq plugin: ``fairseq-train DATA_BIN --user-dir tn_fairseq ...``."""

import argparse

import torch

# fairseq itself imports a plugin's tasks and models, but neither its criteria nor its optimizers
from . import background_threads, criterions, divergence, durable_checkpoints, models, optim, tasks  # noqa: F401
from .distributed import check_training_command, count_every_batch, let_workers_resume

# fairseq's checkpoints hold argparse.Namespace, which torch's safe loader refuses unless told: else no run would resume
torch.serialization.add_safe_globals([argparse.Namespace])

background_threads.install()
divergence.install()
durable_checkpoints.install()
count_every_batch()
let_workers_resume()
check_training_command()
