"""The options of a table. Neither torch nor NLTK is imported, so that --help is fast."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.options import option

SOURCES = ("wordnet", "vectors", "model", "list")
FILTERS = ("vectors", "model")  # their vectors can also filter the pairs of other sources
FORMATS = ("tsv", "csv", "groups", "mythes", "ppdb", "json")
TABLES = ("tsv", "csv")  # the formats whose columns have names
ENGLISH = "eng"
NEIGHBORS = 10
# The nearest of 22,000 random vectors of dimension 128 have a cosine of 0.4, like words early in training.
MODEL_MIN_SIMILARITY = 0.5
VECTORS, MODEL = ({"source": name, "filter": name} for name in FILTERS)
LIST = {"source": "list"}


def _columns(text: str) -> dict[str, str]:
    """Names of columns, as in word=headword,synonym=gloss; raises ValueError for another form."""
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(all(pair) for pair in pairs):
        raise ValueError("word=NAME,synonym=NAME,score=NAME")
    return {name: column for name, _, column in pairs}


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The options that decide which synonyms are in a table.

    In Python, ``path`` can also be a model. ``read_model`` reads its word embeddings, by default as ``read_embeddings``
    does.
    """

    source: Sequence[str] = option("where synonyms come from", choices=SOURCES)
    combine: str = option("how to combine several sources", default="union", choices=("union", "intersection"))
    lang: str = option(
        "ISO 639-3 code of the language of WordNet's lemmas, such as fra, spa or jpn",
        default=ENGLISH,
        metavar="CODE",
        needs={"source": "wordnet"},
    )
    vectors: str | Path | None = option(
        "word vectors: a text file of GloVe or word2vec, or a folder with a matrix (.npy) and its words",
        default=None,
        metavar="PATH",
        needs=VECTORS,
        needed_by=VECTORS,
    )
    path: Any = option(
        "a checkpoint of ELECTRA, BERT or RoBERTa with this dictionary; with --tokenizer, also of transformers",
        default=None,
        metavar="FILE",
        needs=MODEL,
        needed_by=MODEL,
    )
    synonyms: str | Path | None = option(
        "a list of synonyms in the --format that you name", default=None, metavar="FILE", needs=LIST, needed_by=LIST
    )
    top_k: int | None = option(
        f"synonyms to keep per word (default: {NEIGHBORS} for vectors and a model, all for a list)",
        default=None,
        at_least=1,
        needs={"source": ("vectors", "model", "list")},
    )
    min_similarity: float | None = option(
        f"minimum cosine of a neighbor (default: none for vectors, {MODEL_MIN_SIMILARITY} for a model)",
        default=None,
        at_most=1,
        needs={"source": FILTERS},
    )
    format: str | None = option("the format of --synonyms", default=None, choices=FORMATS, needs=LIST, needed_by=LIST)
    columns: Mapping[str, str] = option(
        "names of the columns in a TSV or CSV file (default: word, synonym and, if it is there, score)",
        default={},
        choices=("word", "synonym", "score"),
        needs={"format": TABLES},
        metavar="word=NAME,synonym=NAME,score=NAME",
        parse=_columns,
    )
    where: Mapping[str, str | Collection[str]] = option(
        "keep only rows of a TSV or CSV file whose column has this value, or one of several values of a column",
        default={},
        needs={"format": TABLES},
        metavar="COLUMN=VALUE",
    )
    symmetric: bool = option("read each pair of --synonyms in both directions", default=False, needs=LIST)
    min_score: float | None = option("minimum score of a pair in --synonyms", default=None, needs=LIST)
    filter: Mapping[str, float] = option(
        "keep only pairs with a cosine of at least X in --vectors (vectors=X) or in the model of --path (model=X)",
        default={},
        choices=FILTERS,
        at_most=1,
        metavar="SOURCE=X",
    )
    same_inflection: bool = option(
        "keep only synonyms in the same form as the word: polls for elections, not election",
        default=False,
        not_with="lang",  # only the forms of English are known, and only its contrasts
    )
    no_contrasts: bool = option(
        "drop pairs that exclude each other: two names, months, weekdays or numbers, and antonyms",
        default=False,
        not_with="lang",
    )
    stop_words: str | Path | None = option(
        "words without synonyms, one per line (default: built-in English list; none with --lang)",
        default=None,
        metavar="FILE",
    )
    read_model: Callable[..., Any] | None = None
