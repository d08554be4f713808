"""Blocks of token ids, masked one batch at a time."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from torch import Tensor

from ..core.corruption import block_keys, mask, to_uniform
from ..core.errors import InputError
from ..modules.transformer_encoder import layout
from .blocks import BlockDataset
from .drawn_folder import DrawnFolder


class MaskedTokensDataset(FairseqDataset):
    """Masks the blocks of another dataset, differently in every epoch, but identically after resuming.

    The masks of a block, and the random numbers for a model's draws, depend only on their seed, the epoch and the
    block, not on its batch or worker. With ``drawn``, an epoch has the masks of one version of the folder.
    """

    def __init__(
        self,
        blocks: BlockDataset,
        dictionary: Dictionary,
        seed: int,
        mask_prob: float,
        leave_unmasked_prob: float,
        random_token_prob: float,
        starts_word: Callable[[np.ndarray], np.ndarray] | None = None,
        order_seed: int | None = None,
        drawn: DrawnFolder | None = None,
    ):
        """`starts_word` finds the tokens that begin a word, (B, T) -> (B, T); then only complete words are masked.

        `order_seed` decides the order of the blocks, and `seed` everything else.
        """
        super().__init__()
        self.blocks = blocks
        self.sizes = blocks.sizes
        self.padding_index = dictionary.pad()
        self.mask_index = len(dictionary) - 1  # <mask> is the dictionary's last symbol
        self.is_maskable = np.ones(len(dictionary), dtype=bool)
        self.is_maskable[[dictionary.bos(), dictionary.pad(), dictionary.eos(), self.mask_index]] = False
        self.seed, self.drawn = seed, drawn
        self.epoch = 1
        self.starts_word = starts_word
        self.mask_prob = mask_prob
        self.corruption: dict[str, Any] = {
            "mask_index": self.mask_index,
            "leave_unmasked_prob": leave_unmasked_prob,
            "random_token_prob": random_token_prob,
            "random_token_range": (dictionary.nspecial, self.mask_index),
        }
        with data_utils.numpy_seed(seed if order_seed is None else order_seed):
            self.shuffled_indices = np.random.permutation(len(blocks))

    def set_epoch(self, epoch: int) -> None:
        """Choose the masks of an epoch."""
        self.epoch = epoch if self.drawn is None else self.drawn.version_of(epoch)

    def __len__(self) -> int:
        return len(self.blocks)

    def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
        return self.sizes[indices]

    def size(self, index: int) -> int:
        return self.sizes[index]

    def ordered_indices(self) -> np.ndarray:
        return self.shuffled_indices

    def batch_by_size(self, indices: np.ndarray, *args: Any, **kwargs: Any) -> list[np.ndarray]:
        batches = list(super().batch_by_size(indices, *args, **kwargs))
        # fairseq drops a last batch that is not a multiple of 8, which may be an entire small validation set
        rest = indices[sum(map(len, batches)) :]
        return [*batches, rest] if len(rest) else batches

    def __getitem__(self, index: int) -> int:
        """The index; ``collater`` reads all blocks of a batch at once."""
        return index

    def collater(self, samples: Sequence[int]) -> dict[str, Any]:
        """Read and mask the blocks of these indices -> a fairseq batch of shape (B, T) with targets where masked.

        `masked_indices`, (N), are the masked positions in the flattened batch; they save the GPU a synchronization.
        `uniform_draws`, (N) in [0, 1), are random numbers for drawing their replacements. `mask_thresholds`, (N), are
        the smallest values of ``mask_prob`` at which they are masked, in an array, which fairseq leaves on the CPU.
        `draws` are the words that a teacher drew there, and how often, (N, K) each.
        """
        if not len(samples):
            return {}
        indices = np.asarray(samples)
        tokens, token_counts = self.blocks.rows(indices)
        masked = mask(
            tokens,
            self.is_maskable[tokens],
            block_keys(self.seed, self.epoch, indices),
            self.mask_prob,
            None if self.starts_word is None else self.starts_word(tokens),
            **self.corruption,
        )
        target = np.full_like(tokens, self.padding_index)
        target.ravel()[masked.indices] = tokens.ravel()[masked.indices]
        inputs = self.blocks.inputs(torch.from_numpy(tokens))
        lengths = torch.from_numpy(token_counts)
        draws = {}
        if self.drawn is not None:
            draws["draws"] = self.drawn.of(self.epoch, indices).padded(self.drawn.draws)
            if len(draws["draws"][0]) != len(masked.indices):
                raise InputError(f"{self.drawn.path}: other positions are masked; run tn-fairseq data teach again")
        return {
            "id": torch.from_numpy(indices),
            "nsentences": len(tokens),
            "ntokens": int(token_counts.sum()),
            "net_input": {
                "src_tokens": torch.from_numpy(masked.src_tokens),
                "src_lengths": lengths,
                **inputs,
                "layout": tuple(layout(lengths, inputs.get("documents"))),
            },
            "masked_indices": torch.from_numpy(masked.indices),
            # float64, because fairseq converts float32 inputs to half precision; float32 would round more digits to 1
            "uniform_draws": torch.from_numpy(to_uniform(masked.draws, digits=24)),
            "mask_thresholds": masked.thresholds,
            "target": torch.from_numpy(target),
            **draws,
        }


def with_mask_prob(batch: dict[str, Any], mask_prob: float, padding_index: int) -> dict[str, Any]:
    """A batch of MaskedTokensDataset as it would be with a smaller ``mask_prob``."""
    if not batch:
        return batch
    is_masked = batch["mask_thresholds"] <= mask_prob
    # indices, because a Boolean mask on a GPU would have to be counted, and waited for
    masked, unmasked = (_to_device(np.flatnonzero(where), batch["target"].device) for where in (is_masked, ~is_masked))
    restored = batch["masked_indices"][unmasked]
    src_tokens, target = batch["net_input"]["src_tokens"].clone(), batch["target"].clone()
    src_tokens.view(-1)[restored] = target.view(-1)[restored]
    target.view(-1)[restored] = padding_index
    return {
        **batch,
        "net_input": {**batch["net_input"], "src_tokens": src_tokens},
        "target": target,
        **{key: batch[key][masked] for key in ("masked_indices", "uniform_draws")},
        "mask_thresholds": batch["mask_thresholds"][is_masked],
    }


def _to_device(array: np.ndarray, device: torch.device) -> Tensor:
    """A tensor on a device, without waiting for a GPU."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
