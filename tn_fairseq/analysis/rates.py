"""Rates of corrected predictions with their spread over masking seeds: rows, text, CSV and JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from ..reporting.layout import WIDTH, align, shorten, write_csv
from ..reporting.paper import HEADING, RATES_NOTE, TABLE_2
from ..reporting.statistics import mean_interval

Row = Mapping[str, Any]

# rate -> numerator, denominator
RATES = {
    "sequence_rate": ("corrected_sequences", "sequences"),
    "prediction_rate": ("corrected", "mismatches"),
    "masked_rate": ("corrected", "masked"),
    "accuracy": ("correct", "masked"),
}
# the same, not in the printed table: the masked-LM loss in bits, and the mean probability of the gold word's synonyms
UNPRINTED = {"loss": ("loss", "masked"), "synonym_probability": ("synonym_probability", "masked")}
HEADINGS = ("checkpoint", "updates", "corrected", "% of sequences", "% of mismatches", "% of masked", "accuracy %")
LEGEND = """\
corrected        wrong predictions that are synonyms of the gold token (false negatives), summed over masking seeds
% of sequences   percentage of sequences with at least one correction
% of mismatches  corrections as a percentage of wrong predictions
% of masked      corrections as a percentage of masked tokens
accuracy %       percentage of masked tokens whose prediction is the gold token"""
INTERVAL = """\
±: half the width of Student's 95% interval of the mean over masking seeds. It covers only the choice of masked tokens:
other text or another training run would add to it. It is 0 if all seeds give the same rate, for example if none has a
correction."""


class Counts(NamedTuple):
    """The counts for one masking of the data, one checkpoint and one synonym table."""

    sequences: int
    corrected_sequences: int  # with at least one correction
    masked: int
    correct: int  # predictions that equal the gold token
    corrected: int  # false negatives: wrong predictions that are synonyms
    loss: float = 0.0  # of plain masked LM, in bits
    synonym_probability: float = 0.0  # of all synonyms of the gold words together

    @property
    def mismatches(self) -> int:
        return self.masked - self.correct


@dataclass(frozen=True)
class Evaluated:
    """The counts of one checkpoint with one synonym table."""

    checkpoint: str  # its path as the user named it
    updates: int | None  # None if unknown
    table: str  # the table's name
    counts: tuple[Counts, ...]  # one per masking seed, at least one


def rows(evaluated: Sequence[Evaluated]) -> list[dict[str, Any]]:
    """A row for each item: counts summed over masking seeds, rates in percent, and the loss in bits.

    A rate is the mean over the seeds, followed by its 95% interval (``<rate>_low``, ``<rate>_high``), None for one
    seed. The rate of a seed is 0 if its denominator is 0, as in the training log.
    """
    return [_row(one) for one in evaluated]


def _row(evaluated: Evaluated) -> dict[str, Any]:
    counts = evaluated.counts
    row = {
        "checkpoint": evaluated.checkpoint,
        "updates": evaluated.updates,
        "table": evaluated.table,
        "mask_seeds": len(counts),
    }
    for name in ("sequences", "corrected_sequences", "masked", "mismatches", "corrected"):
        row[name] = sum(getattr(seed, name) for seed in counts)
    for rate, (part, whole) in {**RATES, **UNPRINTED}.items():
        values = [percent(getattr(seed, part), getattr(seed, whole)) for seed in counts]
        if rate == "loss":
            values = [value / 100 for value in values]
        low, high = mean_interval(values)
        row |= {rate: fmean(values), f"{rate}_low": low, f"{rate}_high": high}
    return row


def percent(part: float, whole: int) -> float:
    """100 * part / whole, or 0 if ``whole`` is 0."""
    return 100 * part / whole if whole else 0.0


def rates_table(rows: Sequence[Row], show_paper: bool = False) -> str:
    """The rows for a terminal of 120 columns: a block for each synonym table, then a legend."""
    lines: list[str | list[str]] = []
    for table in dict.fromkeys(row["table"] for row in rows):
        lines += [table, list(HEADINGS)]
        folder = None
        for row in (row for row in rows if row["table"] == table):
            checkpoint = Path(row["checkpoint"])
            if checkpoint.parent != folder:
                folder = checkpoint.parent
                lines.append(shorten(f"  {folder}/", WIDTH))
            lines.append(_line(row))
        lines.append("")
    lines += LEGEND.splitlines()
    if any(row["mask_seeds"] > 1 for row in rows):
        lines += INTERVAL.splitlines()
    seeds, masked, sequences = (_span(row[key] for row in rows) for key in ("mask_seeds", "masked", "sequences"))
    lines.append(f"Masking seeds: {seeds}. In total, {masked} tokens were masked in {sequences} sequences.")
    if show_paper:
        lines += ["", HEADING, list(HEADINGS)]
        for model, checkpoint, *rates in TABLE_2:
            lines.append([f"    {model}, {checkpoint:g}%", "-", "-", *(f"{rate:.2f}" for rate in rates), "-", "-"])
        lines += RATES_NOTE.splitlines()
    return "\n".join(align(lines, width=WIDTH))


def _line(row: Row) -> list[str]:
    updates = "-" if row["updates"] is None else f"{row['updates']:,}"
    # early in training, rates are a few hundredths of a percent
    rates = [_rate(row, rate, ".2f" if rate == "accuracy" else ".3f") for rate in RATES]
    return ["    " + Path(row["checkpoint"]).name, updates, f"{row['corrected']:,}", *rates]


def _rate(row: Row, rate: str, form: str) -> str:
    low, high = row[f"{rate}_low"], row[f"{rate}_high"]
    spread = "" if low is None else f" ± {(high - low) / 2:{form}}"
    return f"{row[rate]:{form}}{spread}"


def _span(values: Iterable[int]) -> str:
    """The common value, or the minimum and the maximum."""
    values = sorted(set(values))
    return " to ".join(f"{value:,}" for value in dict.fromkeys((values[0], values[-1])))


def write_rates(rows: Sequence[Row], csv_path: Path, json_path: Path) -> None:
    """Write the rows as CSV, with None as an empty field, and as a JSON list."""
    write_csv(rows, csv_path)
    json_path.write_text(json.dumps(list(rows), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
