"""The JSON records in the log of ``fairseq-train --log-format json``."""

import json
import math
import statistics
from pathlib import Path
from typing import Any

from ..core.errors import InputError
from ..core.files import read_bytes

MOST_POINTS = 100  # of a curve of losses


def read_records(log: Path, name: str, remedy: str = "give a log of fairseq-train") -> list[dict[str, Any]]:
    """The records of one kind, such as ``train_inner``, by their number of updates.

    A resumed run logs some updates again, and the later record counts. Raises InputError with the ``remedy`` if the log
    cannot be read.
    """
    records = {}
    text = read_bytes(log, remedy).decode(errors="replace")  # a run that was killed can end within a letter
    for line in text.splitlines():
        record = parse_record(line, name)
        if record:
            records[int(record.get("num_updates") or record[f"{name}_num_updates"])] = record
    return [records[updates] for updates in sorted(records)]


def parse_record(line: str, name: str) -> dict[str, Any] | None:
    """The record in a line of the log, or ``None`` if the line has no complete record of this kind."""
    marker = f" | {name} | {{"
    if marker not in line:
        return None
    try:
        return json.loads("{" + line.split(marker, 1)[1])
    except json.JSONDecodeError:  # the run was killed while it wrote this line
        return None


def loss_points(log: Path) -> list[tuple[int, float]]:
    """The masked-LM losses in training, in bits: pairs of updates and loss, as means if the log has many records.

    Raises InputError if the log has none, and as ``read_records``.
    """
    records = read_records(log, "train_inner")
    if not records:
        raise InputError(f"{log}: no losses in it; give a log of fairseq-train with --log-format json")
    # fairseq's masked_lm logs only the loss
    losses = [(int(record["num_updates"]), float(record.get("nll_loss", record["loss"]))) for record in records]
    size = math.ceil(len(losses) / MOST_POINTS)
    groups = [losses[start : start + size] for start in range(0, len(losses), size)]
    return [(group[-1][0], round(statistics.fmean(loss for _, loss in group), 4)) for group in groups]
