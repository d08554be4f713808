"""A resumed run reads each block of its epoch once, in the same batches or in others."""

from itertools import islice

import numpy as np
import pytest

from tn_fairseq.core.errors import InputError


def read(build, state, count, size, workers=1, update_freq=1, flags=(), **sizes):
    """The blocks of the next ``count`` batches of each worker, or of all, and the first worker's state after them."""
    found, states = [], []
    for worker in range(workers):
        task, _, _ = build("electra", *flags)
        task.load_dataset("train", epoch=2)
        task.cfg.update_freq = [update_freq]
        options = {"max_sentences": size, "num_shards": workers, "shard_id": worker, "seed": 1, "epoch": 2, **sizes}
        iterator = task.get_batch_iterator(task.dataset("train"), **options)
        if state is not None:
            iterator.load_state_dict(state)
        batches = iterator.next_epoch_itr()
        found += [batch["id"].tolist() if batch else [] for batch in islice(batches, count)]
        states.append(iterator.state_dict())
    return found, states[0]


@pytest.mark.parametrize(
    "parts",
    [
        [{"size": 4}, {"size": 2, "update_freq": 2}, {"size": 64}],
        [{"size": 4}, {"size": 4, "workers": 2}, {"size": 4, "workers": 3}, {"size": 4}],
        [{"size": 4}, {"size": 4, "update_freq": 3}, {"size": 99, "max_tokens": 96}],
        [{"size": 8, "workers": 2, "grouped_shuffling": True}, {"size": 5, "required_batch_size_multiple": 2}],
    ],
)
def test_other_batches_read_each_block_once(build, parts):
    state, blocks = None, []
    for number, part in enumerate(parts):
        count = 3 if number + 1 < len(parts) else None
        found, state = read(build, state, count, **part)
        assert count is None or all(len(batch) <= part["size"] for batch in found)
        blocks += sum(found, [])
    task, _, _ = build("electra")
    task.load_dataset("train")
    assert sorted(blocks) == list(range(len(task.dataset("train"))))
    assert (state["epoch"], state["iterations_in_epoch"]) == (3, 0) and "parts" not in state


def test_the_same_batches_continue_exactly_also_after_a_change(build):
    _, begun = read(build, None, 3, 8)
    for size in (8, 4):
        whole, _ = read(build, begun, None, size)
        first, state = read(build, begun, 2, size)
        assert [*first, *read(build, state, None, size)[0]] == whole
    assert len(state["parts"]) == 2


@pytest.mark.parametrize("flags", [["--seed", 7], ["--tokens-per-sample", 31], ["--sample-break-mode", "none"]])
def test_other_blocks_are_refused_inside_an_epoch(build, flags):
    _, state = read(build, None, 3, 8)
    with pytest.raises(InputError, match="stopped inside epoch 2 of other text or blocks; resume with the same data"):
        read(build, state, None, 8, flags=flags)
    at_the_end = {"version": 2, "epoch": 2, "iterations_in_epoch": 0, "shuffle": True}
    assert np.concatenate(read(build, at_the_end, None, 8, flags=flags)[0]).size
