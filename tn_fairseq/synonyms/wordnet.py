"""WordNet as a source of synonyms, in English and other languages."""

import io
import multiprocessing
import os
import re
import sys
import urllib.request
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache, partial
from pathlib import Path

import nltk
from nltk.corpus.reader.wordnet import WordNetCorpusReader
from nltk.downloader import Downloader

from ..core.errors import InputError, first_line
from .inflection import inflect, readings

_PARTS_OF_SPEECH = {"n": "NOUN", "v": "VERB", "a": "ADJ", "s": "ADJ", "r": "ADV"}
_OTHER_WORDNET = 0.25  # the share of lemmas without a synset that shows that the offsets are of another WordNet
# plus signs between parts of Chinese words; vowel points of Hebrew and Arabic, and Arabic's lengthening
_MARKS = re.compile(r"(?<=\w)\+(?=\w)|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670]")
# a line of a file of synsets; see the manual page wndb(5WN)
_SYNSET = re.compile(
    rb"(?P<offset>\d{8}) [0-4]\d [nvasr] (?P<lemma_count>[\da-f]{2}) (?P<lemmas>(?:\S+ [\da-f] )+)"
    rb"(?P<pointer_count>\d{3}) (?P<pointers>(?:\S+ \d{8} [nvasr] [\da-f]{4} )*)"
    rb"(?:\d\d (?:\+ \d\d [\da-f]{2} )+)?\| [^|]*\n"
)
FETCH = "tn-fairseq synonyms fetch-wordnet"


class DownloadFailed(InputError):
    """WordNet is missing, and NLTK could not download it."""


def find_wordnet(language: str = "eng") -> WordNetCorpusReader | None:
    """NLTK's WordNet reader, or None if NLTK finds no WordNet or no lemmas of the language. Downloads nothing.

    Raises InputError for files that NLTK finds but cannot read.
    """
    # a lambda, because NLTK loads it as soon as an attribute is looked up
    if not _loads("wordnet", lambda: nltk.corpus.wordnet.ensure_loaded()):
        return None
    reader = nltk.corpus.wordnet
    _loads("wordnet", partial(check_synsets, reader))
    return reader if language == "eng" or _finds_languages(reader) and language in reader.langs() else None


@lru_cache(maxsize=1)
def check_synsets(reader: WordNetCorpusReader) -> None:
    """Raises ValueError if the files of synsets are damaged, which NLTK reads only when it needs a synset."""
    for part_of_speech, name in {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}.items():
        if not Path(reader.abspath(f"{name}.exc")).read_bytes().endswith(b"\n"):
            raise ValueError(f"{name}.exc is cut")
        offsets, place = set(), 0
        with open(reader.abspath(f"data.{name}"), "rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.startswith(b"  "):  # the license
                    synset = _SYNSET.fullmatch(line)
                    if (
                        synset is None
                        or int(synset["offset"]) != place
                        or synset["lemmas"].count(b" ") != 2 * int(synset["lemma_count"], 16)
                        or synset["pointers"].count(b" ") != 4 * int(synset["pointer_count"])
                    ):
                        raise ValueError(f"data.{name}, line {number}")
                    offsets.add(place)
                place += len(line)
        known = reader._lemma_pos_offset_map.values()
        if offsets != {offset for found in known for offset in found.get(part_of_speech, ())}:
            raise ValueError(f"data.{name} and index.{name} have other synsets")


def ensure_wordnet(language: str = "eng") -> WordNetCorpusReader:
    """NLTK's WordNet reader, with the lemmas of a language; what NLTK does not find is downloaded with it.

    Lemmas of other languages than English come from the Open Multilingual WordNet (Bond and Foster 2013), in the
    release that this NLTK reads. ``language`` is an ISO 639-3 code, such as fra. Raises DownloadFailed (an InputError),
    which says how else to get a package, and InputError for a damaged package and for an unknown language.
    """
    reader = nltk.corpus.wordnet
    _ensure("wordnet", find_wordnet, FETCH)
    if language == "eng":
        return reader
    package = _multilingual_package(reader)
    _ensure(package, lambda: _finds_languages(reader), f"python -m nltk.downloader {package}")
    if language not in reader.langs():
        raise InputError(
            f"--lang {language}: not in {package}; give one of its languages: {', '.join(sorted(reader.langs()))}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # language_notes counts the entries whose synset is not in WordNet
        _loads(package, lambda: reader.all_lemma_names(lang=language))  # now, so that errors can be reported
    _write_as_texts_do(reader, language)
    return reader


def language_notes(reader: WordNetCorpusReader, language: str) -> list[str]:
    """Lines that count the lemmas of a language that ``ensure_wordnet`` has loaded, by part of speech.

    Lemmas of a synset that this WordNet lacks are lost. Raises InputError if a part of speech loses more than a quarter
    of them, because then the offsets are those of another WordNet.
    """
    synsets = set(reader.index_sense().values())
    known: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    example: dict[str, str] = {}
    provider = reader.provenances[language]
    kind = provider if provider in ("cldr", "wikt") else "data"  # as NLTK names the files
    with reader._omw_reader.open(f"{provider}/wn-{kind}-{language.split('_')[0]}.tab") as file:
        for line in file:
            offset, _, rest = line.strip().partition("\t")
            label, _, name = rest.rpartition("\t")
            if offset.startswith("#") or not label.endswith("lemma"):
                continue
            part_of_speech = _PARTS_OF_SPEECH.get(offset[-1:], "other")
            if offset in synsets or offset[-1:] == "a" and f"{offset[:-1]}s" in synsets:
                known[part_of_speech] += 1
            else:
                lost[part_of_speech] += 1
                example.setdefault(part_of_speech, f"{name} ({offset})")
    for part_of_speech, count in lost.items():
        total = count + known[part_of_speech]
        if count > _OTHER_WORDNET * total:
            raise InputError(
                f"--lang {language}: {count:,} of {total:,} lemmas of {part_of_speech}, such as "
                f"{example[part_of_speech]}, have offsets that the WordNet in {reader.root} lacks, as Debian's does; "
                "delete this folder, and get the original with python -m nltk.downloader wordnet"
            )
    return [
        f"{f'lemmas of {language}: {name}':36}{known[name]:11,} found, {lost[name]:,} lost"
        + (f", such as {example[name]}" if lost[name] else "")
        for name in sorted({*known, *lost})
    ]


def _write_as_texts_do(reader: WordNetCorpusReader, language: str) -> None:
    """Remove from the lemmas of a language the marks that texts lack: plus signs in Chinese, vowels in Arabic."""
    names, offsets = reader._lang_data[language][:2]
    for offset, synset_names in names.items():
        names[offset] = list(dict.fromkeys(map(_plain, synset_names)))
    for name in [name for name in offsets if _plain(name) != name]:
        plain = offsets.setdefault(_plain(name), [])
        plain += [offset for offset in offsets.pop(name) if offset not in plain]


def _plain(name: str) -> str:
    return _MARKS.sub("", name)


@cache
def process_reader() -> WordNetCorpusReader:
    """A WordNet reader of this process alone: after a fork, NLTK's would share open files, and their positions.

    Raises InputError as ``ensure_wordnet`` does.
    """
    if multiprocessing.parent_process() is None:
        return ensure_wordnet()  # a second reader would take 2 seconds and 95 MB
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other languages are not available, says NLTK
        return WordNetCorpusReader(ensure_wordnet().root, None)


os.register_at_fork(after_in_child=process_reader.cache_clear)


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


def _multilingual_package(reader: WordNetCorpusReader) -> str:
    """The release of the Open Multilingual WordNet that this NLTK reads: omw-1.4, or from NLTK 3.10 on omw-2.0."""
    return reader._omw_reader.__name__


def _finds_languages(reader: WordNetCorpusReader) -> bool:
    return bool(reader.omw_langs) or _loads(_multilingual_package(reader), reader.add_omw)


def _loads(package: str, load: Callable[[], object]) -> bool:
    """Load a package of NLTK; return whether NLTK finds it. Raises InputError if it is damaged."""
    try:
        load()
    except Exception as error:  # damage has many consequences: missing file, assertion, bad number
        if type(error) is LookupError:  # not a subclass such as KeyError
            return False
        places = [Path(root, "corpora", name) for root in nltk.data.path for name in (package, f"{package}.zip")]
        damaged = " or ".join(str(place) for place in places if place.exists())
        raise InputError(
            f"{damaged}: not a complete {package} ({error!r}); delete it and run the same command again"
        ) from None
    return True


def _ensure(package: str, find: Callable[[], object], remedy: str) -> None:
    """Download a package with NLTK's downloader unless ``find`` finds it; raises DownloadFailed if that fails."""
    if find():
        return
    print(f"{package}: not found by NLTK; trying nltk.download", file=sys.stderr, flush=True)
    failure = _download(package) or (None if find() else "NLTK does not find it afterwards")
    if failure is not None:
        raise DownloadFailed(f"no {package}, and downloading it failed ({failure}); get it with {remedy}")


def _download(package: str) -> str | None:
    """Download a package with NLTK's downloader; return None, or a short reason if that failed."""
    try:
        # NLTK's downloader waits two minutes for a server that does not answer, so check first.
        urllib.request.urlopen(Downloader.DEFAULT_URL, timeout=5).close()
        messages = io.StringIO()
        if nltk.download(package, quiet=True, print_error_to=messages):
            return None
        return " ".join(messages.getvalue().split())
    except Exception as error:  # a proxy may answer with any page, which NLTK cannot parse
        return str(getattr(error, "reason", first_line(error)))
