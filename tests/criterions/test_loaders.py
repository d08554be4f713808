"""Loader processes are restarted in every epoch with our criteria, and kept with those of fairseq."""

import pytest
from fairseq import tasks
from helpers import FAMILIES

from tn_fairseq.core.configuration import training_config


@pytest.mark.parametrize("criterion, is_kept", [("mlm", False), ("mlm_sent_kl", False), ("masked_lm", True)])
def test_only_our_criteria_restart_the_loaders_of_fairseqs_task(data_bin, criterion, is_kept):
    cfg = training_config([data_bin, *FAMILIES["roberta"].split(), "--criterion", criterion])
    task = tasks.setup_task(cfg.task)
    task.build_criterion(cfg.criterion)
    task.load_dataset("train")
    assert task.get_batch_iterator(task.dataset("train"), max_sentences=8).reuse_dataloader == is_kept
