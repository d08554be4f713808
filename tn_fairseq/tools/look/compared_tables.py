"""A comparison of synonym tables of one dictionary: what they contain, what they share, and how often they fire."""

from collections.abc import Mapping
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.synonym_table import PADDING


def source_rows(
    tables: Mapping[str, Tensor],
    descriptions: Mapping[str, Mapping[str, str]],
    fired: Tensor,
    masked: int,
    mismatches: int,
) -> list[dict[str, Any]]:
    """A row for each pair of tables, and for each table with itself.

    ``tables`` are the synonym tables, int32 (V, columns), of one dictionary; ``descriptions`` are the metadata in their
    files. ``fired`` (T, T), in the order of ``tables``, counts the positions at which both fire. ``masked`` and
    ``mismatches`` are the numbers of masked tokens and of wrong predictions. The prefix ``common_`` means in both
    tables. Rates are in percent, and 0 if the denominator is 0.
    """
    words = {name: np.flatnonzero((table != PADDING).any(dim=1).numpy()) for name, table in tables.items()}
    pairs = {name: _pairs(table) for name, table in tables.items()}
    rows = []
    for (i, table), (j, other) in combinations_with_replacement(enumerate(tables), 2):
        row: dict[str, Any] = {"table": table, "other": other}
        for of, name in (("", table), ("other_", other)):
            row |= {f"{of}{key}": descriptions[name].get(key) for key in ("source", "source_version")}
        row["dictionary_size"] = len(tables[table])
        for name, sets in (("words", words), ("pairs", pairs)):
            common = np.intersect1d(sets[table], sets[other], assume_unique=True)
            row |= {name: len(sets[table]), f"other_{name}": len(sets[other]), f"common_{name}": len(common)}
        in_either = row["pairs"] + row["other_pairs"] - row["common_pairs"]
        row["pair_overlap"] = 100 * row["common_pairs"] / in_either if in_either else 0.0
        row |= {"masked": masked, "mismatches": mismatches}
        counts = {"fired": fired[i, i], "other_fired": fired[j, j], "common_fired": fired[i, j]}
        row |= {name: count.item() for name, count in counts.items()}
        row |= {
            f"{name}_rate": 100 * count.item() / mismatches if mismatches else 0.0 for name, count in counts.items()
        }
        rows.append(row)
    return rows


def _pairs(table: Tensor) -> np.ndarray:
    """The distinct pairs of gold token and synonym as numbers, gold * V + synonym, in ascending order."""
    gold, column = (table != PADDING).nonzero(as_tuple=True)
    return torch.unique(gold * len(table) + table[gold, column]).numpy()  # ten times as fast as numpy's


def table_rows(sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the tables, and of what two have in common, for the table of results."""
    measures = {"table words": "common_words", "table pairs": "common_pairs", "table fired": "common_fired_rate"}
    return [
        {
            "arm": row["table"] if row["table"] == row["other"] else f"{row['table']} and {row['other']}",
            "measure": measure,
            "value": row[key],
        }
        for row in sources
        for measure, key in measures.items()
    ]
