"""Effects of an overflow in half precision on weights, loss scale and log, step by step."""

import logging
import re

import pytest
import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.trainer import Trainer
from helpers import CRITERIA, FAMILIES, first_batch, training_flags

TOO_LARGE = 1 << 17
WINDOW = 2  # clean updates after which the loss scale doubles


@pytest.fixture
def build_trainer(data_bin, synonym_table, tmp_path):
    """Build (trainer in half precision, batch) from a family of models and additional flags."""

    def build_all(family: str, *more: object) -> tuple[Trainer, dict]:
        flags = [*training_flags(data_bin, tmp_path), *FAMILIES[family].split(), "--warmup-updates", 0]
        flags += ["--synonym-table", synonym_table, "--fp16", "--fp16-no-flatten-grads", *more]
        args = options.parse_args_and_arch(options.get_training_parser(), [str(flag) for flag in flags])
        cfg = convert_namespace_to_omegaconf(args)
        torch.manual_seed(1)
        task = tasks.setup_task(cfg.task)
        trainer = Trainer(cfg, task, task.build_model(cfg.model), task.build_criterion(cfg.criterion))
        trainer.begin_epoch(1)
        return trainer, first_batch(task, size=2)

    return build_all


def what_an_update_changes(trainer: Trainer) -> list[torch.Tensor]:
    """Copies of the weights, their float32 masters, and the optimizer's moments."""
    moments = trainer.optimizer.fp32_optimizer.optimizer.state.values()
    tensors = [*trainer.model.parameters(), *trainer.optimizer.fp32_params]
    tensors += [moment[key] for moment in moments for key in ("exp_avg", "exp_avg_sq")]
    return [tensor.detach().clone() for tensor in tensors]


def overflows(messages: list[str]) -> list[tuple[int, float]]:
    """The update and the new loss scale in each log line about an overflow."""
    notes = [message for message in messages if "overflow" in message]
    found = [re.search(r"ignoring gradient, at update (\d+), setting loss scale to: ([\d.]+)$", note) for note in notes]
    return [(int(match.group(1)), float(match.group(2))) for match in found]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("family", FAMILIES)
def test_an_overflow_skips_and_names_the_update(build_trainer, caplog, family, criterion):
    caplog.set_level(logging.INFO, "fairseq.trainer")
    flags = ["--criterion", criterion, "--fp16-init-scale", TOO_LARGE, "--fp16-scale-window", WINDOW]
    trainer, batch = build_trainer(family, *flags)
    scaler, to_gpu = trainer.optimizer.scaler, torch.Tensor.cuda
    skipped, clean = [], 0
    while not skipped or skipped[-1][0] == 1:  # until the growing loss scale overflows
        assert trainer.get_num_updates() < 12
        before, scale, updates = what_an_update_changes(trainer), scaler.loss_scale, trainer.get_num_updates()
        logged = trainer.train_step([batch])
        same = [torch.equal(old, new) for old, new in zip(before, what_an_update_changes(trainer))]
        if logged is None:
            clean = 0
            skipped.append((updates + 1, scale / 2))
            assert all(same) and trainer.get_num_updates() == updates and scaler.loss_scale == scale / 2
        else:
            clean += 1
            assert sum(same) < len(same) / 2 and trainer.get_num_updates() == updates + 1
            assert scaler.loss_scale == (2 * scale if clean % WINDOW == 0 else scale)
        assert all(torch.isfinite(tensor).all() for tensor in what_an_update_changes(trainer))
    assert skipped[0] == (1, TOO_LARGE / 2) and torch.Tensor.cuda is to_gpu
    assert overflows(caplog.messages) == skipped
