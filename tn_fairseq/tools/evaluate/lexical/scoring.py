"""Scores of a model for tokens at given positions of sequences, batched by length."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from fairseq import utils
from fairseq.data.data_utils import batch_by_size
from torch import Tensor
from torch.nn.functional import one_hot
from torch.nn.utils.rnn import pad_sequence

from ....core.dictionary import MASK
from ....core.errors import InputError
from ....models.electra import ElectraModel
from ....models.loading import Loaded

MAX_TOKENS = 4096  # in a batch


class Place(NamedTuple):
    """A position in a sequence, (T,), that starts with ``<s>`` and ends with ``</s>``."""

    tokens: np.ndarray
    position: int


def max_length(loaded: Loaded) -> int:
    """The longest sequence in tokens, ``<s>`` and ``</s>`` included, that the model was built and trained for."""
    return utils.resolve_max_positions(loaded.task.max_positions(), loaded.model.max_positions())


@torch.no_grad()
def log_probabilities(loaded: Loaded, places: Sequence[Place]) -> Iterator[tuple[np.ndarray, Tensor]]:
    """Mask each place by itself; yield by batch the indices of B places and the log-probabilities there, (B, V).

    For ELECTRA they are the generator's.
    """
    for members, tokens, masked_tokens in batches(loaded, places):
        tokens[masked_tokens] = loaded.task.source_dictionary.index(MASK)
        logits, _ = loaded.model(src_tokens=tokens, masked_tokens=masked_tokens)
        logits = logits.float()
        yield members, logits - logits.logsumexp(dim=-1, keepdim=True)


@torch.no_grad()
def replaced_token_logits(loaded: Loaded, places: Sequence[Place]) -> np.ndarray:
    """What ELECTRA's discriminator says about the token at each place, (places,): positive means replaced."""
    model = loaded.model
    assert isinstance(model, ElectraModel)
    place_logits = np.empty(len(places), dtype=np.float32)
    for members, tokens, position_mask in batches(loaded, places):
        logits = model.discriminator_head(model.encode(model.discriminator, tokens))
        place_logits[members] = logits[position_mask].float().cpu().numpy()
    return place_logits


def batches(loaded: Loaded, places: Sequence[Place]) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
    """Indices of places, their padded tokens (B, T), and the mask of their positions (B, T) boolean."""
    device = next(loaded.model.parameters()).device
    limit, pad = max_length(loaded), loaded.task.source_dictionary.pad()
    lengths = np.array([len(place.tokens) for place in places], dtype=np.int64)
    longest = lengths.max(initial=0)
    if longest > limit:
        raise InputError(
            f"a sentence of {longest} tokens is longer than the {limit} that the model was trained for "
            "(--tokens-per-sample); measure a model for longer sequences"
        )
    order = lengths.argsort(kind="stable")
    for members in batch_by_size(order, None, num_tokens_vec=lengths[order], max_tokens=max(MAX_TOKENS, longest)):
        rows = [torch.from_numpy(places[member].tokens).long() for member in members]
        tokens = pad_sequence(rows, batch_first=True, padding_value=pad)
        position_mask = one_hot(torch.tensor([places[member].position for member in members]), tokens.shape[1]).bool()
        yield members, tokens.to(device), position_mask.to(device)
