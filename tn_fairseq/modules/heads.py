"""Heads on top of an encoder, for pre-training and for fine-tuning.

B is the batch size, T the length, E the embedding size, H the hidden size, V the dictionary's size.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .dropout import Dropout
from .linear import Linear, linear
from .transformer_encoder import LAYER_NORM_EPS


class MaskedLMHead(nn.Module):
    """Scores every symbol of the dictionary with the model's word embeddings: (N, H) -> (N, V)."""

    def __init__(self, hidden_size: int, embedding_size: int, dictionary_size: int):
        super().__init__()
        self.dense = Linear(hidden_size, embedding_size)
        self.layer_norm = nn.LayerNorm(embedding_size, eps=LAYER_NORM_EPS)
        self.bias = nn.Parameter(torch.zeros(dictionary_size))

    def forward(self, hidden: Tensor, word_embeddings: Tensor) -> Tensor:
        return linear(self.layer_norm(F.gelu(self.dense(hidden))), word_embeddings, self.bias)


class ReplacedTokenHead(nn.Module):
    """One logit per position, positive for replaced: (B, T, H) -> (B, T)."""

    def __init__(self, hidden_size: int):
        super().__init__()
        self.dense = Linear(hidden_size, hidden_size)
        self.output = nn.Linear(hidden_size, 1)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.output(F.gelu(self.dense(hidden))).squeeze(-1)


class SentenceHead(nn.Module):
    """Class logits or a score from the first token, by dropout and one projection: (B, H) -> (B, classes).

    Source: Clark et al. 2020, as released.
    """

    def __init__(self, hidden_size: int, classes: int, dropout: float):
        super().__init__()
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(hidden_size, classes)

    def needed(self, tokens: Tensor) -> Tensor:
        """The indices of the first tokens in a flattened batch: (B, T) -> (B)."""
        return torch.arange(0, tokens.numel(), tokens.size(1), device=tokens.device)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.output(self.dropout(hidden))


class AnswerHead(nn.Module):
    """Logits for the first and the last token of an answer, at each position: (B, T, H) -> (B, T, 2)."""

    def __init__(self, hidden_size: int):
        super().__init__()
        self.output = nn.Linear(hidden_size, 2)

    def needed(self, tokens: Tensor) -> None:
        """All positions are."""

    def forward(self, hidden: Tensor) -> Tensor:
        return self.output(hidden)
