"""Get WordNet for NLTK.

Tries in this order: what NLTK already has; ``nltk.download``; the files of Debian's packages or of Princeton's archive,
which are copied to a folder that NLTK reads.
"""

from collections.abc import Sequence
from pathlib import Path

from ..core.errors import one_line_errors
from ..synonyms.fetch_wordnet import DEBIAN_FOLDER, fetch_wordnet
from ..synonyms.wordnet import wordnet_version
from .arguments import command_parser


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Make WordNet available, and print its version."""
    parser = command_parser("synonyms fetch-wordnet", __doc__)
    parser.add_argument(
        "--from",
        dest="folder",
        type=Path,
        default=DEBIAN_FOLDER,
        help="a folder with WordNet 3.0's data.noun, ..., used if NLTK has none and cannot download it (default: "
        "%(default)s, of Debian's packages)",
    )
    options = parser.parse_args(argv)
    print(f"{wordnet_version(fetch_wordnet(options.folder))} is ready")
