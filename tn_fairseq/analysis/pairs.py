"""Pairs of gold and predicted word: those that the tables correct most often, and those that they may have missed."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .. import objectives
from ..reporting.layout import write_csv
from ..synonym_table import PADDING

COLUMNS = ("list", "gold", "prediction", "count", "tables", "inflection", "similarity", "mean_probability")
_BASE = 1 << 31  # larger than every id, so that a pair is one 64-bit number
MISSED_PAIRS = 1000  # maximum number of pairs listed that no table corrects


class PairCounter:
    """Counts wrong predictions by (gold, prediction)."""

    def __init__(self):
        self.codes: list[Tensor] = [torch.empty(0, dtype=torch.long)]
        self.probabilities: list[Tensor] = [torch.empty(0)]

    def add(self, targets: Tensor, predictions: Tensor, probabilities: Tensor) -> None:
        """Count the wrong ones of N predictions; all arguments are (N)."""
        wrong = targets != predictions
        self.codes.append(targets[wrong] * _BASE + predictions[wrong])
        self.probabilities.append(probabilities[wrong])

    def pairs(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The distinct pairs, most frequent first: gold, prediction, count and mean probability, (P) each."""
        codes, inverse, counts = torch.cat(self.codes).unique(return_inverse=True, return_counts=True)
        sums = torch.bincount(inverse, weights=torch.cat(self.probabilities).double(), minlength=len(codes))
        order = counts.argsort(descending=True, stable=True)
        return codes[order] // _BASE, codes[order] % _BASE, counts[order], (sums / counts)[order]


def pair_rows(
    counter: PairCounter,
    tables: Mapping[str, Tensor],
    embeddings: Tensor,
    is_word: Tensor,
    labels: Sequence[str],
    inflection: Callable[[str, str], str],
) -> list[dict[str, Any]]:
    """The pairs that a table corrects, then those that the tables may have missed; each list is most frequent first.

    The second list has pairs of words (``is_word``, (V) boolean) that are in no table (V, S), although their embeddings
    (V, E) are at least as similar as those of a typical word and its synonym in the tables. ``inflection(gold,
    prediction)`` tells how their forms relate.
    """
    gold, predicted, counts, probabilities = counter.pairs()
    fired = {name: objectives.false_negatives(predicted, gold, table) for name, table in tables.items()}
    corrected = torch.stack(list(fired.values())).any(dim=0)
    similarity = similarities(embeddings, gold, predicted)
    candidates = ~corrected & is_word[gold] & is_word[predicted]
    missed = candidates & (similarity >= typical_similarity(embeddings, list(tables.values())))
    return [
        {
            "list": name,
            "gold": labels[gold[pair]],
            "prediction": labels[predicted[pair]],
            "count": counts[pair].item(),
            "tables": " ".join(table for table, hits in fired.items() if hits[pair]),
            "inflection": inflection(labels[gold[pair]], labels[predicted[pair]]),
            "similarity": similarity[pair].item(),
            "mean_probability": probabilities[pair].item(),
        }
        for name, chosen, limit in (("corrected", corrected, None), ("missed", missed, MISSED_PAIRS))
        for pair in chosen.nonzero().squeeze(1)[:limit].tolist()
    ]


def write_pairs(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the rows of ``pair_rows`` as CSV."""
    write_csv(rows, path, COLUMNS)


def similarities(embeddings: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Cosine similarities of rows of ``embeddings`` (V, E): (P), (P) -> (P), as in soft regularization (Eq. 3)."""
    return 1 - objectives.soft_regularization(embeddings[left], embeddings[right])


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
