"""Blocks of token ids, masked one batch at a time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from torch import Tensor

from ..corruption import mask_tokens, masking_numbers, masking_thresholds


class MaskedTokensDataset(FairseqDataset):
    """Masks the blocks of another dataset, differently in every epoch, but identically after resuming.

    The masks of a block, and the random numbers for a model's draws, depend only on the seed, the epoch and the block,
    not on its batch or worker.
    """

    def __init__(
        self,
        blocks: FairseqDataset,
        dictionary: Dictionary,
        seed: int,
        mask_prob: float,
        leave_unmasked_prob: float,
        random_token_prob: float,
        starts_word: Callable[[np.ndarray], np.ndarray] | None = None,
    ):
        """`starts_word` finds the tokens that begin a word, (B, T) -> (B, T); with it, only complete words are masked.

        If `blocks` has a function `inputs`, it makes more inputs of the model from the padded text, (B, T).
        """
        super().__init__()
        self.blocks = blocks
        self.sizes = blocks.sizes
        self.padding_index = dictionary.pad()
        self.mask_index = len(dictionary) - 1  # <mask> is the dictionary's last symbol
        self.never_masked = np.array([dictionary.bos(), dictionary.pad(), dictionary.eos(), self.mask_index])
        self.seed = seed
        self.epoch = 1
        self.starts_word = starts_word
        self.inputs: Callable[[Tensor], dict[str, Tensor]] | None = getattr(blocks, "inputs", None)
        self.probabilities: dict[str, Any] = {
            "mask_prob": mask_prob,
            "leave_unmasked_prob": leave_unmasked_prob,
            "random_token_prob": random_token_prob,
            "random_token_range": (dictionary.nspecial, self.mask_index),
        }
        with data_utils.numpy_seed(seed):
            self.shuffled_indices = np.random.permutation(len(blocks))

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

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

    def __getitem__(self, index: int) -> tuple[int, Tensor]:
        return index, self.blocks[index]

    def collater(self, samples: list[Any]) -> dict[str, Any]:
        """Pad and mask a list of (index, tokens (T)) -> a fairseq batch of shape (B, T) with targets where masked.

        `masked_indices`, (N), are the masked positions in the flattened batch; they save the GPU a synchronization.
        `uniform_draws`, (N) in [0, 1), are random numbers for drawing their replacements. `mask_thresholds`, (N), are
        the smallest values of ``mask_prob`` at which they are masked.
        """
        if not samples:
            return {}
        indices, blocks = zip(*samples)
        text = data_utils.collate_tokens(blocks, self.padding_index)
        tokens = text.numpy()
        lengths = torch.tensor([len(block) for block in blocks])
        numbers = masking_numbers(self.seed, self.epoch, indices, lengths.tolist())
        maskable = ~np.isin(tokens, self.never_masked)
        starts_word = None if self.starts_word is None else self.starts_word(tokens)
        thresholds = masking_thresholds(maskable, numbers, starts_word)
        src_tokens, masked = mask_tokens(tokens, thresholds, numbers, mask_index=self.mask_index, **self.probabilities)
        return {
            "id": torch.tensor(indices),
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "net_input": {
                "src_tokens": torch.from_numpy(src_tokens),
                "src_lengths": lengths,
                **(self.inputs(text) if self.inputs else {}),
            },
            "masked_indices": torch.from_numpy(np.flatnonzero(masked)),
            # float64, because fairseq converts float32 inputs to half precision
            "uniform_draws": torch.from_numpy(numbers.draw[masked].astype(np.float64)),
            "mask_thresholds": torch.from_numpy(thresholds[masked]),
            "target": torch.from_numpy(np.where(masked, tokens, self.padding_index)),
        }


def with_mask_prob(batch: dict[str, Any], mask_prob: float, padding_index: int) -> dict[str, Any]:
    """A batch of MaskedTokensDataset as it would be with a smaller ``mask_prob``."""
    if not batch:
        return batch
    masked = batch["mask_thresholds"] <= mask_prob
    restored = batch["masked_indices"][~masked]
    src_tokens, target = batch["net_input"]["src_tokens"].clone(), batch["target"].clone()
    src_tokens.view(-1)[restored] = target.view(-1)[restored]
    target.view(-1)[restored] = padding_index
    return {
        **batch,
        "net_input": {**batch["net_input"], "src_tokens": src_tokens},
        "target": target,
        **{key: batch[key][masked] for key in ("masked_indices", "uniform_draws", "mask_thresholds")},
    }
