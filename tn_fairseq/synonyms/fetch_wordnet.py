"""Get WordNet for NLTK, as part of the installation.

    python -m tn_fairseq.synonyms.fetch_wordnet

Tries in this order: what NLTK already has; ``nltk.download``; Debian's packages, which are installed if this runs as
root, and copied to a folder that NLTK reads.
"""

import argparse
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import nltk
from nltk.corpus.reader.wordnet import WordNetCorpusReader

from ..errors import InputError, one_line_errors
from ..files import write_atomically
from .wordnet import FETCH, DownloadFailed, ensure_wordnet, report, wordnet_version

DEBIAN_FOLDER = Path("/usr/share/wordnet")
DEBIAN_PACKAGES = ("wordnet-base", "wordnet-sense-index")

# lexnames(5WN), in order: the lexicographer files that the numbers in data.* refer to. Debian does not ship it.
_LEXICOGRAPHER_FILES = """
adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition
noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person
noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state noun.substance
noun.time verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption verb.contact
verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative verb.weather adj.ppl
"""
_SYNTACTIC_CATEGORY = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Make WordNet available, and print its version."""
    argparse.ArgumentParser(
        prog=FETCH, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args(argv)
    print(f"{wordnet_version(fetch_wordnet())} is ready")


def fetch_wordnet() -> WordNetCorpusReader:
    """NLTK's WordNet reader; if necessary, download WordNet or use Debian's packages.

    Raises InputError, which says how else to get it, if everything fails.
    """
    try:
        return ensure_wordnet()
    except DownloadFailed as failure:
        report(f"{str(failure).partition(';')[0]}; trying Debian's packages")
    install_debian_packages()
    report(f"WordNet: ready in {copy_debian_files()}")
    return ensure_wordnet()


def install_debian_packages() -> None:
    """Install Debian's WordNet unless it is already complete; raises InputError if that is impossible."""
    if _debian_files_complete():
        return
    packages = " ".join(DEBIAN_PACKAGES)
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise InputError(
            "no WordNet: Debian's packages need apt-get and root; get it with python -m nltk.downloader wordnet, or as "
            f"root with apt-get install {packages}, and run this again"
        )
    apt_get = ["apt-get", "-o", "DPkg::Lock::Timeout=60", "-qq"]
    install = [*apt_get, "install", "--yes", "--no-install-recommends", *DEBIAN_PACKAGES]
    # A fresh container has no package lists: update them, but only if the first attempt fails.
    for command in (install, [*apt_get, "update"], install):
        finished = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
        if _debian_files_complete():
            return
    last_line = (finished.stdout.strip().splitlines() or ["no output"])[-1]
    raise InputError(
        f"no WordNet: apt-get install {packages} failed ({last_line}); connect to the internet and run this again, or "
        "get it with python -m nltk.downloader wordnet"
    )


def _debian_files_complete() -> bool:
    files = [name for name in WordNetCorpusReader._FILES if name != "lexnames"]
    return all((DEBIAN_FOLDER / name).is_file() for name in files)


def copy_debian_files() -> Path:
    """Copy Debian's files, and the ``lexnames`` that Debian lacks, to NLTK's first folder that we can write to.

    NLTK reads only files that are in its folders and that others cannot write, so the copy gets its own permissions.
    Raises InputError if there is no such folder, or not enough space.
    """
    for root in map(Path, nltk.data.path):
        folder = root / "corpora" / "wordnet"
        if not (_make_private(root) and _make_private(folder.parent)):
            continue
        try:
            _copy_to(folder)
        except InputError:
            if not folder.exists():  # otherwise another process was faster
                raise
        return folder
    raise InputError(
        f"no folder for WordNet: none of NLTK's folders is writable only by you ({', '.join(nltk.data.path)}); "
        "set NLTK_DATA to an existing folder of your own"
    )


def _copy_to(folder: Path) -> None:
    with write_atomically(folder, "WordNet needs 40 MB of space there") as temporary:
        temporary.mkdir()
        for name in WordNetCorpusReader._FILES:
            if name == "lexnames":
                lines = (
                    f"{number:02d}\t{name}\t{_SYNTACTIC_CATEGORY[name.split('.')[0]]}\n"
                    for number, name in enumerate(_LEXICOGRAPHER_FILES.split())
                )
                (temporary / "lexnames").write_text("".join(lines))
            else:
                shutil.copyfile(DEBIAN_FOLDER / name, temporary / name)
            (temporary / name).chmod(0o644)
        temporary.chmod(0o755)


def _make_private(folder: Path) -> bool:
    """Create a folder if missing; return whether only we can write to it, because NLTK reads no others."""
    try:
        folder.mkdir(mode=0o755, exist_ok=True)
        return os.access(folder, os.W_OK) and not folder.stat().st_mode & 0o022
    except OSError:
        return False


if __name__ == "__main__":
    main()
