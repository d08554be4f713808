"""Synonym tables of one dictionary side by side: what they hold, what they share, and where they fire."""

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..synonyms.table import PADDING
from .rates import WIDTH, Row, align, percent, shorten, write_csv

NAME_WIDTH = 23  # two of them fit

COVERAGE = ("table", "words", "% of dictionary", "pairs", "fired", "% of mismatches")
OVERLAP = ("words in both", "pairs in both", "% of pairs", "both fired", "% of mismatches")
LEGEND = """\
words            symbols of the dictionary with at least one synonym
pairs            of a word and one of its synonyms
fired            wrong predictions that are synonyms of the gold token: false negatives
% of mismatches  of these among all masked tokens whose prediction is not the gold one"""
OVERLAP_LEGEND = """\
% of pairs       pairs in both tables, of those in either (Jaccard's index)
both fired       at the same position"""


def source_rows(
    tables: Mapping[str, Tensor],
    descriptions: Mapping[str, Mapping[str, str]],
    fired: Tensor,
    masked: int,
    mismatches: int,
) -> list[dict[str, Any]]:
    """A row for each pair of tables, and for each table with itself.

    ``tables`` are the synonym tables, int32 (V, columns), of one dictionary; ``descriptions`` are what their files say
    of themselves. ``fired`` (T, T), in the order of ``tables``, counts the positions at which both fire, of so many
    ``masked`` with so many ``mismatches``. What is in both tables is ``common_``; rates are in per cent, 0 of nothing.
    """
    words = {name: np.flatnonzero((table != PADDING).any(dim=1).numpy()) for name, table in tables.items()}
    pairs = {name: _pairs(table) for name, table in tables.items()}
    rows = []
    for (i, table), (j, other) in combinations_with_replacement(enumerate(tables), 2):
        common_pairs = len(np.intersect1d(pairs[table], pairs[other], assume_unique=True))
        counts = {"": fired[i, i].item(), "other_": fired[j, j].item(), "common_": fired[i, j].item()}
        rows.append(
            {
                "table": table,
                "other": other,
                "source": descriptions[table].get("source"),
                "source_version": descriptions[table].get("source_version"),
                "other_source": descriptions[other].get("source"),
                "other_source_version": descriptions[other].get("source_version"),
                "dictionary_size": len(tables[table]),
                "words": len(words[table]),
                "other_words": len(words[other]),
                "common_words": len(np.intersect1d(words[table], words[other], assume_unique=True)),
                "pairs": len(pairs[table]),
                "other_pairs": len(pairs[other]),
                "common_pairs": common_pairs,
                "pair_overlap": percent(common_pairs, len(pairs[table]) + len(pairs[other]) - common_pairs),
                "masked": masked,
                "mismatches": mismatches,
                **{f"{of}fired": count for of, count in counts.items()},
                **{f"{of}fired_rate": percent(count, mismatches) for of, count in counts.items()},
            }
        )
    return rows


def _pairs(table: Tensor) -> np.ndarray:
    """Each pair of gold token and synonym once, as one number, gold V + synonym, in ascending order."""
    gold, column = (table != PADDING).nonzero(as_tuple=True)
    return torch.unique(gold * len(table) + table[gold, column]).numpy()  # numpy's takes ten times as long


def sources_table(rows: Sequence[Row]) -> str:
    """The rows for a terminal of 120 columns: a line for each table, and one for each two of them."""
    alone = [row for row in rows if row["table"] == row["other"]]
    lines = align([COVERAGE, *map(_coverage, alone)])
    sources = ["source", *(row["source_version"] or row["source"] or "-" for row in alone)]
    lines = [_cut(f"{line}  {source}") for line, source in zip(lines, sources)]
    legend = LEGEND.splitlines()
    if len(alone) > 1:
        width = min(NAME_WIDTH, max(len(row["table"]) for row in alone))
        two = [row for row in rows if row["table"] != row["other"]]
        lines += ["", *align([[f"{'table':{width}}  and", *OVERLAP], *(_overlap(row, width) for row in two)])]
        legend += OVERLAP_LEGEND.splitlines()
    of = f"Of {rows[0]['masked']:,} masked tokens {rows[0]['mismatches']:,} were predicted wrong."
    return "\n".join([*lines, "", *legend, of])


def _coverage(row: Row) -> list[str]:
    return [
        shorten(row["table"], NAME_WIDTH),
        f"{row['words']:,}",
        f"{percent(row['words'], row['dictionary_size']):.1f}",
        f"{row['pairs']:,}",
        f"{row['fired']:,}",
        f"{row['fired_rate']:.3f}",
    ]


def _overlap(row: Row, width: int) -> list[str]:
    return [
        f"{shorten(row['table'], width):{width}}  {shorten(row['other'], width)}",
        f"{row['common_words']:,}",
        f"{row['common_pairs']:,}",
        f"{row['pair_overlap']:.1f}",
        f"{row['common_fired']:,}",
        f"{row['common_fired_rate']:.3f}",
    ]


def _cut(line: str) -> str:
    """Without its end where it is too long: sources end in a file's hash."""
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def write_sources(rows: Sequence[Row], path_csv: Path) -> None:
    """Write the rows as CSV, empty where None."""
    write_csv(rows, path_csv)
