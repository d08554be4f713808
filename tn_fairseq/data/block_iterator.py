"""Batches of an epoch, of which a resumed run reads the rest, even with other batches or workers."""

import zlib
from copy import copy
from itertools import chain
from typing import Any

import numpy as np
from fairseq.data.iterators import EpochBatchIterator

from ..core.errors import InputError


class BlockIterator(EpochBatchIterator):
    """fairseq's iterator, whose place in an epoch is the blocks that were read instead of a number of batches.

    A checkpoint lists the parts of its epoch: how batches were made, and how many each worker read. If they are now
    made in another way, the rest of the epoch is the blocks that no part has read, in new batches.
    """

    batching: dict[str, Any]  # what decides the batches
    parts: tuple[dict[str, Any], ...] = ()  # the earlier parts of the epoch that has a rest
    rest: tuple[int, list] = (0, [])  # an epoch and its batches

    def set_batching(self, sizes: dict[str, Any], update_freq: Any) -> None:
        """Remember the arguments of ``batch_by_size``, and the batches of each update."""
        workers = {"num_shards": self.num_shards, "grouped_shuffling": self.grouped_shuffling}
        self.batching = {"sizes": sizes, "update_freq": list(update_freq), **workers}

    @property
    def frozen_batches(self) -> Any:
        """The batches before they are shuffled and divided among workers."""
        epoch, batches = self.rest
        return batches if epoch == self.epoch else super().frozen_batches

    def state_dict(self) -> dict[str, Any]:
        """fairseq's state, with the parts of an epoch that has begun."""
        state = super().state_dict()
        if not state["iterations_in_epoch"]:
            return state
        parts = self.parts if self.rest[0] == self.epoch else ()
        last = {"read": state["iterations_in_epoch"], **self.batching}
        return {**state, "blocks": self._fingerprint(), "parts": [*parts, last]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raises InputError if the checkpoint is inside an epoch of other blocks."""
        parts = state_dict.get("parts", [])
        if parts and state_dict["blocks"] != self._fingerprint():
            raise InputError(
                f"the checkpoint stopped inside epoch {state_dict['epoch']} of other text or blocks; resume with the "
                "same data, --seed, --tokens-per-sample and --sample-break-mode, or give --finetune-from-model FILE "
                "and another --save-dir"
            )
        self.epoch = state_dict["epoch"]
        if parts and parts[-1] == {"read": parts[-1]["read"], **self.batching}:
            parts = parts[:-1]
        elif parts:
            state_dict = {**state_dict, "iterations_in_epoch": 0}
        for part in parts:
            self._leave_out(part, state_dict["shuffle"])
        if parts:
            self.parts, self.rest = tuple(parts), (self.epoch, self._batches(self.batching["sizes"]))
        super().load_state_dict(state_dict)

    def _batches(self, sizes: dict[str, Any]) -> list:
        return self.dataset.batch_by_size(np.concatenate(self.frozen_batches), **sizes)

    def _leave_out(self, part: dict[str, Any], shuffle: bool) -> None:
        """Make the rest the blocks that no worker has read in this part."""
        past, read, workers = copy(self), set[int](), range(part["num_shards"])
        past.rest = self.epoch, self._batches(part["sizes"])
        past.num_shards, past.grouped_shuffling = len(workers), part["grouped_shuffling"]
        for worker in workers:
            past.shard_id = worker
            read.update(chain(*past.ordered_batches(self.epoch, False, shuffle)[: part["read"]]))
        blocks = np.concatenate(self.frozen_batches)
        self.rest = self.epoch, [blocks[~np.isin(blocks, list(read))]]

    def _fingerprint(self) -> int:
        """Of the sizes of all blocks, and of their order before the batches are shuffled."""
        order = self.dataset.ordered_indices()
        return zlib.crc32(np.ascontiguousarray(self.dataset.sizes[order]).tobytes(), zlib.crc32(order.tobytes()))
