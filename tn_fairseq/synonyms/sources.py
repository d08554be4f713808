"""The sources of synonyms, each a row of ``SOURCES``."""

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from tqdm import tqdm

from ..dictionary import Symbols
from ..vocabulary import match_case
from .embeddings import read_embeddings
from .lists import SynonymList
from .neighbors import Vectors, nearest_neighbors
from .vectors import read_vectors

ENGLISH = "eng"
NEIGHBORS = 10
# The nearest of 22,000 random vectors of dimension 128 have a cosine of 0.4, like words early in training.
MODEL_MIN_SIMILARITY = 0.5


class Offer(NamedTuple):
    """What a source offers: its version, its options, and an iterator over each word's candidates (None if unknown).

    ``vectors`` are those that ``--filter`` compares.
    """

    version: str
    options: dict[str, object]
    candidates: Iterator[Sequence[str] | None]
    vectors: Vectors | None = None


class Source(NamedTuple):
    """A source: a function of the options, the dictionary and its content words (id -> word), and what it is called.

    ``counts`` are the names of the counts in ``Coverage``, None for those that are not shown. ``flag`` is the option
    that names the source's file. Vectors can also filter the pairs of other sources.
    """

    offer: Callable[[Namespace, Symbols, Mapping[int, str]], Offer]
    counts: tuple[str, str | None, str]
    flag: str | None = None
    metavar: str = "FILE"
    help: str = ""
    has_vectors: bool = False


def _wordnet(args: Namespace, dictionary: Symbols, words: Mapping[int, str]) -> Offer:
    """All lemmas of all synsets of each word; with --same-inflection, also in the form of the word."""
    # Imported here because NLTK takes two seconds, and only WordNet needs it.
    from .wordnet import ensure_wordnet, inflected_synonyms, wordnet_synonyms, wordnet_version

    reader = ensure_wordnet(args.lang)

    def candidates() -> Iterator[Sequence[str] | None]:
        for word in tqdm(words.values(), desc="Looking up words", unit=" words", leave=False, disable=None):
            if args.same_inflection:
                yield inflected_synonyms(reader, word) or None
            else:
                yield wordnet_synonyms(reader, word, args.lang) or None

    return Offer(wordnet_version(reader, args.lang), {}, candidates())


def _vectors(args: Namespace, dictionary: Symbols, words: Mapping[int, str]) -> Offer:
    """The nearest words by the cosine of the vectors in --vectors."""
    vectors, not_utf8 = read_vectors(args.vectors, list(words.values()))
    if not_utf8:
        print(f"{args.vectors}: skipped {not_utf8:,} lines whose word is not UTF-8")
    return _neighbors(vectors, words, args.top_k, args.min_similarity)


def _model(args: Namespace, dictionary: Symbols, words: Mapping[int, str]) -> Offer:
    """The nearest words by the cosine of the input word embeddings in the checkpoint of --path."""
    vectors = read_embeddings(args.path, dictionary, words)
    floor = MODEL_MIN_SIMILARITY if args.min_similarity is None else args.min_similarity
    return _neighbors(vectors, words, args.top_k, floor)


def _neighbors(vectors: Vectors, words: Mapping[int, str], top_k: int | None, min_similarity: float | None) -> Offer:
    top_k = top_k or NEIGHBORS

    def candidates() -> Iterator[Sequence[str] | None]:
        neighbors = nearest_neighbors(vectors, top_k, min_similarity)
        total = len(vectors.words)
        found = dict(tqdm(neighbors, "Comparing words", total, unit=" words", leave=False, disable=None))
        yield from map(found.get, words.values())

    return Offer(vectors.version, {"top_k": top_k, "min_similarity": min_similarity}, candidates(), vectors)


def _list(args: Namespace, dictionary: Symbols, words: Mapping[int, str]) -> Offer:
    """The synonyms in the file of --synonyms."""
    found = SynonymList(args.synonyms, words.values(), args.format, args.symmetric, args.min_score)
    print(f"{args.synonyms}: read as {found.format}")
    for reason, count in found.counts.items():
        if count:
            print(f"{reason:36}{count:9,}")
    options = {name: vars(args)[name] for name in ("symmetric", "top_k", "min_score")}

    def candidates() -> Iterator[Sequence[str] | None]:
        known = set(words.values())
        for word in words.values():
            synonyms = found.synonyms.get(word.lower())
            if synonyms and args.top_k:  # of those that fit the word's casing pattern
                spelled = (match_case(other, like=word) for other in synonyms)
                synonyms = list(islice((other for other in spelled if other in known and other != word), args.top_k))
            yield synonyms

    return Offer(found.version, {"format": found.format, **options}, candidates())


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
        has_vectors=True,
    ),
    "model": Source(
        _model,
        ("with an embedding", None, "with a neighbor kept"),
        flag="--path",
        help="a checkpoint of ELECTRA, BERT or RoBERTa with this dictionary",
        has_vectors=True,
    ),
    "list": Source(
        _list,
        ("in the list", None, "with a synonym in the dictionary"),
        flag="--synonyms",
        help="pairs or groups of words (.tsv, .csv, .txt), a thesaurus in MyThes format (.dat), or PPDB",
    ),
}
