"""Half precision: the same numbers as with fairseq's own functions, and fewer kernels."""

from collections import Counter

import pytest
import torch
from fairseq import tasks
from fairseq.optim.fp16_optimizer import _FP16OptimizerMixin
from fairseq.trainer import Trainer
from helpers import FAMILIES, first_batch, training_flags
from torch.utils._python_dispatch import TorchDispatchMode

from tn_fairseq.core.configuration import training_config

NAMES = ("_sync_fp16_grads_to_fp32", "_sync_fp32_params_to_fp16", "zero_grad")


class Kernels(TorchDispatchMode):
    """Counts the operations by name."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.counts[function.overloadpacket.__name__] += 1
        return function(*args, **(kwargs or {}))


@pytest.fixture
def train(data_bin, tmp_path):
    """The trainer after four updates, with the operations of the last one."""

    def train_one(*more: object) -> tuple[Trainer, Counter[str]]:
        flags = [*training_flags(data_bin, tmp_path), *FAMILIES["electra"].split(), "--warmup-updates", 0]
        cfg = training_config([*flags, "--criterion", "electra", "--dropout", 0, *more])
        torch.manual_seed(1)
        task = tasks.setup_task(cfg.task)
        trainer = Trainer(cfg, task, task.build_model(cfg.model), task.build_criterion(cfg.criterion))
        trainer.begin_epoch(1)
        batch = first_batch(task, size=2)
        for _ in range(3):
            trainer.train_step([batch])
        with Kernels() as kernels:
            trainer.train_step([batch])
        return trainer, kernels.counts

    return train_one


@pytest.mark.parametrize("optimizer, scale", [("adam", 4), ("electra_adamw", 1 << 17)])  # the second overflows at first
def test_the_numbers_are_those_of_fairseq(train, monkeypatch, optimizer, scale):
    more = ["--fp16", "--fp16-no-flatten-grads", "--fp16-init-scale", scale, "--fp16-scale-window", 2]
    more += ["--optimizer", optimizer]
    ours, _ = train(*more)
    for name in NAMES:
        monkeypatch.setattr(_FP16OptimizerMixin, name, getattr(_FP16OptimizerMixin, name).__wrapped__)
    theirs, _ = train(*more)
    assert ours.get_num_updates() == theirs.get_num_updates()
    for one, other in zip(ours.model.parameters(), theirs.model.parameters()):
        assert torch.equal(one, other)


def test_an_update_launches_no_kernel_for_each_parameter(train):
    """The copies, the norm and the optimizer each take one operation, however many parameters there are."""
    trainer, counts = train("--fp16", "--fp16-no-flatten-grads", "--fp16-init-scale", 4, "--clip-norm", 1)
    parameters = len(list(trainer.model.parameters()))
    assert counts["_foreach_copy_"] == 2 and counts["_foreach_norm"] == 1
    for name in ("copy_", "zero_", "norm", "linalg_vector_norm"):
        assert counts[name] < parameters / 3, (name, counts[name])
