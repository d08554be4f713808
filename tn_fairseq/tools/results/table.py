"""The table of results: a row is one value, and nothing else is a result.

``start`` and ``arm`` say what was trained and how; outside of a study, ``arm`` is the name of a checkpoint.
``checkpoint`` is the number of updates or a file, ``data`` what was measured on, ``measure`` a name in measures.py, and
``part`` a part of the data. ``item`` is one of what was measured: a question, a pair of words, a masking. Items in one
cluster, such as the questions on one paragraph, are named ``CLUSTER/ITEM``. The mean of all items of a seed is its
figure.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from ...core.errors import InputError, first_line

COLUMNS: dict[str, Any] = {
    "start": "",
    "arm": "",
    "checkpoint": "",
    "seed": 0,
    "data": "",
    "measure": "",
    "part": "",
    "item": "",
    "value": float("nan"),
}
ABOUT = b"tn_fairseq"  # in the metadata of a file: what the table was made from


def table_of(rows: Iterable[Mapping[str, Any]], **common: Any) -> pd.DataFrame:
    """A table of rows that may lack columns; ``common`` are the values of columns that all of them have."""
    return column_table(
        pd.DataFrame.from_records([COLUMNS | common | dict(row) for row in rows], columns=list(COLUMNS))
    )


def column_table(columns: Mapping[str, Any]) -> pd.DataFrame:
    """A table of columns, one of which at least is a list; the values of others may be the same for all rows."""
    table = pd.DataFrame(COLUMNS | dict(columns), columns=list(COLUMNS))
    texts = {column: str for column, default in COLUMNS.items() if default == ""}
    return table.astype({**texts, "seed": "int64", "value": "float64"})


def join(*tables: pd.DataFrame) -> pd.DataFrame:
    """The rows of all tables; of rows about the same, the first."""
    rows = pd.concat([table for table in tables if len(table)] or [table_of([])], ignore_index=True)
    return rows.drop_duplicates([column for column in COLUMNS if column != "value"], ignore_index=True)


def write_table(table: pd.DataFrame, path: Path, about: Mapping[str, Any] | None = None) -> None:
    """Write a table as Parquet, and what it was made from as JSON into its metadata."""
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    arrow = arrow.replace_schema_metadata({ABOUT: json.dumps(about or {}, ensure_ascii=False)})
    texts = [column for column, default in COLUMNS.items() if default == ""]
    parquet.write_table(arrow, path, compression="zstd", use_dictionary=texts)


def read_table(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The table in a file, and what it was made from; raises InputError for any other file."""
    try:
        arrow = parquet.read_table(path, columns=list(COLUMNS))
        about = json.loads((arrow.schema.metadata or {})[ABOUT])
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        reason = first_line(error) or type(error).__name__
        raise InputError(f"{path}: not a table of results ({reason}); give a results.parquet") from None
    return arrow.to_pandas(), about
