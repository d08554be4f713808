"""Get WordNet for NLTK, as part of the installation.

    python -m tn_fairseq.synonyms.fetch_wordnet

Tries in this order: what NLTK already has; ``nltk.download``; Debian's packages, which are installed if this runs as
root, and copied to a folder that NLTK reads.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import nltk
from nltk.corpus.reader.wordnet import WordNetCorpusReader

from ..arguments import command_parser
from ..errors import InputError, one_line_errors
from ..files import write_atomically
from .wordnet import FETCH, DownloadFailed, ensure_wordnet, report, wordnet_version

DEBIAN_FOLDER = Path("/usr/share/wordnet")
DEBIAN_PACKAGES = "wordnet-base wordnet-sense-index"

# lexnames(5WN), in order: the lexicographer files that the numbers in data.* refer to. Debian does not ship it.
_LEXICOGRAPHER_FILES = """
adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition
noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person
noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state noun.substance
noun.time verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption verb.contact
verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative verb.weather adj.ppl
""".split()
_SYNTACTIC_CATEGORIES = ("", "noun", "verb", "adj", "adv")


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Make WordNet available, and print its version."""
    command_parser(FETCH, __doc__).parse_args(argv)
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
    """Install Debian's WordNet unless it is already complete; raises InputError if that fails, as without root."""
    if _debian_files_complete():
        return
    apt_get = "apt-get -o DPkg::Lock::Timeout=60 -qq"
    install = f"{apt_get} install --yes --no-install-recommends {DEBIAN_PACKAGES}"
    # a fresh container has no package lists: update them, but only if the first attempt fails
    finished = subprocess.run(
        f"{install} || {{ {apt_get} update; {install}; }}",
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    )
    if not _debian_files_complete():
        last_line = (finished.stdout.strip().splitlines() or ["no output"])[-1]
        raise InputError(
            f"no WordNet: apt-get install {DEBIAN_PACKAGES} failed ({last_line}); run this again as root and connected "
            "to the internet, or get WordNet with python -m nltk.downloader wordnet"
        )


def _debian_files_complete() -> bool:
    return all((DEBIAN_FOLDER / name).is_file() for name in WordNetCorpusReader._FILES if name != "lexnames")


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
            with write_atomically(folder, "WordNet needs 40 MB of space there") as temporary:
                _copy_to(temporary)
        except InputError:
            if not folder.exists():  # otherwise another process was faster
                raise
        return folder
    raise InputError(
        f"no folder for WordNet: none of NLTK's folders is writable only by you ({', '.join(nltk.data.path)}); "
        "set NLTK_DATA to an existing folder of your own"
    )


def _copy_to(folder: Path) -> None:
    folder.mkdir()
    for name in WordNetCorpusReader._FILES:
        if name != "lexnames":
            shutil.copyfile(DEBIAN_FOLDER / name, folder / name)
    categories = (_SYNTACTIC_CATEGORIES.index(name.partition(".")[0]) for name in _LEXICOGRAPHER_FILES)
    lines = zip(_LEXICOGRAPHER_FILES, categories, strict=True)
    lexnames = "".join(f"{number:02d}\t{name}\t{category}\n" for number, (name, category) in enumerate(lines))
    (folder / "lexnames").write_text(lexnames)
    for path in folder.iterdir():
        path.chmod(0o644)
    folder.chmod(0o755)


def _make_private(folder: Path) -> bool:
    """Create a folder if missing; return whether only we can write to it, because NLTK reads no others."""
    try:
        folder.mkdir(mode=0o755, exist_ok=True)
        return os.access(folder, os.W_OK) and not folder.stat().st_mode & 0o022
    except OSError:
        return False


if __name__ == "__main__":
    main()
