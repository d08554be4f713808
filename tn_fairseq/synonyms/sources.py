"""The sources of synonyms, each a row of ``SOURCES``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from tqdm import tqdm

from ..core.dictionary import Symbols
from ..core.vocabulary import match_case
from .embeddings import read_embeddings
from .lists import SynonymList
from .neighbors import Vectors, nearest_neighbors
from .table_options import ENGLISH, MODEL_MIN_SIMILARITY, NEIGHBORS, TableOptions
from .vectors import read_vectors


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

    ``counts`` are the names of the counts in ``Coverage``, None for those that are not shown.
    """

    offer: Callable[[TableOptions, Symbols, Mapping[int, str]], Offer]
    counts: tuple[str, str | None, str]


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
    assert options.vectors is not None  # it has been checked
    vectors, not_utf8 = read_vectors(options.vectors, list(words.values()))
    skipped = f"{options.vectors}: skipped {not_utf8:,} lines whose word is not UTF-8"
    return _neighbors(vectors, words, options.top_k, options.min_similarity, [skipped] if not_utf8 else [])


def _model(options: TableOptions, dictionary: Symbols, words: Mapping[int, str]) -> Offer:
    """The nearest words by the cosine of the input word embeddings in the checkpoint of --path."""
    vectors = (options.read_model or read_embeddings)(options.path, dictionary, words)
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
    assert options.synonyms is not None and options.format is not None  # it has been checked
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
    "vectors": Source(_vectors, ("with a vector", None, "with a neighbor kept")),
    "model": Source(_model, ("with an embedding", None, "with a neighbor kept")),
    "list": Source(_list, ("in the list", None, "with a synonym in the dictionary")),
}
