import pytest
import torch
from helpers import end_loaders
from omegaconf import open_dict


@pytest.fixture(autouse=True)
def no_loaders_left():
    yield
    end_loaders()


@pytest.mark.parametrize("family, workers", [("electra", 0), ("electra", 2), ("roberta", 1)])
def test_masks_change_with_the_epoch_in_loader_processes(build, family, workers):
    task, _, _ = build(family)
    task.load_dataset("train")
    iterator = task.get_batch_iterator(task.dataset("train"), max_sentences=8, num_workers=workers)
    epochs = [[batch["target"] for batch in iterator.next_epoch_itr(shuffle=False)] for _ in range(3)]
    assert iterator.epoch == 3
    for earlier, later in ((0, 1), (1, 2)):
        assert not any(torch.equal(*targets) for targets in zip(epochs[earlier], epochs[later]))


def test_validation_has_the_same_masks_every_time(build):
    task, _, _ = build("electra")
    task.load_dataset("valid")
    iterator = task.get_batch_iterator(task.dataset("valid"), max_sentences=8, num_workers=1)
    first, second = (
        [batch["target"] for batch in iterator.next_epoch_itr(shuffle=False, set_dataset_epoch=False)] for _ in range(2)
    )
    assert all(map(torch.equal, first, second))


def test_the_electra_task_restarts_loaders_without_our_criteria(build):
    task = build("electra")[0]
    with open_dict(task.cfg):
        task.cfg.pop("reuse_dataloader")  # of the criterion
    task = type(task).setup_task(task.cfg)
    task.load_dataset("train")
    assert not task.get_batch_iterator(task.dataset("train"), max_sentences=8).reuse_dataloader
