"""Scores of a model for tokens at given positions of sequences, batched by length."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from fairseq import utils
from torch import Tensor

from ...dictionary import MASK
from ...errors import InputError
from ...models.electra import ElectraModel
from ...models.loading import Loaded

MAX_TOKENS = 4096  # in a batch


class Place(NamedTuple):
    """A position in a sequence, (T,), that starts with ``<s>`` and ends with ``</s>``."""

    tokens: np.ndarray
    position: int


def max_length(loaded: Loaded) -> int:
    """The longest sequence in tokens, ``<s>`` and ``</s>`` included, that the model was built and trained for."""
    return utils.resolve_max_positions(loaded.task.max_positions(), loaded.model.max_positions())


@torch.no_grad()
def log_probabilities(loaded: Loaded, places: Sequence[Place], wanted: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Mask each place by itself and return the log-probabilities of the wanted tokens there: (n) ids -> (n) each.

    For ELECTRA they are the generator's.
    """
    dictionary = loaded.task.source_dictionary
    found: list[np.ndarray] = [np.empty(0)] * len(places)
    for members, tokens, masked_tokens in batches(loaded, places):
        tokens[masked_tokens] = dictionary.index(MASK)
        logits, _ = loaded.model(src_tokens=tokens, masked_tokens=masked_tokens)
        logits = logits.float()
        counts = [len(wanted[member]) for member in members]
        rows = torch.arange(len(members)).repeat_interleave(torch.tensor(counts)).to(logits.device)
        ids = torch.from_numpy(np.concatenate([wanted[member] for member in members])).long().to(logits.device)
        values = (logits[rows, ids] - logits.logsumexp(dim=-1)[rows]).cpu().numpy()
        for member, part in zip(members, np.split(values, np.cumsum(counts)[:-1]), strict=True):
            found[member] = part
    return found


@torch.no_grad()
def replaced_token_logits(loaded: Loaded, places: Sequence[Place]) -> np.ndarray:
    """What ELECTRA's discriminator says about the token at each place, (places,): positive means replaced."""
    model = loaded.model
    assert isinstance(model, ElectraModel)
    found = np.empty(len(places), dtype=np.float32)
    for members, tokens, of_place in batches(loaded, places):
        logits = model.discriminator_head(model.encode(model.discriminator, tokens))
        found[members] = logits[of_place].float().cpu().numpy()
    return found


def batches(loaded: Loaded, places: Sequence[Place]) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Indices of places, their padded tokens (B, T), and the mask of their positions (B, T) boolean."""
    device = next(loaded.model.parameters()).device
    limit, pad = max_length(loaded), loaded.task.source_dictionary.pad()
    lengths = np.array([len(place.tokens) for place in places], dtype=np.int64)
    if lengths.max(initial=0) > limit:
        raise InputError(
            f"a sentence of {lengths.max()} tokens is longer than the {limit} that the model was trained for "
            "(--tokens-per-sample); measure a model for longer sequences"
        )
    order = lengths.argsort(kind="stable")
    start = 0
    while start < len(order):
        size = 1
        while start + size < len(order) and (size + 1) * lengths[order[start + size]] <= MAX_TOKENS:
            size += 1
        members = order[start : start + size].tolist()
        tokens = torch.full((size, int(lengths[members[-1]])), pad, dtype=torch.long)
        for row, member in enumerate(members):
            tokens[row, : lengths[member]] = torch.from_numpy(places[member].tokens)
        of_place = torch.zeros_like(tokens, dtype=torch.bool)
        of_place[torch.arange(size), torch.tensor([places[member].position for member in members])] = True
        yield members, tokens.to(device), of_place.to(device)
        start += size
