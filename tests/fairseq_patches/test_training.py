"""Overflows in half precision, step by step; moving averages; and the wait for the thread that prepares batches."""

import logging
import math
import queue
import re
import threading

import pytest
import torch
from fairseq import tasks
from fairseq.data.iterators import BackgroundConsumer
from fairseq.dataclass.configs import EMAConfig
from fairseq.models.ema.ema import EMA
from fairseq.trainer import Trainer
from helpers import FAMILIES, first_batch, training_flags

from tn_fairseq.core.configuration import training_config
from tn_fairseq.fairseq_patches import training
from tn_fairseq.modules import transformer_encoder

TOO_LARGE = 1 << 17
WINDOW = 2  # clean updates after which the loss scale doubles


@pytest.fixture
def build_trainer(data_bin, synonym_table, tmp_path):
    """Build (trainer in half precision, batch) from a family of models and additional flags."""

    def build_all(family: str, *more: object) -> tuple[Trainer, dict]:
        flags = [*training_flags(data_bin, tmp_path), *FAMILIES[family].split(), "--warmup-updates", 0]
        flags += ["--synonym-table", synonym_table, "--fp16", "--fp16-no-flatten-grads", *more]
        cfg = training_config(flags)
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


@pytest.mark.parametrize(
    "family, criterion", [("electra", "mlm_hard_correction"), ("bert", "mlm_sent_kl"), ("roberta", "mlm_soft_reg")]
)
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


def test_batches_that_are_added_up_use_no_graphs(build_trainer, monkeypatch):
    trainer, batch = build_trainer("bert", "--criterion", "mlm_hard_correction")
    allowed, forward = [], type(trainer.task).train_step

    def train_step(*args, **options):
        allowed.append(transformer_encoder._graphs_allowed)
        return forward(*args, **options)

    monkeypatch.setattr(type(trainer.task), "train_step", train_step)
    for batches in ([batch], [batch, batch], [batch, {}], [batch]):
        trainer.train_step(batches)
    assert allowed == [True, False, False, True, True]


# Moving averages


@pytest.mark.parametrize("half_precision", [False, True])
def test_only_weights_are_averaged(build, half_precision):
    model = build("electra")[1]
    if half_precision:
        model.half()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    copied = "embeddings.word_embeddings.weight"  # as fairseq is told to
    config = EMAConfig(store_ema=True, ema_decay=0.75, ema_fp32=half_precision)
    average = EMA(model, config, skip_keys={copied})
    for parameter in model.parameters():
        parameter.data.add_(1)
    average.step(model)
    for name, tensor in average.get_model().state_dict().items():
        averaged = name in dict(model.named_parameters())
        expected = before[name] + (1 if name == copied else 0.25 if averaged else 0)
        torch.testing.assert_close(tensor, expected, rtol=1e-3, atol=1e-3)
    assert "dictionary_fingerprint" in before


# The thread that prepares batches


def test_waits_for_a_thread_until_its_queue_is_full(monkeypatch):
    monkeypatch.setattr(training, "SECONDS", math.inf)
    made = []

    def batches():
        for number in range(5):
            sum(range(1_000_000))  # working, not waiting
            made.append(number)
            yield number

    room = queue.Queue(2)
    thread = BackgroundConsumer(room, batches(), 5, None)
    thread.start()
    training.wait_until_at_rest()
    assert made == [0, 1, 2] and thread.is_alive()  # two in the queue, one waiting for room
    for _ in range(5):
        room.get()
    training.wait_until_at_rest()
    assert made == [0, 1, 2, 3, 4]


def test_the_wait_for_a_busy_thread_ends(monkeypatch):
    monkeypatch.setattr(training, "SECONDS", 0)
    go_on, works = [True], threading.Event()

    def busy():
        works.set()
        while go_on[0]:
            pass
        yield 1

    thread = BackgroundConsumer(queue.Queue(2), busy(), 1, None)
    thread.start()
    works.wait()
    try:
        training.wait_until_at_rest()
        assert thread.is_alive()
    finally:
        go_on[0] = False
