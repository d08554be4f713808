"""Get WordNet for NLTK.

Tries in this order: what NLTK already has; ``nltk.download``; the files of Debian's packages or of Princeton's archive,
which are copied to a folder that NLTK reads.
"""

from dataclasses import dataclass
from pathlib import Path

from ..core.options import option
from .arguments import command_line


@dataclass(frozen=True, kw_only=True)
class FetchOptions:
    """Where WordNet is if it cannot be downloaded."""

    folder: Path | None = option(
        "a folder with WordNet 3.0's data.noun, ..., used if NLTK has none and cannot download it (default: "
        "/usr/share/wordnet, of Debian's packages)",
        default=None,
        flag="--from",
        metavar="FOLDER",
    )


def fetch(options: FetchOptions) -> None:
    """Make WordNet available, and print its version."""
    # imported here because nltk takes seconds to import and --help does not need it
    from ..synonyms.fetch_wordnet import fetch_wordnet
    from ..synonyms.wordnet import wordnet_version

    print(f"{wordnet_version(fetch_wordnet(options.folder))} is ready")


main = command_line("synonyms fetch-wordnet", __doc__, fetch)
