"""The rows of the report, and their layout for a terminal and in a plot."""

from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ....synonyms.acceptance import Crossings, TableQuality
from ....synonyms.swords import VERDICTS
from ...reporting.layout import WIDTH, align, cell, shorten
from ...reporting.plot import Point, draw_panels
from ..bootstrap import Statistic, estimate, mean, rank_correlation, significant
from .substitution import GAP, LEMMAS, LENIENCY, REJECTED_MASS, ROW_MEASURES, RTD_AUC

Row = dict[str, Any]

SPEARMAN, MEAN_COSINE, ACCURACY = "Spearman", "mean cosine", "accuracy"
# BLiMP's phenomena as its paper abbreviates them, to fit 12 columns in a terminal
ABBREVIATIONS = {
    "anaphor_agreement": "ana",
    "argument_structure": "arg",
    "binding": "bind",
    "control_raising": "ctrl",
    "determiner_noun_agreement": "d-n",
    "ellipsis": "ell",
    "filler_gap_dependency": "filler",
    "irregular_forms": "irreg",
    "island_effects": "island",
    "npi_licensing": "npi",
    "quantifiers": "quant",
    "subject_verb_agreement": "s-v",
}
NAME_WIDTH = 30

TABLE_HEADINGS = ("table", "judged", "accept %", "doubt %", "reject %", "held %")
FORM_HEADINGS = ("rows", "cross %", "pairs", "own %", "other %")
TABLE_LEGEND = """\
judged     pairs of a target and a synonym in its row that people judged in its sentence; a synonym is judged if it is a
           form of a judged lemma (second line: only if it is spelled like the lemma)
accept %   accepted by at least half of the judges; doubt %: by fewer; reject %: by fewer than one in ten
held %     acceptable substitutes of one piece that the table holds
cross %    rows with a synonym in another inflection; own %: pairs of two forms of one word; other %: of two words"""
SWORDS_LEGEND = """\
leniency   mean over targets of log(summed probability of the acceptable substitutes / probability of the target)
rejected   the same for the rejected substitutes
lemmas     leniency if substitutes are not inflected as the target is
GAP %      generalized average precision of the ranking of all judged substitutes"""
RTD_LEGEND = """\
RTD AUC %  how well ELECTRA's discriminator tells acceptable from rejected substitutes; 50 is chance"""
ROW_LEGEND = """\
row %      probability of the target's row in a synonym table; acceptable %, rejected %: of its synonyms so judged"""
WORDS_LEGEND = """\
Spearman's correlation of people's similarity with the cosine of the input word embeddings. Mean cosine: of all pairs of
whole words; near 1 if the embeddings have collapsed."""
BLIMP_LEGEND = "Percentage of pairs whose good sentence has the higher pseudo-log-likelihood; 50 is chance."
INTERVALS = """\
±: half the width of the 95% bootstrap interval over targets, word pairs or pairs of sentences; differences are paired.
Targets in one context are resampled together.
Several checkpoints with one name are seeds, which are resampled too. With one seed, the interval does not cover the
spread over seeds, and with few seeds it is too narrow."""


class Key(NamedTuple):
    """One number of a checkpoint: the data, the measure, and a part of the data or a synonym table, or ""."""

    data: str
    measure: str
    part: str = ""


class Measured(NamedTuple):
    """The values of all seeds of a checkpoint by key, (seeds, items) each, NaN where undefined."""

    name: str
    updates: int | None
    values: Mapping[Key, np.ndarray]


def table_rows(name: str, qualities: Mapping[str, TableQuality], found: Crossings, targets: int) -> list[Row]:
    """A row for each way to match synonyms with judged substitutes; shares are in percent, or None if undefined."""
    rows = []
    for match, quality in qualities.items():
        row: Row = {"table": name, "match": match, "targets": targets, "one_piece_targets": quality.targets}
        row |= {key: value for key, value in quality._asdict().items() if key != "targets"}
        for verdict in VERDICTS:
            row[f"{verdict}_percent"] = percent(row[verdict], quality.judged)
        row["held_percent"] = percent(quality.held, quality.all_acceptable)
        row |= found._asdict()
        row["rows_crossing_percent"] = percent(found.rows_crossing, found.rows)
        for relation in ("own_word", "other_word"):
            row[f"{relation}_percent"] = percent(row[relation], found.pairs)
        rows.append(row)
    return rows


def percent(part: int, whole: int) -> float | None:
    """100 * part / whole, or None if ``whole`` is 0."""
    return 100 * part / whole if whole else None


def checkpoint_rows(
    measured: Sequence[Measured],
    gold: Mapping[Key, np.ndarray],
    baseline: str | None = None,
    contexts: Mapping[str, Sequence[str]] | None = None,
) -> list[Row]:
    """A row for each key and each checkpoint that has it: the value with its interval, and the paired difference.

    ``gold`` has the similarities of the word pairs, (items,), by the key of their correlation, and ``contexts`` the
    context of each item, (items,), by data, because items in one context are not independent. Intervals are None for a
    single item or context, and all differences without a ``baseline`` or if the baseline lacks the key.
    """
    rows = []
    for key in dict.fromkeys(key for one in measured for key in one.values):
        having = [one for one in measured if key in one.values]
        groups = [one.values[key] for one in having]
        # the same for all, because whether a measure is defined depends only on the data and the dictionary
        defined = ~np.isnan(groups[0]).any(axis=0)
        groups = [values[:, defined] for values in groups]
        items = int(defined.sum())
        if not items:
            continue
        names = [one.name for one in having]
        of_baseline = names.index(baseline) if baseline in names else None
        statistic: Statistic = rank_correlation if key in gold else mean
        clusters = list(compress(contexts[key.data], defined)) if contexts and key.data in contexts else None
        estimates = estimate(groups, statistic, of_baseline, gold.get(key), clusters)
        for number, (one, found) in enumerate(zip(having, estimates)):
            row: Row = {"checkpoint": one.name, "updates": one.updates, "seeds": len(groups[number]), **key._asdict()}
            compared_with = baseline if of_baseline not in (None, number) else None
            rows.append(row | {"items": items, "baseline": compared_with, **found._asdict()})
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


def checkpoints_text(rows: Sequence[Row], notes: Mapping[str, str]) -> str:
    """The rows of the checkpoints for a terminal of 120 columns: a block for each kind of measure.

    ``notes`` say by data what is left out.
    """
    blocks = []
    keys = list(dict.fromkeys(Key(row["data"], row["measure"], row["part"]) for row in rows))

    def block(title: str, columns: Mapping[str, Key], form: str, legend: str, spread: bool = True) -> None:
        columns = {heading: key for heading, key in columns.items() if key in keys}
        if columns:
            lines = _block(rows, columns, form, spread)
            blocks.append("\n".join([title, *lines, *(["", legend] if legend else [])]))

    for data in dict.fromkeys(key.data for key in keys if key.measure == LENIENCY):
        logs = {measure: Key(data, measure) for measure in (LENIENCY, REJECTED_MASS, LEMMAS)}
        shares = {f"{measure} %": Key(data, measure) for measure in (GAP, RTD_AUC)}
        of_electra = [RTD_LEGEND] if Key(data, RTD_AUC) in keys else []
        block(data, logs | shares, ".3f", "\n".join([SWORDS_LEGEND, *of_electra, notes[data]]))
        tables = list(dict.fromkeys(key.part for key in keys if key.data == data and key.part))
        for table in tables:
            of_row = dict(zip(("row %", "acceptable %", "rejected %"), (Key(data, m, table) for m in ROW_MEASURES)))
            block(f"{data}: rows of {table}", of_row, ".3f", ROW_LEGEND if table == tables[-1] else "")
    words = [key for key in keys if key.measure in (SPEARMAN, MEAN_COSINE)]
    names = {key: shorten(key.data, 20) if key.measure == SPEARMAN else key.measure for key in words}
    legend = "\n".join([WORDS_LEGEND, *(notes[key.data] for key in words if key.data in notes)])
    block("word pairs", {name: key for key, name in names.items()}, ".3f", legend)
    for data in dict.fromkeys(key.data for key in keys if key.measure == ACCURACY):
        block(data, {"accuracy %": Key(data, ACCURACY)}, ".2f", notes[data])
        parts = [key for key in keys if key.data == data and key.measure == f"{ACCURACY} by phenomenon"]
        headings = {ABBREVIATIONS.get(key.part, key.part[:6]): key for key in parts}
        block(f"{data}: accuracy % by phenomenon", headings, ".1f", BLIMP_LEGEND, spread=False)
    shown = [row for row in rows if not row["measure"].startswith(f"{ACCURACY} by ")]
    found = significant({f"{row['checkpoint']}, {_title(row)}": row["difference_p"] for row in shown})
    return "\n\n".join([*blocks, "\n".join([INTERVALS, *([found] if found else [])])])


def _block(rows: Sequence[Row], columns: Mapping[str, Key], form: str, spread: bool) -> list[str]:
    """A line for each checkpoint and for its difference from the baseline; ``spread`` adds half the intervals."""
    found = {(row["checkpoint"], Key(row["data"], row["measure"], row["part"])): row for row in rows}
    lines = [["", *(["updates", "seeds"] if spread else []), *columns]]

    def add(label: str, about: Sequence[str], values: Sequence[Row | None], form: str, *keys: str) -> None:
        numbers = [[row[key] for key in keys] if row else [None] for row in values]
        cells = [cell(value, form, *(interval if spread else [])) for value, *interval in numbers]
        lines.append([shorten(label, NAME_WIDTH), *(about if spread else []), *cells])

    for name in dict.fromkeys(row["checkpoint"] for row in rows):
        values = [found.get((name, key)) for key in columns.values()]
        one = next(filter(None, values), None)
        if one:
            updates = cell(one["updates"], ",")
            add(name, [updates, str(one["seeds"])], values, form, "value", "low", "high")
            if one["baseline"] is not None:
                keys = "difference", "difference_low", "difference_high"
                add(f"  minus {one['baseline']}", ["", ""], values, f"+{form}", *keys)
    return align(lines, width=WIDTH)


def draw_measures(rows: Sequence[Row], *paths: Path) -> None:
    """Draw a panel for each measure, with a point and a 95% interval for each checkpoint, as .png or .svg by suffix.

    Leaves out the parts of BLiMP. Raises InputError if matplotlib is missing.
    """
    shown = [row for row in rows if not row["measure"].startswith(f"{ACCURACY} by ")]
    points = [Point(_title(row), row["checkpoint"], row["value"], row["low"], row["high"]) for row in shown]
    draw_panels(points, 4, 11, "lines: 95% intervals", *paths)


def _title(row: Row) -> str:
    if row["measure"] in ROW_MEASURES:
        return f"{row['measure']} of {row['part']} (%)"
    unit = " (%)" if row["measure"] in (GAP, RTD_AUC, ACCURACY) else ""
    return MEAN_COSINE if row["measure"] == MEAN_COSINE else f"{row['data']}: {row['measure']}{unit}"
