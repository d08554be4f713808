"""A comparison of synonym tables of one dictionary: what they contain, what they share, and how often they fire."""

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.synonym_table import PADDING
from ..reporting.layout import WIDTH, align, percent, shorten
from .rates import Row

NAME_WIDTH = 23  # two names fit on a line

COVERAGE = ("table", "words", "% of dictionary", "pairs", "fired", "% of mismatches", "source")
OVERLAP = ("words in both", "pairs in both", "% of pairs", "both fired", "% of mismatches")
LEGEND = """\
words            symbols of the dictionary with at least one synonym
pairs            pairs of a word and one of its synonyms
fired            wrong predictions that are synonyms of the gold token (false negatives)
% of mismatches  these as a percentage of wrong predictions"""
OVERLAP_LEGEND = """\
% of pairs       pairs in both tables as a percentage of pairs in either (Jaccard index)
both fired       positions at which both tables fire"""


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
        row["pair_overlap"] = percent(row["common_pairs"], in_either) or 0.0
        row |= {"masked": masked, "mismatches": mismatches}
        counts = {"fired": fired[i, i], "other_fired": fired[j, j], "common_fired": fired[i, j]}
        row |= {name: count.item() for name, count in counts.items()}
        row |= {f"{name}_rate": percent(count.item(), mismatches) or 0.0 for name, count in counts.items()}
        rows.append(row)
    return rows


def _pairs(table: Tensor) -> np.ndarray:
    """The distinct pairs of gold token and synonym as numbers, gold * V + synonym, in ascending order."""
    gold, column = (table != PADDING).nonzero(as_tuple=True)
    return torch.unique(gold * len(table) + table[gold, column]).numpy()  # ten times as fast as numpy's


def sources_table(rows: Sequence[Row]) -> str:
    """The rows for a terminal of 120 columns: a line for each table, and a line for each pair of tables."""
    coverage, overlap = [list(COVERAGE)], []
    width = min(NAME_WIDTH, max(len(row["table"]) for row in rows))
    for row in rows:
        table, other = shorten(row["table"], width), shorten(row["other"], width)
        if row["table"] == row["other"]:
            share = percent(row["words"], row["dictionary_size"]) or 0.0
            cells = [table, f"{row['words']:,}", f"{share:.1f}", f"{row['pairs']:,}", f"{row['fired']:,}"]
            coverage.append([*cells, f"{row['fired_rate']:.3f}", row["source_version"] or row["source"] or "-"])
        else:
            cells = [f"{row['common_words']:,}", f"{row['common_pairs']:,}", f"{row['pair_overlap']:.1f}"]
            cells += [f"{row['common_fired']:,}", f"{row['common_fired_rate']:.3f}"]
            overlap.append([f"{table:{width}}  {other}", *cells])
    # sources end in the hash of a file, which may be cut
    lines = [
        line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in align(coverage, left=(0, len(COVERAGE) - 1))
    ]
    legend = [LEGEND]
    if overlap:
        lines += ["", *align([[f"{'table':{width}}  and", *OVERLAP], *overlap])]
        legend.append(OVERLAP_LEGEND)
    of = f"{rows[0]['mismatches']:,} of {rows[0]['masked']:,} masked tokens were predicted incorrectly."
    return "\n".join([*lines, "", *legend, of])
