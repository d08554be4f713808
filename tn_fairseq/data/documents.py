"""Blocks with parts of several documents, each of which a model reads as if it were alone."""

import torch
from fairseq.data import BaseWrapperDataset, Dictionary, FairseqDataset
from torch import Tensor


class DocumentStartsDataset(BaseWrapperDataset):
    """Blocks in which every document begins with ``<s>``, which replaces the lone ``</s>`` before the document."""

    def __init__(self, blocks: FairseqDataset, dictionary: Dictionary):
        super().__init__(blocks)
        self.first_symbol, self.separator = dictionary.bos(), dictionary.eos()

    def __getitem__(self, index: int) -> Tensor:
        tokens = self.dataset[index]
        separators = tokens.eq(self.separator)
        lone = torch.cat([separators.new_zeros(1), separators[1:] & separators[:-1]])
        return tokens.masked_fill(lone, self.first_symbol)

    def inputs(self, tokens: Tensor) -> dict[str, Tensor]:
        """More inputs of the model, which reads documents one by one: the number of each token's document, (B, T)."""
        return {"documents": tokens.eq(self.first_symbol).cumsum(dim=1)}
