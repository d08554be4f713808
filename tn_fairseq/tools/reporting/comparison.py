"""What was measured of checkpoints or arms, and their differences from a baseline."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import InputError
from ...core.files import read_json_object

ROWS = "comparisons"  # the key of the rows in a JSON file
# an attack is between the data and its name, and the kind of a score is behind the score
UNDER, ORIGINAL, ATTACKED, DROP = " under ", "original", "attacked", "drop"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A measure of one checkpoint or arm on some data, and its difference from the same measure of a baseline.

    Ends of intervals are those of 95%. What is unknown or undefined is None.
    """

    name: str  # of the checkpoint or arm
    updates: int | None = None  # that it was trained for
    data: str
    measure: str
    part: str = ""  # of the data, or the synonym table that the measure is about
    unit: str = ""
    detail: bool = False  # a part of another row, which is neither drawn nor corrected for
    seeds: int | None  # None for an average over tasks with different seeds
    items: int | None = None  # examples, pairs or targets that were measured
    value: float | None
    low: float | None = None
    high: float | None = None
    seed_sd: float | None = None
    median: float | None = None  # of the seeds
    best: float | None = None  # of the seeds
    baseline: str | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p: float | None = None  # two-sided, that the difference is zero
    holm: float | None = None  # p after Holm's correction for all rows that are no details
    seeds_needed: int | None = None  # on each side, to detect a true difference of 1.0

    @property
    def title(self) -> str:
        """What is measured, with its unit."""
        unit = f" ({self.unit})" if self.unit else ""
        return f"{self.data}: {self.measure}{f', {self.part}' if self.part else ''}{unit}"


def decimals(unit: str, value: float) -> int:
    """Decimal places of a measure of about this size: updates are integers, and losses and small shares need more."""
    if unit == "updates":
        return 0
    if unit == "%" and 0 < abs(value) < 0.01:
        return 5
    return 2 if abs(value) >= 1 and unit != "bits" else 3


def read_report(path: Path, remedy: str) -> list[Comparison]:
    """The rows in the JSON file of a report; raises InputError, with what to do, for any other file."""
    rows: Any = read_json_object(path, remedy).get(ROWS)
    try:
        return [Comparison(**row) for row in rows]
    except TypeError:
        raise InputError(f"{path}: not a report of this version; {remedy}") from None
