"""Check an installation, and whether data, a checkpoint and a synonym table fit together: one line for each check.

    tn-fairseq look doctor
    tn-fairseq look doctor --data data-bin --checkpoint checkpoint_last.pt --synonym-table synonyms.safetensors

The exit code is 1 if something essential is missing. This also runs if torch or fairseq is missing or damaged.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from ..core.options import option
from ..tools.doctor import examine
from .arguments import command_line


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """What to check besides the installation."""

    data: Path | None = option("a data folder of fairseq-train", default=None, metavar="DIR")
    checkpoint: Path | None = option("a checkpoint of fairseq-train", default=None)
    synonym_table: Path | None = option("a synonym table", default=None)


def doctor(options: DoctorOptions) -> None:
    """Print all checks; exit with 1 if one fails."""
    if not examine(options.data, options.checkpoint, options.synonym_table):
        sys.exit(1)


main = command_line("look doctor", __doc__, doctor)
