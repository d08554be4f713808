"""The sources of synonyms, each a row of ``SOURCES``, and the options of a table."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from ..core.dictionary import Symbols
from ..core.errors import InputError
from ..core.vocabulary import match_case
from .embeddings import read_embeddings
from .list_formats import FORMATS, TABLES
from .lists import SynonymList
from .neighbors import Vectors, nearest_neighbors
from .rows import COMBINATIONS
from .vectors import read_vectors

ENGLISH = "eng"
NEIGHBORS = 10
# The nearest of 22,000 random vectors of dimension 128 have a cosine of 0.4, like words early in training.
MODEL_MIN_SIMILARITY = 0.5


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The options of ``synonyms build`` that decide which synonyms are in a table; the command explains them.

    ``read_model`` reads the word embeddings of ``path`` as ``read_embeddings`` does. Raises InputError for options that
    are invalid, missing, or contradict each other.
    """

    source: Sequence[str]
    combine: str | None = None
    lang: str = ENGLISH
    vectors: str | Path | None = None
    path: Any = None
    synonyms: str | Path | None = None
    top_k: int | None = None
    min_similarity: float | None = None
    format: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, str | Collection[str]] = field(default_factory=dict)
    symmetric: bool = False
    min_score: float | None = None
    filter: Mapping[str, float] = field(default_factory=dict)
    same_inflection: bool = False
    no_contrasts: bool = False
    stop_words: str | Path | None = None
    read_model: Callable[[Any, Symbols, Mapping[int, str]], Vectors] = read_embeddings

    def __post_init__(self) -> None:
        for flag, names, known in (
            ("--source", self.source, SOURCES),
            ("--combine", [self.combine or "union"], COMBINATIONS),
            ("--format", [self.format or "tsv"], FORMATS),
            ("--columns", self.columns, ("word", "synonym", "score")),
            ("--filter", self.filter, FILTERS),
        ):
            if unknown := [name for name in names if name not in known]:
                raise InputError(f"{flag} {unknown[0]}: give one of {', '.join(known)}")
        if not self.source or len(set(self.source)) < len(self.source):
            raise InputError("--source must name at least one source, and none twice")
        if (len(self.source) > 1) != (self.combine is not None):
            raise InputError("several sources and --combine must be used together")
        for name, source in SOURCES.items():
            is_given = source.flag is not None and getattr(self, source.flag.lstrip("-")) is not None
            if source.flag and (name in self.source or name in self.filter) != is_given:
                raise InputError(f"--source {name} or --filter {name}=X must be used together with {source.flag}")
        if ("list" in self.source) != (self.format is not None):
            raise InputError(f"--source list and --format must be used together; give one of {', '.join(FORMATS)}")
        if "list" not in self.source and (self.symmetric or self.min_score is not None):
            raise InputError("--symmetric and --min-score need --source list")
        if self.format not in TABLES and (self.columns or self.where):
            raise InputError(f"--columns and --where need --format {' or '.join(TABLES)}")
        for flag, value, sources in (
            ("--top-k", self.top_k, ("vectors", "model", "list")),
            ("--min-similarity", self.min_similarity, ("vectors", "model")),
        ):
            if value is not None and not set(sources) & set(self.source):
                raise InputError(f"{flag} is only for --source {', '.join(sources)}")
        if self.top_k is not None and self.top_k < 1:
            raise InputError(f"--top-k must be a positive integer, not {self.top_k}")
        for floor in (self.min_similarity, *self.filter.values()):
            if floor is not None and not floor <= 1:
                raise InputError(f"--min-similarity and --filter need cosines of at most 1, not {floor}")
        if self.min_score is not None and not math.isfinite(self.min_score):
            raise InputError(f"--min-score must be a number, not {self.min_score}")
        if self.lang != ENGLISH:
            if "wordnet" not in self.source:
                raise InputError("--lang needs --source wordnet")
            if self.same_inflection or self.no_contrasts:
                raise InputError("--same-inflection and --no-contrasts know only English; omit --lang")


class Offer(NamedTuple):
    """What a source offers: its version, its options, and an iterator over each word's candidates (None if unknown).

    ``vectors`` are those that ``--filter`` compares. ``notes`` are lines about what was read.
    """

    version: str
    options: dict[str, object]
    candidates: Iterator[Sequence[str] | None]
    vectors: Vectors | None = None
    notes: Sequence[str] = ()


class Source(NamedTuple):
    """A source: a function of the options, the dictionary and its content words (id -> word), and what it is called.

    ``counts`` are the names of the counts in ``Coverage``, None for those that are not shown. ``flag`` is the option
    that names the source's file.
    """

    offer: Callable[[TableOptions, Symbols, Mapping[int, str]], Offer]
    counts: tuple[str, str | None, str]
    flag: str | None = None
    metavar: str = "FILE"
    help: str = ""


def _wordnet(options: TableOptions, dictionary: Symbols, words: Mapping[int, str]) -> Offer:
    """All lemmas of all synsets of each word; with --same-inflection, also in the form of the word."""
    # Imported here because NLTK takes two seconds, and only WordNet needs it.
    from .wordnet import ensure_wordnet, inflected_synonyms, language_notes, wordnet_synonyms, wordnet_version

    reader = ensure_wordnet(options.lang)
    notes = [] if options.lang == ENGLISH else language_notes(reader, options.lang)
    find = inflected_synonyms if options.same_inflection else partial(wordnet_synonyms, language=options.lang)
    shown = tqdm(words.values(), desc="Looking up words", unit=" words", leave=False, disable=None)
    return Offer(wordnet_version(reader, options.lang), {}, (find(reader, word) or None for word in shown), notes=notes)


def _vectors(options: TableOptions, dictionary: Symbols, words: Mapping[int, str]) -> Offer:
    """The nearest words by the cosine of the vectors in --vectors."""
    assert options.vectors is not None  # TableOptions has checked it
    vectors, not_utf8 = read_vectors(options.vectors, list(words.values()))
    skipped = f"{options.vectors}: skipped {not_utf8:,} lines whose word is not UTF-8"
    return _neighbors(vectors, words, options.top_k, options.min_similarity, [skipped] if not_utf8 else [])


def _model(options: TableOptions, dictionary: Symbols, words: Mapping[int, str]) -> Offer:
    """The nearest words by the cosine of the input word embeddings in the checkpoint of --path."""
    vectors = options.read_model(options.path, dictionary, words)
    floor = MODEL_MIN_SIMILARITY if options.min_similarity is None else options.min_similarity
    return _neighbors(vectors, words, options.top_k, floor)


def _neighbors(
    vectors: Vectors,
    words: Mapping[int, str],
    top_k: int | None,
    min_similarity: float | None,
    notes: Sequence[str] = (),
) -> Offer:
    top_k = top_k or NEIGHBORS

    def candidates() -> Iterator[Sequence[str] | None]:
        neighbors = nearest_neighbors(vectors, top_k, min_similarity)
        total = len(vectors.words)
        by_word = dict(tqdm(neighbors, "Comparing words", total, unit=" words", leave=False, disable=None))
        yield from map(by_word.get, words.values())

    return Offer(vectors.version, {"top_k": top_k, "min_similarity": min_similarity}, candidates(), vectors, notes)


def _list(options: TableOptions, dictionary: Symbols, words: Mapping[int, str]) -> Offer:
    """The synonyms in the file of --synonyms."""
    assert options.synonyms is not None and options.format is not None  # TableOptions has checked it
    where = {name: [values] if isinstance(values, str) else sorted(values) for name, values in options.where.items()}
    synonym_list = SynonymList(
        *(options.synonyms, words.values(), options.format, options.symmetric, options.min_score),
        columns=options.columns,
        where=where,
    )
    notes = [f"{options.synonyms}: {synonym_list.notes[0]}", *synonym_list.notes[1:]]
    used = {name: getattr(options, name) for name in ("format", "symmetric", "top_k", "min_score")}
    used |= {name: value for name, value in (("columns", dict(options.columns)), ("where", where)) if value}

    def candidates() -> Iterator[Sequence[str] | None]:
        known = set(words.values())
        for word in words.values():
            synonyms = synonym_list.synonyms.get(word.lower())
            if synonyms and options.top_k:  # of those that fit the word's casing pattern
                spelled = (match_case(other, like=word) for other in synonyms)
                synonyms = list(islice((other for other in spelled if other in known and other != word), options.top_k))
            yield synonyms

    return Offer(synonym_list.version, used, candidates(), notes=notes)


SOURCES = {
    "wordnet": Source(
        _wordnet, ("known to WordNet", "with a lemma other than itself", "with a synonym in the dictionary")
    ),
    "vectors": Source(
        _vectors,
        ("with a vector", None, "with a neighbor kept"),
        flag="--vectors",
        metavar="PATH",
        help="word vectors: a text file of GloVe or word2vec, or a folder with a matrix (.npy) and its words",
    ),
    "model": Source(
        _model,
        ("with an embedding", None, "with a neighbor kept"),
        flag="--path",
        help="a checkpoint of ELECTRA, BERT or RoBERTa with this dictionary; with --tokenizer, also of transformers",
    ),
    "list": Source(
        _list,
        ("in the list", None, "with a synonym in the dictionary"),
        flag="--synonyms",
        help="a list of synonyms in the --format that you name",
    ),
}
FILTERS = ("vectors", "model")  # their vectors can also filter the pairs of other sources
