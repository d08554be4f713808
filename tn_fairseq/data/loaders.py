"""Loader processes that know the current epoch."""

from functools import wraps

from fairseq.data.iterators import EpochBatchIterator
from fairseq.tasks import FairseqTask


def restart_loaders_each_epoch(task: FairseqTask) -> None:
    """Make fairseq restart a task's loader processes in every epoch.

    If ``--num-workers`` is above 0 (the default is 1), fairseq keeps them and their copy of the dataset. They never see
    a later epoch: they would repeat the masks of the first epoch, and a resumed run would draw different ones.
    """
    build = task.get_batch_iterator

    @wraps(build)
    def get_batch_iterator(*args, **options) -> EpochBatchIterator:
        iterator = build(*args, **options)
        iterator.reuse_dataloader = False
        return iterator

    task.get_batch_iterator = get_batch_iterator
