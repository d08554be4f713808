"""Masked prediction: what models say about masked words, and which predictions are false negatives."""

from typing import Any, NamedTuple, Optional, TypedDict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import corruption


class Batch(TypedDict):
    """What an objective trains on: B blocks of T tokens, of which N positions are masked."""

    net_input: dict[str, Any]  # src_tokens, (B, T), and what else the model reads
    target: Tensor  # (B, T), the gold tokens at the masked positions, and padding elsewhere
    masked_tokens: Tensor  # (B, T) boolean
    is_token: Tensor  # (B, T) boolean, not padding
    masked_indices: Optional[Tensor]  # (N), as in ``corruption.flat_indices``
    uniform_draws: Optional[Tensor]  # (N), random numbers that depend only on the seed, the epoch and the position
    draws: Optional[tuple[Tensor, Tensor]]  # of a teacher that has read the batch: words and counts, (N, D) each
    ema_model: Optional[nn.Module]  # the moving average of --store-ema
    ntokens: int
    nsentences: int


class ElectraOutput(NamedTuple):
    """One pass through both encoders of ELECTRA. N masked positions in a batch of shape (B, T)."""

    logits: Tensor  # (N, V), the generator's, at the masked positions
    drawn_tokens: Tensor  # (N), what the generator drew
    is_replaced: Tensor  # (B, T) boolean, false where a draw equals the original token
    discriminator_logits: Tensor  # (B, T), positive means replaced


class MaskedPredictions(NamedTuple):
    """A model's predictions at the N masked positions of a batch of shape (B, T)."""

    text: Tensor  # (B, T), before masking
    masked_tokens: Tensor  # (B, T) boolean
    targets: Tensor  # (N), w_k
    words: Any  # (N), w_k, or padding if it is only a part of a word; None without a synonym table
    predictions: Tensor  # (N), r_k
    logits: Tensor  # (N, V)
    is_token: Any = None  # (B, T) boolean, not padding
    synonyms: Any = None  # (N, S), the rows of the words in the table; None without one
    false_negative: Any = None  # (N) boolean: what an objective accepts; None without a synonym table

    def are_synonyms(self, tokens: Tensor) -> Tensor:
        """Where tokens at the masked positions are synonyms of the gold words: (N) -> (N) boolean."""
        return (self.synonyms == tokens.unsqueeze(-1)).any(dim=-1)

    def scatter(self, values: Tensor) -> Tensor:
        """Booleans of the masked positions as those of the batch, False elsewhere: (N) -> (B, T)."""
        return corruption.fill_in(torch.zeros_like(self.masked_tokens), self.masked_tokens, values)


def masked_predictions(
    src_tokens: Tensor,
    target_tokens: Tensor,
    masked_tokens: Tensor,
    logits: Tensor,
    predictions: Tensor,
    padding: int,
    continues_word: Optional[Tensor] = None,
    masked_indices: Optional[Tensor] = None,
) -> MaskedPredictions:
    """The predictions r_k, (N), with the words that they are compared with.

    The texts and targets are (B, T), the logits (N, V), and ``continues_word``, (V) boolean, is that of the synonym
    table. ``masked_indices``, (N), are as in ``corruption.flat_indices``.
    """
    text = torch.where(masked_tokens, target_tokens, src_tokens)
    words = None
    if continues_word is not None:
        words = corruption.take_masked(complete_words(text, continues_word, padding), masked_tokens, masked_indices)
    targets = corruption.take_masked(target_tokens, masked_tokens, masked_indices)
    return MaskedPredictions(text, masked_tokens, targets, words, predictions, logits)


def complete_words(tokens: Tensor, continues_word: Tensor, padding: int) -> Tensor:
    """The tokens of a text, with ``padding`` where the next token continues the word: (B, T), (V) boolean -> (B, T).

    Such a token is only a part of a word, as mer of merle, and its row of the synonym table is about another word. The
    next token is not known at the end of a block, where nothing is replaced.
    """
    continued = F.pad(continues_word[tokens[:, 1:]], (0, 1))
    return tokens.masked_fill(continued, padding)


def false_negatives(predictions: Tensor, words: Tensor, synonyms: Tensor) -> Tensor:
    """True where the prediction is a synonym of the gold word, r_k in V[w_k]: (N), (N), (V, S) -> (N) (section 3.2).

    The table is right-padded and no row holds its own token, so a correct prediction is never a false negative.
    """
    return (synonyms[words] == predictions.unsqueeze(-1)).any(dim=-1)
