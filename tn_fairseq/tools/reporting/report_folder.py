"""The folder of a report: its files are written together at the end, and listed."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...core.errors import InputError
from ...core.files import publish, write_folder


@contextmanager
def report_folder(output: Path, files: Mapping[str, str]) -> Iterator[Path]:
    """Yield a folder to write the files of a report to, and move them into ``output`` together at the end.

    ``files`` says what each file contains, and the last one must be written. Raises InputError for an output that
    cannot be written.
    """
    with write_folder(output, "--output") as folder:
        yield folder
        # delete the files of an earlier report, so that two reports do not mix
        publish(folder, output, last=list(files)[-1], old=[output / name for name in files])


def list_files(output: Path, files: Mapping[str, str]) -> list[str]:
    """A line for each file of the report that was written."""
    return [f"  {output / name}  {what}" for name, what in files.items() if (output / name).exists()]


def draw_if_possible(draw: Callable[..., None], rows: Sequence[Any], paths: Sequence[Path]) -> None:
    """Draw the rows to the paths; without matplotlib, say on standard error that they are not written."""
    try:
        draw(rows, *paths)
    except InputError as error:
        print(f"{' and '.join(path.name for path in paths)} are not written: {error}", file=sys.stderr)
