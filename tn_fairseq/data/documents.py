"""Blocks with parts of several documents, each of which a model reads as if it were alone."""

import numpy as np
from fairseq.data import Dictionary
from torch import Tensor

from .blocks import BlockDataset


class DocumentStartsDataset(BlockDataset):
    """Blocks in which every document begins with ``<s>``, which replaces the lone ``</s>`` before the document."""

    def __init__(self, blocks: BlockDataset, dictionary: Dictionary):
        super().__init__()
        self.blocks, self.sizes = blocks, blocks.sizes
        self.first_symbol, self.separator = dictionary.bos(), dictionary.eos()

    def rows(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tokens, lengths = self.blocks.rows(indices)
        separators = tokens == self.separator
        tokens[:, 1:][separators[:, 1:] & separators[:, :-1]] = self.first_symbol
        return tokens, lengths

    def inputs(self, tokens: Tensor) -> dict[str, Tensor]:
        """More inputs of the model, which reads documents one by one: the number of each token's document, (B, T)."""
        return {"documents": tokens.eq(self.first_symbol).cumsum(dim=1)}
