"""The rows of the report: of the checkpoints, and of the synonym tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ....synonyms.acceptance import Crossings, TableQuality
from ....synonyms.swords import VERDICTS
from ...reporting.comparison import NAME_WIDTH, Comparison, corrected
from ...reporting.layout import WIDTH, align, cell, percent, shorten
from ..bootstrap import Measure, compare_items

Row = dict[str, Any]

TABLE_HEADINGS = ("table", "judged", "accept %", "doubt %", "reject %", "held %")
FORM_HEADINGS = ("rows", "cross %", "pairs", "own %", "other %")
TABLE_LEGEND = """\
judged     pairs of a target and a synonym in its row that people judged in its sentence; a synonym is judged if it is a
           form of a judged lemma (second line: only if it is spelled like the lemma)
accept %   accepted by at least half of the judges; doubt %: by fewer; reject %: by fewer than one in ten
held %     acceptable substitutes of one piece that the table holds
cross %    rows with a synonym in another inflection; own %: pairs of two forms of one word; other %: of two words"""


class Measured(NamedTuple):
    """The values of all seeds of a checkpoint by measure, (seeds, items, ...) each, NaN where undefined."""

    name: str
    updates: int | None
    values: Mapping[Measure, np.ndarray]


def checkpoint_rows(
    measured: Sequence[Measured],
    baseline: str | None = None,
    contexts: Mapping[str, Sequence[str]] | None = None,
) -> list[Comparison]:
    """A row for each measure and each checkpoint that has it: the value with its interval, and the paired difference.

    ``contexts`` has the context of each item, (items,), by data, because items in one context are not independent.
    Intervals are None for a single item or context, and all differences without a ``baseline`` or if the baseline lacks
    the measure.
    """
    updates = {one.name: one.updates for one in measured}
    rows: list[Comparison] = []
    for measure in dict.fromkeys(measure for one in measured for measure in one.values):
        # whether an item is defined depends only on the data and the dictionary, so it is the same for all
        groups = {one.name: one.values[measure] for one in measured if measure in one.values}
        rows += compare_items(measure, groups, baseline, (contexts or {}).get(measure.data))
    return corrected([replace(row, updates=updates[row.name]) for row in rows])


def table_rows(name: str, qualities: Mapping[str, TableQuality], crossings: Crossings, targets: int) -> list[Row]:
    """A row for each way to match synonyms with judged substitutes; shares are in percent, or None if undefined."""
    rows = []
    for match, quality in qualities.items():
        row: Row = {"table": name, "match": match, "targets": targets, "one_piece_targets": quality.targets}
        row |= {key: value for key, value in quality._asdict().items() if key != "targets"}
        for verdict in VERDICTS:
            row[f"{verdict}_percent"] = percent(row[verdict], quality.judged)
        row["held_percent"] = percent(quality.held, quality.all_acceptable)
        row |= crossings._asdict()
        row["rows_crossing_percent"] = percent(crossings.rows_crossing, crossings.rows)
        for relation in ("own_word", "other_word"):
            row[f"{relation}_percent"] = percent(row[relation], crossings.pairs)
        rows.append(row)
    return rows


def tables_text(rows: Sequence[Row]) -> str:
    """The rows of the synonym tables for a terminal of 120 columns."""
    lines = [[*TABLE_HEADINGS, *FORM_HEADINGS]]
    for row in rows:
        is_first = row["match"] == rows[0]["match"]
        label = shorten(row["table"], NAME_WIDTH) if is_first else f"  by {row['match']}"
        shares = [cell(row[f"{share}_percent"], ".1f") for share in (*VERDICTS, "held")]
        forms = [""] * len(FORM_HEADINGS)
        if is_first:
            parts = ("rows_crossing", "own_word", "other_word")
            crossing, own, other = (cell(row[f"{part}_percent"], ".1f") for part in parts)
            forms = [f"{row['rows']:,}", crossing, f"{row['pairs']:,}", own, other]
        lines.append([label, f"{row['judged']:,}", *shares, *forms])
    targets, one_piece = rows[0]["targets"], rows[0]["one_piece_targets"]
    left_out = f"{targets - one_piece:,} of {targets:,} targets are not one piece and left out."
    return "\n".join(["synonym tables", *align(lines, width=WIDTH), "", *TABLE_LEGEND.splitlines(), left_out])
