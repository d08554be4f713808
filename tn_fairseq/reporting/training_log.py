"""The JSON records in the log of ``fairseq-train --log-format json``."""

import json
from pathlib import Path
from typing import Any

from ..files import read_text


def read_records(log: Path, name: str, remedy: str = "give a log of fairseq-train") -> list[dict[str, Any]]:
    """The records of one kind, such as ``train_inner``, by their number of updates.

    A resumed run logs some updates again, and the later record counts. Raises InputError with the ``remedy`` if the log
    cannot be read.
    """
    records = {}
    for line in read_text(log, remedy).splitlines():
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
