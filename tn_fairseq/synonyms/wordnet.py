"""WordNet as a source of synonyms, in English and other languages."""

import io
import os
import sys
import urllib.request
import warnings
from functools import cache

import nltk
from nltk.corpus.reader.wordnet import WordNetCorpusReader
from nltk.downloader import Downloader

from ..errors import InputError
from .inflection import inflect, readings

_PARTS_OF_SPEECH = {"n": "NOUN", "v": "VERB", "a": "ADJ", "s": "ADJ", "r": "ADV"}
FETCH = "python -m tn_fairseq.synonyms.fetch_wordnet"


class DownloadFailed(InputError):
    """WordNet is missing, and NLTK could not download it."""


def find_wordnet(language: str = "eng") -> WordNetCorpusReader | None:
    """NLTK's WordNet reader, or None if NLTK finds no WordNet or no lemmas of the language. Downloads nothing.

    Raises InputError for files that NLTK finds but cannot read.
    """
    try:
        nltk.corpus.wordnet.ensure_loaded()
    except LookupError:
        return None
    except Exception as error:  # a damaged WordNet fails in many ways: missing file, assertion, bad number
        folder = nltk.data.find("corpora/wordnet")
        raise InputError(f"{folder}: not a complete WordNet ({error!r}); delete it and run this again") from None
    reader = nltk.corpus.wordnet
    if language != "eng":
        found = _loaded_languages(reader, _multilingual_package(reader)) and language in reader.langs()
        return reader if found else None
    return reader


def ensure_wordnet() -> WordNetCorpusReader:
    """NLTK's WordNet reader; if NLTK finds no WordNet, it is downloaded with ``nltk.download``.

    Raises DownloadFailed (an InputError), which says how else to get it, if that fails.
    """
    reader = find_wordnet()
    if reader is not None:
        return reader
    report("WordNet: not found by NLTK; trying nltk.download")
    failure = _download("wordnet")
    if failure is not None:
        raise DownloadFailed(f"no WordNet, and downloading it failed ({failure}); get it with {FETCH}")
    reader = find_wordnet()
    if reader is None:
        raise InputError("WordNet was downloaded but NLTK does not find it; see NLTK's warnings above")
    return reader


def process_reader() -> WordNetCorpusReader:
    """A WordNet reader of this process alone: after a fork, NLTK's would share open files, and their positions.

    Raises InputError as ``ensure_wordnet`` does.
    """
    return _process_reader(os.getpid())


@cache
def _process_reader(process: int) -> WordNetCorpusReader:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other languages are not available, says NLTK
        return WordNetCorpusReader(ensure_wordnet().root, None)


def ensure_language(reader: WordNetCorpusReader, language: str) -> None:
    """Load the lemmas of a language other than English into ``reader``; download them if they are missing.

    They come from the Open Multilingual WordNet (Bond and Foster 2013), in the release that this NLTK reads: what NLTK
    already has, or else ``nltk.download``. ``language`` is an ISO 639-3 code, such as fra. Raises InputError if the
    language is unknown, or the release is damaged or cannot be downloaded.
    """
    package = _multilingual_package(reader)
    if not _loaded_languages(reader, package):
        report(f"{package}: not found by NLTK; trying nltk.download")
        download_failure = _download(package)
        if download_failure is not None:
            raise InputError(
                f"--lang {language} needs the Open Multilingual WordNet, and downloading it failed "
                f"({download_failure}); get it with python -m nltk.downloader {package}"
            )
        if not _loaded_languages(reader, package):
            raise InputError(f"{package} was downloaded but NLTK does not find it; see NLTK's warnings above")
    if language not in reader.langs():
        raise InputError(
            f"--lang {language}: not in {package}; give one of its languages: {', '.join(sorted(reader.langs()))}"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one line for each entry whose synset is not in WordNet
            reader.all_lemma_names(lang=language)  # load everything now, so that errors can be reported
    except Exception as error:  # a damaged file fails in many ways
        raise _damaged(reader._omw_reader.root, error) from None


def wordnet_version(reader: WordNetCorpusReader, language: str = "eng") -> str:
    """The version of ``reader``'s WordNet, such as ``WordNet 3.0``, and the source of the lemmas of ``language``."""
    version = f"WordNet {reader.get_version()}"
    return version if language == "eng" else f"{version} with {_multilingual_package(reader)} ({language})"


def wordnet_synonyms(reader: WordNetCorpusReader, word: str, language: str = "eng") -> list[str]:
    """All lemma names of all synsets of ``word`` (and of its base forms), once each, in WordNet's order.

    Usually ``word`` itself is among them. An empty list means that WordNet does not know the word. WordNet finds base
    forms only for English words; words of other languages are looked up as they are, ignoring case.
    """
    synsets = reader.synsets(word, lang=language)
    return list(dict.fromkeys(name for synset in synsets for name in synset.lemma_names(language)))


def inflected_synonyms(reader: WordNetCorpusReader, word: str) -> list[str]:
    """The lemmas of ``wordnet_synonyms``, in English, each followed by its inflections in the form of ``word``.

    For *elections*: *election*, *elections*, *poll*, *polls*, ...
    """
    names: dict[str, None] = {}
    for synset in reader.synsets(word):
        part_of_speech = _PARTS_OF_SPEECH[synset.pos()]
        forms = sorted({reading.form for reading in readings(word.lower()) if reading.part_of_speech == part_of_speech})
        for name in synset.lemma_names():
            names[name] = None
            names.update((spelling, None) for form in forms for spelling in inflect(name.lower(), part_of_speech, form))
    return list(names)


def report(line: str) -> None:
    """Print a line to standard error and flush it."""
    print(line, file=sys.stderr, flush=True)


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
    return InputError(f"{where}: not a complete Open Multilingual WordNet ({error!r}); delete it and run this again")


def _download(package: str) -> str | None:
    """Download a package with NLTK's downloader; return None, or a short reason if that failed."""
    try:
        # NLTK's downloader waits two minutes for a server that does not answer, so check first.
        urllib.request.urlopen(Downloader.DEFAULT_URL, timeout=5).close()
        messages = io.StringIO()
        if nltk.download(package, quiet=True, print_error_to=messages):
            return None
        return " ".join(messages.getvalue().split())
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))
