"""A judge in context: what another model says about whether a predicted word fits its sentence."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ..core import corruption


@torch.no_grad()
def judge_scores(judge: nn.Module, net_input: Mapping[str, Tensor], candidates: Tensor, predictions: Tensor) -> Tensor:
    """How well each prediction fits its sentence according to a model in evaluation mode, from 0 to 1: (M).

    ``net_input`` is the input of a batch before masking, with ``src_tokens`` (B, T). ``candidates``, (B, T)
    boolean, are M positions in it, and ``predictions``, (M), replace the tokens there, row by row. ELECTRA gives the
    probability that its discriminator calls a prediction original. Any other encoder gives the cosine similarity of its
    last hidden states at the position, before and after the replacement, or 0 if that is negative.
    """

    def read(tokens: Tensor) -> Tensor:
        return judge(**{**net_input, "src_tokens": tokens}, features_only=True, encoder="discriminator")[0]

    text = net_input["src_tokens"]
    replaced = read(corruption.fill_in(text, candidates, predictions))
    if isinstance(head := getattr(judge, "discriminator_head", None), nn.Module):
        return torch.sigmoid(-head(replaced)[candidates].float())
    similarity = torch.cosine_similarity(replaced[candidates].float(), read(text)[candidates].float(), dim=-1)
    return similarity.clamp(0, 1)
