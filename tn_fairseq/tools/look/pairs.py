"""Pairs of gold and predicted word: those that the tables correct most often, and those that they may have missed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ...core.masked_prediction import false_negatives
from ...core.synonym_table import PADDING
from ...objectives import functional

COLUMNS = ("list", "gold", "prediction", "count", "tables", "inflection", "similarity", "mean_probability")
MISSED_PAIRS = 1000  # maximum number of pairs listed that no table corrects


def pair_rows(
    wrong: Iterable[tuple[Tensor, Tensor, Tensor]],
    tables: Mapping[str, Tensor],
    embeddings: Tensor,
    is_word: Tensor,
    labels: Sequence[str],
    inflection: Callable[[str, str], str],
) -> list[dict[str, Any]]:
    """The pairs that a table corrects, then those that the tables may have missed; each list is most frequent first.

    ``wrong`` are batches of N gold tokens, wrong predictions, and their probabilities. The second list has pairs of
    words (``is_word``, (V) boolean) that are in no table (V, S), although their embeddings (V, E) are at least as
    similar as those of a typical word and its synonym in the tables. ``labels`` are the V words, and
    ``inflection(gold, prediction)`` tells how their forms relate.
    """
    golds, predictions, prediction_probabilities = map(torch.cat, zip(*wrong))
    codes, inverse, counts = (golds * len(labels) + predictions).unique(return_inverse=True, return_counts=True)
    probabilities = torch.bincount(inverse, weights=prediction_probabilities.double(), minlength=len(codes)) / counts
    order = counts.argsort(descending=True, stable=True)
    gold, predicted = codes[order] // len(labels), codes[order] % len(labels)
    fired = {name: false_negatives(predicted, gold, table) for name, table in tables.items()}
    corrected = torch.stack(list(fired.values())).any(dim=0)
    similarity = similarities(embeddings, gold, predicted)
    candidates = ~corrected & is_word[gold] & is_word[predicted]
    missed = candidates & (similarity >= typical_similarity(embeddings, list(tables.values())))
    return [
        {
            "list": name,
            "gold": labels[gold[pair]],
            "prediction": labels[predicted[pair]],
            "count": counts[order[pair]].item(),
            "tables": " ".join(table for table, hits in fired.items() if hits[pair]),
            "inflection": inflection(labels[gold[pair]], labels[predicted[pair]]),
            "similarity": similarity[pair].item(),
            "mean_probability": probabilities[order[pair]].item(),
        }
        for name, chosen, limit in (("corrected", corrected, None), ("missed", missed, MISSED_PAIRS))
        for pair in chosen.nonzero().squeeze(1)[:limit].tolist()
    ]


def similarities(embeddings: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Cosine similarities of rows of ``embeddings`` (V, E): (P), (P) -> (P), as in soft regularization (Eq. 3)."""
    return 1 - functional.soft_regularization(embeddings[left], embeddings[right])


def typical_similarity(embeddings: Tensor, tables: Sequence[Tensor]) -> float:
    """The median cosine similarity of a word and its synonym in the tables (V, S).

    NaN if the tables are empty; comparisons with it are then false.
    """
    words, synonyms = [], []
    for table in tables:
        rows, columns = (table != PADDING).nonzero(as_tuple=True)
        words.append(rows)
        synonyms.append(table[rows, columns].long())
    return similarities(embeddings, torch.cat(words), torch.cat(synonyms)).median().item()


def pair_cosines(embeddings: Tensor, table: Tensor) -> dict[str, float]:
    """The mean cosine of a word and its synonym, and of all pairs of words with a synonym: (V, E) and (V, S).

    Empty if the table is, and without the second for one word. No pair is held in memory: both are products of sums of
    unit vectors.
    """
    words = (table != PADDING).any(dim=1).nonzero().squeeze(1)
    synonyms, n = table[words], len(words)
    if not n:
        return {}
    directions = F.normalize(embeddings.double(), dim=1)
    synonym_sums = F.embedding_bag(
        synonyms.clamp(min=0).long(), directions, mode="sum", per_sample_weights=(synonyms != PADDING).double()
    )
    own = directions[words]
    cosines = {"pair_cosine": ((own * synonym_sums).sum() / (synonyms != PADDING).sum()).item()}
    if n > 1:  # without each word with itself
        cosines["other_cosine"] = ((own.sum(dim=0).square().sum() - n) / (n * (n - 1))).item()
    return cosines
