"""WordNet as a source of synonyms, in English and other languages, and the functions that make it available."""

import io
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import warnings
from pathlib import Path

import nltk
from nltk.corpus.reader.wordnet import WordNetCorpusReader
from nltk.downloader import Downloader

from ..errors import InputError

DEBIAN_FOLDER = Path("/usr/share/wordnet")
DEBIAN_PACKAGES = ("wordnet-base", "wordnet-sense-index")

# lexnames(5WN), in order: the lexicographer files that the numbers in data.* refer to. Debian leaves the file out.
_LEXICOGRAPHER_FILES = """
adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition
noun.communication noun.event noun.feeling noun.food noun.group noun.location noun.motive noun.object noun.person
noun.phenomenon noun.plant noun.possession noun.process noun.quantity noun.relation noun.shape noun.state noun.substance
noun.time verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption verb.contact
verb.creation verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative verb.weather adj.ppl
"""
_SYNTACTIC_CATEGORY = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}


def ensure_wordnet() -> WordNetCorpusReader:
    """Return NLTK's WordNet reader, fetching WordNet first where it is missing.

    In this order: what NLTK already has; ``nltk.download``; Debian's packages, which are installed where that is
    possible and copied to a folder that NLTK reads. Raises InputError, naming these ways, where none works.
    """
    reader = _loaded_reader()
    if reader is not None:
        return reader
    _report("WordNet: not found by NLTK; trying nltk.download")
    download_failure = _download("wordnet")
    if download_failure is not None:
        _report(f"WordNet: the download failed ({download_failure}); trying Debian's packages")
        _install_debian_packages(download_failure)
        _report(f"WordNet: ready in {_copy_debian_files()}")
    reader = _loaded_reader()
    if reader is None:
        raise InputError("WordNet was fetched but NLTK does not find it; see the warnings of NLTK above")
    return reader


def ensure_language(reader: WordNetCorpusReader, language: str) -> None:
    """Make ``reader`` know the lemmas of a language other than English, fetching them first where they are missing.

    They come from the Open Multilingual WordNet (Bond and Foster 2013), in the release that this NLTK reads: what NLTK
    already has, or else ``nltk.download``. ``language`` is a code of ISO 639-3, such as fra. Raises InputError where
    there is no such language, and where the release is damaged or cannot be had.
    """
    package = _multilingual_package(reader)
    if not _loaded_languages(reader, package):
        _report(f"{package}: not found by NLTK; trying nltk.download")
        download_failure = _download(package)
        if download_failure is not None:
            raise InputError(
                f"--lang {language} needs the Open Multilingual WordNet, and downloading it failed "
                f"({download_failure}); get it with python -m nltk.downloader {package}"
            )
        if not _loaded_languages(reader, package):
            raise InputError(f"{package} was fetched but NLTK does not find it; see the warnings of NLTK above")
    if language not in reader.langs():
        raise InputError(
            f"--lang {language}: not in {package}; name a language that is there: {', '.join(sorted(reader.langs()))}"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a line each for entries whose synset WordNet lacks
            reader.all_lemma_names(lang=language)  # read now what the look-ups need, while a fault can be named
    except Exception as error:  # a damaged file fails in many ways
        raise _damaged(reader._omw_reader.root, error) from None


def wordnet_version(reader: WordNetCorpusReader, language: str = "eng") -> str:
    """Name the WordNet that ``reader`` reads, such as ``WordNet 3.0``, and the source of the lemmas of ``language``."""
    version = f"WordNet {reader.get_version()}"
    return version if language == "eng" else f"{version} with {_multilingual_package(reader)} ({language})"


def wordnet_synonyms(reader: WordNetCorpusReader, word: str, language: str = "eng") -> list[str]:
    """All lemma names of all synsets of ``word`` (and of its base forms), once each, in WordNet's order.

    Usually ``word`` itself is among them. An empty list means that WordNet does not know the word. WordNet knows base
    forms of English words only: those of other languages are looked up as they are, but for their casing.
    """
    synsets = reader.synsets(word, lang=language)
    return list(dict.fromkeys(name for synset in synsets for name in synset.lemma_names(language)))


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _loaded_reader() -> WordNetCorpusReader | None:
    """NLTK's reader, or None where NLTK finds no WordNet; raises InputError for one that it finds but cannot read."""
    try:
        nltk.corpus.wordnet.ensure_loaded()
    except LookupError:
        return None
    except Exception as error:  # a damaged WordNet fails in many ways: missing file, assertion, bad number
        folder = nltk.data.find("corpora/wordnet")
        raise InputError(f"{folder}: not a complete WordNet ({error!r}); remove it and run this again") from None
    return nltk.corpus.wordnet


def _multilingual_package(reader: WordNetCorpusReader) -> str:
    """The release of the Open Multilingual WordNet that this NLTK reads: omw-1.4, or from NLTK 3.10 on omw-2.0."""
    return reader._omw_reader.__name__


def _loaded_languages(reader: WordNetCorpusReader, package: str) -> bool:
    """Whether NLTK finds the Open Multilingual WordNet; raises InputError for one that it finds but cannot read."""
    if reader.omw_langs:
        return True
    try:
        reader.add_omw()
    except LookupError:
        return False
    except Exception as error:  # such as a damaged zip file
        raise _damaged(package, error) from None
    return True


def _damaged(where: object, error: Exception) -> InputError:
    return InputError(f"{where}: not a complete Open Multilingual WordNet ({error!r}); remove it and run this again")


def _download(package: str) -> str | None:
    """Fetch a package with NLTK's downloader and return None, or return in a few words why that failed."""
    try:
        # NLTK's downloader waits two minutes for a server that does not answer: knock first.
        urllib.request.urlopen(Downloader.DEFAULT_URL, timeout=5).close()
        messages = io.StringIO()
        if nltk.download(package, quiet=True, print_error_to=messages):
            return None
        return " ".join(messages.getvalue().split())
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))


def _install_debian_packages(download_failure: str) -> None:
    """Install Debian's WordNet unless it is complete already; raises InputError where that cannot be done."""
    if _debian_files_complete():
        return
    packages = " ".join(DEBIAN_PACKAGES)
    by_hand = f"python -m nltk.downloader wordnet, or as root: apt-get install {packages}"
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise InputError(f"no WordNet, and downloading it failed ({download_failure}); get it with {by_hand}")
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
        f"no WordNet: downloading it failed ({download_failure}) and so did apt-get install {packages} ({last_line}); "
        f"get it with {by_hand}"
    )


def _debian_files_complete() -> bool:
    files = [name for name in WordNetCorpusReader._FILES if name != "lexnames"]
    return all((DEBIAN_FOLDER / name).is_file() for name in files)


def _copy_debian_files() -> Path:
    """Copy Debian's files, and the ``lexnames`` that Debian lacks, to the first folder of NLTK's that is ours to write.

    NLTK reads nothing outside its folders, and nothing that others may write: hence a copy with modes of its own.
    """
    for root in map(Path, nltk.data.path):
        folder = root / "corpora" / "wordnet"
        try:
            for parent in (root, folder.parent):
                parent.mkdir(mode=0o755, exist_ok=True)
                if parent.stat().st_mode & 0o022:
                    raise PermissionError(f"{parent} is writable by others, so NLTK would not read it")
            temporary = Path(tempfile.mkdtemp(prefix=".wordnet-", dir=folder.parent))
        except OSError:
            continue
        try:
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
            temporary.rename(folder)  # nothing half-copied ever has the name that NLTK looks for
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            if not folder.exists():  # otherwise another process was faster
                raise InputError(f"{folder}: {error.strerror}; WordNet needs 40 MB of room there") from None
        return folder
    raise InputError(
        f"no folder for WordNet: none of NLTK's can be written by you alone ({', '.join(nltk.data.path)}); "
        "set NLTK_DATA to an existing folder of your own"
    )
