"""How often predictions are corrected, as rates with their spread over masking seeds: rows, text, CSV and JSON."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from ..evaluation.statistics import mean_interval
from .paper import NOTE, TABLE_2

Row = Mapping[str, Any]

WIDTH = 120
# of each rate what it counts, and what it divides by
RATES = {
    "sequence_rate": ("corrected_sequences", "sequences"),
    "prediction_rate": ("corrected", "mismatches"),
    "masked_rate": ("corrected", "masked"),
    "accuracy": ("correct", "masked"),
}
HEADINGS = ("checkpoint", "updates", "corrected", "% of sequences", "% of mismatches", "% of masked", "accuracy %")
LEGEND = """\
corrected        false negatives: predictions that are wrong, but synonyms of the gold token; summed over masking seeds
% of sequences   sequences with at least one correction, of all sequences
% of mismatches  corrections, of the masked tokens whose prediction is not the gold one
% of masked      corrections, of all masked tokens
accuracy %       predictions that are the gold token, of all masked tokens"""
INTERVAL = """\
±: half of Student's 95 % interval of the mean over masking seeds. It tells of masking alone, with the same model and
the same text: other text or another training run would add to it. It is 0 where the seeds happen to agree, as where
none has a correction."""
PAPER_HEADING = "from the paper (not ours)"


class Counts(NamedTuple):
    """What one masking of the data gave: of one checkpoint and one synonym table."""

    sequences: int
    corrected_sequences: int  # with at least one correction
    masked: int
    correct: int  # predictions that equal the gold token
    corrected: int  # false negatives: wrong, and a synonym

    @property
    def mismatches(self) -> int:
        return self.masked - self.correct


@dataclass(frozen=True)
class Evaluated:
    """A checkpoint as counted with one synonym table."""

    checkpoint: str  # its path as the user named it
    updates: int | None  # of training, None where unknown
    table: str  # the table's name
    counts: tuple[Counts, ...]  # one a masking seed, at least one


def rows(evaluated: Sequence[Evaluated]) -> list[dict[str, Any]]:
    """A row for each: counts summed over masking seeds, and rates in per cent.

    A rate is the mean of the seeds' rates, followed by its 95 % interval (``<rate>_low``, ``<rate>_high``), None for
    one seed. A seed's rate is 0 where its divisor is, as in the training log.
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
    for rate, (part, whole) in RATES.items():
        values = [percent(getattr(seed, part), getattr(seed, whole)) for seed in counts]
        low, high = mean_interval(values)
        row |= {rate: fmean(values), f"{rate}_low": low, f"{rate}_high": high}
    return row


def percent(part: int, whole: int) -> float:
    """100 part / whole, and 0 of nothing."""
    return 100 * part / whole if whole else 0.0


def rates_table(rows: Sequence[Row], show_paper: bool = False) -> str:
    """The rows for a terminal of 120 columns, a block for each synonym table, and what the columns mean."""
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
    lines.append(f"Masking seeds: {seeds}. Over all of them {masked} tokens were masked, in {sequences} sequences.")
    if show_paper:
        lines += ["", PAPER_HEADING, list(HEADINGS)]
        for model, checkpoint, *rates in TABLE_2:
            lines.append([f"    {model}, {checkpoint:g} %", "-", "-", *(f"{rate:.2f}" for rate in rates), "-", "-"])
        lines += NOTE.splitlines()
    return "\n".join(align(lines))


def _line(row: Row) -> list[str]:
    updates = "-" if row["updates"] is None else f"{row['updates']:,}"
    # a young model's rates are a few hundredths of a per cent
    rates = [_rate(row, rate, ".2f" if rate == "accuracy" else ".3f") for rate in RATES]
    return ["    " + Path(row["checkpoint"]).name, updates, f"{row['corrected']:,}", *rates]


def _rate(row: Row, rate: str, form: str) -> str:
    low, high = row[f"{rate}_low"], row[f"{rate}_high"]
    spread = "" if low is None else f" ± {(high - low) / 2:{form}}"
    return f"{row[rate]:{form}}{spread}"


def _span(values: Iterable[int]) -> str:
    """The value that all share, or the least and the most."""
    values = sorted(set(values))
    return " to ".join(f"{value:,}" for value in dict.fromkeys((values[0], values[-1])))


def align(lines: Sequence[str | Sequence[str]]) -> list[str]:
    """Texts as they are; of lists of cells the first to the left, shortened to fit ``WIDTH``, the rest to the right."""
    first, *rest = (max(map(len, column)) for column in zip(*(line for line in lines if not isinstance(line, str))))
    first = min(first, WIDTH - sum(width + 2 for width in rest))
    return [
        line
        if isinstance(line, str)
        else "  ".join([shorten(line[0], first).ljust(first), *map(str.rjust, line[1:], rest)])
        for line in lines
    ]


def shorten(path: str, width: int) -> str:
    """``path`` in so many characters, without its beginning if it is longer."""
    return path if len(path) <= width else "…" + path[len(path) - width + 1 :]


def write_rates(rows: Sequence[Row], csv_path: Path, json_path: Path) -> None:
    """Write the rows as CSV, empty where None, and as a list in JSON."""
    write_csv(rows, csv_path)
    json_path.write_text(json.dumps(list(rows), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_csv(rows: Sequence[Row], path: Path, columns: Iterable[str] | None = None) -> None:
    """Write rows of the same keys, at least one unless the columns are named; floats get six digits, None no text."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns or rows[0], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: round(value, 6) if isinstance(value, float) else value for key, value in row.items()})
