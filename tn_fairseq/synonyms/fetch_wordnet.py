"""Get WordNet for NLTK.

Tries in this order: what NLTK already has; nltk.download; the files of Debian's packages or of Princeton's archive,
which are copied to a folder that NLTK reads.
"""

import os
import shutil
import sys
from pathlib import Path

import nltk
from nltk.corpus.reader.wordnet import WordNetCorpusReader

from ..core.errors import InputError
from ..core.files import write_atomically
from .wordnet import DownloadFailed, ensure_wordnet

DEBIAN_FOLDER = Path("/usr/share/wordnet")
DEBIAN_PACKAGES = "wordnet-base wordnet-sense-index"
_FILES = [name for name in WordNetCorpusReader._FILES if name != "lexnames"]

# lexnames(5WN), in order: the lexicographer files that the numbers in data.* refer to. Debian does not ship it.
_LEXICOGRAPHER_FILES = """
adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition
noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person
noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state noun.substance
noun.time verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption verb.contact
verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative verb.weather adj.ppl
""".split()
_SYNTACTIC_CATEGORIES = ("", "noun", "verb", "adj", "adv")


def fetch_wordnet(folder: Path | None = None) -> WordNetCorpusReader:
    """NLTK's WordNet reader; if necessary, download WordNet, or copy its files from a folder, by default Debian's.

    Raises InputError, which says how else to get it, if everything fails, and for a folder that lacks files.
    """
    source = folder or DEBIAN_FOLDER
    missing = [name for name in _FILES if not (source / name).is_file()]
    if missing and folder:
        raise InputError(f"--from {folder}: has no {missing[0]}; give the folder dict of WordNet-3.0.tar.gz")
    try:
        return ensure_wordnet()
    except DownloadFailed as failure:
        reason = str(failure).partition(";")[0]
    if missing:
        raise InputError(
            f"{reason}, and {source} has no {missing[0]}; connect to the internet, or apt-get install "
            f"{DEBIAN_PACKAGES}, or unpack WordNet-3.0.tar.gz of Princeton and give its folder dict with --from"
        )
    print(f"WordNet: ready in {copy_files(source)}", file=sys.stderr, flush=True)
    return ensure_wordnet()


def copy_files(source: Path) -> Path:
    """Copy WordNet's files, and the ``lexnames`` that Debian lacks, to NLTK's first folder that we can write to.

    NLTK reads only files that are in its folders and that others cannot write, so the copy gets its own permissions.
    Raises InputError if there is no such folder, or not enough space.
    """
    for root in map(Path, nltk.data.path):
        folder = root / "corpora" / "wordnet"
        if not (_make_private(root) and _make_private(folder.parent)):
            continue
        try:
            with write_atomically(folder, "WordNet needs 40 MB of space there") as temporary:
                _copy(source, temporary)
        except InputError:
            if not folder.exists():  # otherwise another process was faster
                raise
        return folder
    raise InputError(
        f"no folder for WordNet: none of NLTK's folders is writable only by you ({', '.join(nltk.data.path)}); "
        "set NLTK_DATA to an existing folder of your own"
    )


def _copy(source: Path, folder: Path) -> None:
    folder.mkdir()
    for name in _FILES:
        shutil.copyfile(source / name, folder / name)
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
