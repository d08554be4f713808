"""Blocks of token ids, masked a batch at a time."""

from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset, data_utils

from ..corruption import mask_tokens


class MaskedTokensDataset(FairseqDataset):
    """Masks the blocks of another dataset: anew in every epoch, the same after every resume.

    A batch is masked as one array. Its randomness, with that of the replacements that a model will draw for it, comes
    from the seed, the epoch and the batch's own blocks, so that neither the worker that makes it nor what was drawn
    before has a say: workers draw differently, and together what one would draw alone.
    """

    def __init__(self, blocks, dictionary, seed, mask_prob, leave_unmasked_prob, random_token_prob):
        super().__init__()
        self.blocks = blocks
        self.sizes = blocks.sizes
        self.padding_index = dictionary.pad()
        self.mask_index = len(dictionary) - 1  # <mask> is the dictionary's last symbol
        self.never_masked = np.array([dictionary.bos(), dictionary.pad(), dictionary.eos(), self.mask_index])
        self.seed = seed
        self.epoch = 1
        self.probabilities = {
            "mask_prob": mask_prob,
            "leave_unmasked_prob": leave_unmasked_prob,
            "random_token_prob": random_token_prob,
            "random_token_range": (dictionary.nspecial, self.mask_index),
        }
        with data_utils.numpy_seed(seed):
            self.shuffled_indices = np.random.permutation(len(blocks))

    @property
    def can_reuse_epoch_itr_across_epochs(self):
        return True  # only the masks change, not the sizes

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return len(self.blocks)

    def num_tokens(self, index):
        return self.sizes[index]

    def num_tokens_vec(self, indices):
        return self.sizes[indices]

    def size(self, index):
        return self.sizes[index]

    def ordered_indices(self):
        return self.shuffled_indices

    def batch_by_size(self, indices, *args, **kwargs):
        batches = list(super().batch_by_size(indices, *args, **kwargs))
        # fairseq drops a last batch that is no multiple of 8, and with it the whole of a small validation set
        rest = indices[sum(map(len, batches)) :]
        return [*batches, rest] if len(rest) else batches

    def __getitem__(self, index: int):
        return index, self.blocks[index]

    def collater(self, samples: list[Any]) -> dict[str, Any]:
        """Pad and mask a list of (index, tokens (T)): -> a fairseq batch of shape (B, T) with targets where masked.

        `masked_indices`, (N), are the masked positions in the flattened batch: known here, before a GPU is asked.
        `uniform_draws`, (N) in [0, 1), decide which tokens are drawn for them.
        """
        if not samples:
            return {}
        indices, blocks = zip(*samples)
        tokens = data_utils.collate_tokens(blocks, self.padding_index).numpy()
        lengths = torch.tensor([len(block) for block in blocks])
        rng = np.random.default_rng([self.seed, self.epoch, *indices])
        maskable = ~np.isin(tokens, self.never_masked)
        src_tokens, masked = mask_tokens(tokens, maskable, rng, mask_index=self.mask_index, **self.probabilities)
        return {
            "id": torch.tensor(indices),
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "net_input": {"src_tokens": torch.from_numpy(src_tokens), "src_lengths": lengths},
            "masked_indices": torch.from_numpy(np.flatnonzero(masked)),
            # in 64 bits, for fairseq's half precision rounds all that has 32
            "uniform_draws": torch.from_numpy(rng.random(masked.sum(), dtype=np.float32).astype(np.float64)),
            "target": torch.from_numpy(np.where(masked, tokens, self.padding_index)),
        }
