"""Check an installation, and whether data, a checkpoint and a synonym table fit together: one line for each check.

    tn-fairseq look doctor
    tn-fairseq look doctor --data data-bin --checkpoint checkpoint_last.pt --synonym-table synonyms.safetensors

The exit code is 1 if something essential is missing. This also runs if torch or fairseq is missing or damaged.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from ..tools.doctor import examine
from .arguments import command_parser


def main(argv: Sequence[str] | None = None) -> None:
    """Print all checks; exit with 1 if one fails."""
    parser = command_parser("look doctor", __doc__)
    parser.add_argument("--data", type=Path, metavar="DIR", help="a data folder of fairseq-train")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="a checkpoint of fairseq-train")
    parser.add_argument("--synonym-table", type=Path, metavar="FILE", help="a synonym table")
    options = parser.parse_args(argv)
    if not examine(options.data, options.checkpoint, options.synonym_table):
        sys.exit(1)
