"""Build a synonym table for a dictionary, or show one.

    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --source wordnet \\
        --output synonyms.safetensors
    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --source wordnet --lang fra \\
        --stop-words french.txt --output synonyms.safetensors
    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --source vectors \\
        --vectors glove.6B.300d.txt --top-k 10 --min-similarity 0.5 --output synonyms.safetensors
    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --source model \\
        --path checkpoint_last.pt --output synonyms.safetensors
    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --source wordnet vectors \\
        --combine union --vectors glove.6B.300d.txt --path checkpoint_last.pt --filter model=0.3 --same-inflection \\
        --no-contrasts --output synonyms.safetensors
    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --table synonyms.safetensors \\
        --show primary stay

Row i of the table contains the ids of the synonyms of symbol i of the dictionary; training reads it with
--synonym-table. Keys and values are whole words of the dictionary, and never stop words (closed-class words). From
WordNet: all lemmas of all synsets of the word. From vectors: the nearest words by cosine. From a model: the nearest
words by the cosine of its own input word embeddings, after their common directions are removed. Near words are used in
similar ways, but need not mean the same: large is near small. The file is safetensors and describes itself: source and
version, the dictionary's fingerprint, options, counts.

Several sources are combined with --combine: the union has the synonyms of any source, the intersection those of all
sources. In both, the words that more sources offer come first, then those with a better mean rank. Filters then drop
pairs of a word and a synonym: --filter, pairs that are not similar; --same-inflection, pairs in different forms
(election for elections), while WordNet's lemmas are also offered in the form of the word (polls for elections);
--no-contrasts, pairs of names, numbers or antonyms (april for november, small for large).

The lemmas of other languages (--lang) come from the Open Multilingual WordNet, which does not have every language. Base
forms are known only for English; words of other languages are looked up as they are, ignoring case. Accented words
need a vocabulary with accents (train-tokenizer --cased). The built-in stop words are English: with --lang, no words
are left out unless --stop-words gives a list.

The paper reports that 62.51% of a 30,522-piece uncased vocabulary "have synonyms found in WordNet". With WordNet 3.0
and BERT's vocabulary we get this figure (62.50%) if we count every piece that WordNet knows, including numbers and
stop words. So compare it with the first of the three counts printed here, which count whole words without stop words.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Collection, Iterator, Mapping, NamedTuple, Optional, Sequence

from fairseq.data import Dictionary
from torch import Tensor
from tqdm import tqdm

from ...dictionary import load_dictionary
from ...errors import InputError, one_line_errors
from ...files import read_text
from ...synonym_table import (
    PADDING,
    Rows,
    build_rows,
    load_synonym_table,
    read_description,
    rows_to_table,
    save_synonym_table,
)
from ...synonyms.acceptance import crossings, table_quality
from ...synonyms.combining import COMBINATIONS, combine, keep_pairs
from ...synonyms.embeddings import read_embeddings
from ...synonyms.inflection import VERSION as LEMMINFLECT
from ...synonyms.inflection import Relation, relation
from ...synonyms.swords import Target, read_swords
from ...synonyms.vectors import Vectors, at_least, nearest_neighbors, read_vectors
from ...vocabulary import STOP_WORDS, whole_words

ENGLISH = "eng"
EXAMPLES = ("primary", "stay", "large", "begin", "quickly")
LABELS = {
    "wordnet": ("known to WordNet", "with a lemma other than itself", "with a synonym in the dictionary"),
    "vectors": ("with a vector", None, "with a neighbor kept"),
    "model": ("with an embedding", None, "with a neighbor kept"),
}
SEVERAL = "with a synonym in the table"
# The nearest of 22,000 random vectors of dimension 128 have a cosine of 0.4, like words early in training.
MODEL_MIN_SIMILARITY = 0.5
PAPER = "the paper's figure for 30,522 uncased pieces; it counts words known to WordNet, see --help"


class Offer(NamedTuple):
    """What a source offers: its version, its options, and an iterator over each word's candidates (or None)."""

    version: str
    options: dict[str, object]
    candidates: Iterator[Optional[Sequence[str]]]


class Filter(NamedTuple):
    """A minimum similarity of all pairs: the source that it comes from, and the cosine."""

    source: str
    min_similarity: float


@one_line_errors()
def main(argv: Optional[Sequence[str]] = None) -> None:
    """Build a table, or print rows of a table."""
    parser = get_parser()
    args = parser.parse_args(argv)
    check_usage(parser, args)
    dictionary = load_dictionary(args.dict)
    words = whole_words(dictionary, args.encoder_json)
    if args.show:
        show_table(args, dictionary, words)
    else:
        make_table(args, dictionary, words)


def show_table(args: argparse.Namespace, dictionary: Dictionary, words: Mapping[int, str]) -> None:
    """Print the description of a table and the requested rows.

    Raises InputError, at the end, for words that are not whole words of the dictionary.
    """
    table = load_synonym_table(args.table, dictionary)
    description = read_description(args.table)
    for name, value in sorted(description.items()):
        print(f"{name:24}{value}")
    ours = {"lang", "stop_words"}.isdisjoint(json.loads(description.get("options", "{}")))
    known = set(words.values())
    for word in args.show:
        if word in known:
            print(row_of(word, words, table, STOP_WORDS if ours else ()))
    if unknown := [repr(word) for word in args.show if word not in known]:
        problem = "is not a whole word" if len(unknown) == 1 else "are not whole words"
        raise InputError(f"--show: {', '.join(unknown)} {problem} in {args.dict}")


def make_table(args: argparse.Namespace, dictionary: Dictionary, words: Mapping[int, str]) -> None:
    """Build a table, write it, and print a summary."""
    targets = read_swords(args.swords) if args.swords else None
    stop_words = read_stop_words(args.stop_words, args.lang)
    content_words = {index: word for index, word in words.items() if word.lower() not in stop_words}
    table, description = build_table(args, dictionary, content_words)
    save_synonym_table(args.output, table, dictionary, description, args.encoder_json)

    left_out = f"of them {len(words) - len(content_words)} stop words (left out)"
    if not stop_words:
        left_out = "no stop words left out; give them with --stop-words FILE"
    print(f"{'dictionary':36}{len(dictionary):9,}")
    print(f"{'whole words':36}{len(words):9,}, {left_out}")
    print(f"{'source':36}{description['source_version']}")
    for label, count in json.loads(description["counts"]).items():
        print(f"{label:36}{count:9,} {count / len(dictionary):8.2%} of the dictionary")
    if args.source == ["wordnet"] and args.lang == ENGLISH:
        print(f"{'':45} {0.6251:8.2%} ({PAPER})")
    if targets is not None:
        print_quality(table, targets, words)
    for word in EXAMPLES:
        if word in content_words.values():
            print(row_of(word, words, table, stop_words))
    print(f"{args.output}: {table.size(0):,} rows of at most {table.size(1)} synonyms")


def build_table(
    args: argparse.Namespace, dictionary: Dictionary, words: Mapping[int, str]
) -> tuple[Tensor, dict[str, str]]:
    """The table of ``words`` (id -> word) that the options describe, and its description."""
    needed = {*args.source, *(kept.source for kept in args.filter)}
    vectors = {name: read(args, dictionary, words) for name, read in VECTORS.items() if name in needed}
    offers = {
        source: from_vectors(vectors[source], args.top_k, min_similarity(args, source), words)
        if source in VECTORS
        else from_wordnet(args, words)
        for source in args.source
    }
    found = {source: build_rows(words, offer.candidates) for source, offer in offers.items()}
    first = args.source[0]
    if args.combine:
        rows = combine([rows for rows, _ in found.values()], args.combine)
        counts = {LABELS[source][0]: coverage.known for source, (_, coverage) in found.items()}
        counts[SEVERAL] = len(rows)
        options = {"combine": args.combine, **{source: offer.options for source, offer in offers.items()}}
    else:
        rows, coverage = found[first]
        counts = {label: count for label, count in zip(LABELS[first], coverage, strict=True) if label is not None}
        options = offers[first].options
    if args.lang != ENGLISH:
        options["lang"] = args.lang
    if args.stop_words:
        options["stop_words"] = Path(args.stop_words).name
    for source, floor in args.filter:
        rows = keep_pairs(rows, words, at_least(vectors[source], floor))
        options.setdefault("filter", {})[source] = {"min_similarity": floor, "version": vectors[source].version}
    if args.same_inflection:
        rows = keep_pairs(rows, words, lambda word, other: relation(word, other) == Relation.SAME_FORM)
        options["same_inflection"] = LEMMINFLECT
    if args.no_contrasts:
        rows, options["no_contrasts"] = without_contrasts(rows, words)
    counts[list(counts)[-1]] = len(rows)
    description = {
        "source": f"{args.combine} of {', '.join(args.source)}" if args.combine else first,
        "source_version": "; ".join(offer.version for offer in offers.values()),
        "options": json.dumps(options),
        "counts": json.dumps(counts),
    }
    return rows_to_table(dictionary, rows), description


def from_wordnet(args: argparse.Namespace, words: Mapping[int, str]) -> Offer:
    """All lemmas of all synsets of each word; with --same-inflection, also in the form of the word."""
    # Imported here because NLTK takes two seconds, and only WordNet needs it.
    from ...synonyms.wordnet import (
        ensure_language,
        ensure_wordnet,
        inflected_synonyms,
        wordnet_synonyms,
        wordnet_version,
    )

    reader = ensure_wordnet()
    if args.lang != ENGLISH:
        ensure_language(reader, args.lang)
    progress = tqdm(words.values(), desc="Looking up words", unit=" words", leave=False, disable=None)
    return Offer(
        wordnet_version(reader, args.lang),
        {},
        (
            (inflected_synonyms(reader, word) if args.same_inflection else wordnet_synonyms(reader, word, args.lang))
            or None
            for word in progress
        ),
    )


def from_vectors(vectors: Vectors, top_k: int, min_similarity: Optional[float], words: Mapping[int, str]) -> Offer:
    """The nearest neighbors of each word by cosine."""
    progress = tqdm(
        nearest_neighbors(vectors, top_k, min_similarity),
        total=len(vectors.words),
        desc="Comparing words",
        unit=" words",
        leave=False,
        disable=None,
    )
    neighbors = dict(progress)
    options = {"top_k": top_k, "min_similarity": min_similarity}
    return Offer(vectors.version, options, (neighbors.get(word) for word in words.values()))


def read_vector_file(args: argparse.Namespace, dictionary: Dictionary, words: Mapping[int, str]) -> Vectors:
    """The vectors of --vectors."""
    vectors = read_vectors(args.vectors, list(words.values()))
    if vectors.not_utf8:
        print(f"{args.vectors}: skipped {vectors.not_utf8:,} lines whose word is not UTF-8")
    return vectors


def read_model(args: argparse.Namespace, dictionary: Dictionary, words: Mapping[int, str]) -> Vectors:
    """The input word embeddings of the checkpoint of --path."""
    return read_embeddings(args.path, dictionary, words)


VECTORS = {"vectors": read_vector_file, "model": read_model}
SOURCES = ("wordnet", *VECTORS)


def min_similarity(args: argparse.Namespace, source: str) -> Optional[float]:
    """The minimum cosine of a neighbor, by default none for vectors."""
    return MODEL_MIN_SIMILARITY if source == "model" and args.min_similarity is None else args.min_similarity


def without_contrasts(rows: Rows, words: Mapping[int, str]) -> tuple[Rows, str]:
    """Drop the pairs of words that exclude each other; also the version of WordNet that says so."""
    from ...synonyms.contrasts import is_contrast
    from ...synonyms.wordnet import ensure_wordnet, wordnet_version

    reader = ensure_wordnet()
    return keep_pairs(rows, words, lambda word, other: not is_contrast(reader, word, other)), wordnet_version(reader)


def print_quality(table: Tensor, targets: Sequence[Target], words: Mapping[int, str]) -> None:
    """Print how people judge the table's pairs in SWORDS, and how many pairs cross inflections."""
    quality = table_quality(table, targets, words, by_lemma=True)
    crossing = crossings(table, words)
    for label, count, total, what in (
        ("judged pairs: acceptable", quality.acceptable, quality.judged, "judged pairs"),
        ("judged pairs: doubtful", quality.doubtful, quality.judged, "judged pairs"),
        ("judged pairs: rejected", quality.rejected, quality.judged, "judged pairs"),
        ("acceptable substitutes in the table", quality.held, quality.all_acceptable, "acceptable substitutes"),
        ("pairs across inflections", crossing.own_word + crossing.other_word, crossing.pairs, "pairs"),
        ("rows across inflections", crossing.rows_crossing, crossing.rows, "rows"),
    ):
        print(f"{label:36}{count:9,} {count / max(total, 1):8.2%} of {total:,} {what}")


def get_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="python -m tn_fairseq.preprocessing build-synonym-table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dict", required=True, metavar="FILE", help="the dict.txt of the training data")
    parser.add_argument("--encoder-json", metavar="FILE", help="GPT-2's encoder.json, for a dictionary of numbers")
    build = parser.add_argument_group("to build a table")
    build.add_argument("--source", nargs="+", choices=SOURCES, help="where synonyms come from")
    build.add_argument("--combine", choices=COMBINATIONS, help="how to combine several sources")
    build.add_argument(
        "--lang",
        default=ENGLISH,
        metavar="CODE",
        help="ISO 639-3 code of the language of WordNet's lemmas, such as fra, spa or jpn (default: eng)",
    )
    build.add_argument(
        "--vectors",
        metavar="PATH",
        help="word vectors: a text file of GloVe or word2vec, or a folder with a matrix (.npy) and its words",
    )
    build.add_argument("--path", metavar="FILE", help="a checkpoint of ELECTRA, BERT or RoBERTa with this dictionary")
    build.add_argument("--top-k", type=int, default=10, metavar="N", help="neighbors to keep per word (default: 10)")
    build.add_argument(
        "--min-similarity",
        type=float,
        metavar="X",
        help=f"minimum cosine of a neighbor (default: none for vectors, {MODEL_MIN_SIMILARITY} for a model)",
    )
    build.add_argument(
        "--filter",
        nargs="+",
        type=parse_filter,
        default=[],
        metavar="SOURCE=X",
        help="keep only pairs with a cosine of at least X in --vectors (vectors=X) or in the model of --path (model=X)",
    )
    build.add_argument(
        "--same-inflection",
        action="store_true",
        help="keep only synonyms in the same form as the word: polls for elections, not election",
    )
    build.add_argument(
        "--no-contrasts",
        action="store_true",
        help="drop pairs that exclude each other: two names, months, weekdays or numbers, and antonyms",
    )
    build.add_argument(
        "--stop-words",
        metavar="FILE",
        help="words without synonyms, one per line (default: built-in English list; none with --lang)",
    )
    build.add_argument(
        "--swords", metavar="FILE", help="print how people judge the table's pairs; the development data of SWORDS"
    )
    build.add_argument("--output", metavar="FILE", help="the table to write (.safetensors)")
    show = parser.add_argument_group("to show a table")
    show.add_argument("--table", metavar="FILE", help="an existing table")
    show.add_argument(
        "--show", nargs="+", metavar="WORD", help="print the table's description and the rows of these words"
    )
    return parser


def parse_filter(text: str) -> Filter:
    """``vectors=0.4`` or ``model=0.4``; raises argparse.ArgumentTypeError for anything else."""
    source, _, number = text.partition("=")
    try:
        floor = float(number)
    except ValueError:
        floor = math.nan
    if source not in VECTORS or not floor <= 1:
        raise argparse.ArgumentTypeError(f"must be vectors=X or model=X with a cosine X of at most 1, not {text}")
    return Filter(source, floor)


def check_usage(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit with a usage error if options are missing or contradict each other."""
    if args.show:
        if not args.table:
            parser.error("--show needs --table FILE")
    elif not args.source or not args.output:
        parser.error("to build a table, give --source and --output; to show one, give --table and --show")
    else:
        needed = {*args.source, *(kept.source for kept in args.filter)}
        if (len(args.source) > 1) != (args.combine is not None):
            parser.error("several sources and --combine must be used together")
        if len(set(args.source)) < len(args.source):
            parser.error("--source names a source twice")
        for source, flag, value in (("vectors", "--vectors PATH", args.vectors), ("model", "--path FILE", args.path)):
            if (source in needed) != (value is not None):
                parser.error(f"--source {source} or --filter {source}=X must be used together with {flag}")
        if args.lang != ENGLISH:
            if "wordnet" not in args.source:
                parser.error("--lang needs --source wordnet")
            if args.same_inflection or args.no_contrasts:
                parser.error("--same-inflection and --no-contrasts know only English; omit --lang")
    if args.top_k < 1:
        parser.error("--top-k must be at least 1")
    if args.min_similarity is not None and not args.min_similarity <= 1:
        parser.error(f"--min-similarity is a cosine and must be at most 1, not {args.min_similarity}")


def read_stop_words(path: Optional[str], language: str) -> Collection[str]:
    """Read stop words, one per line, lowercased; without a file, the built-in list for English, else none.

    Raises InputError for a file that is missing or not UTF-8.
    """
    if path is None:
        return STOP_WORDS if language == ENGLISH else frozenset()
    text = read_text(path, "give a text file with one word per line with --stop-words")
    return frozenset(line.strip().lower() for line in text.splitlines())


def row_of(word: str, words: Mapping[int, str], table: Tensor, stop_words: Collection[str]) -> str:
    """The row of ``word`` as one line of text."""
    index = next(index for index, entry in words.items() if entry == word)
    synonyms = [words[synonym] for synonym in table[index].tolist() if synonym != PADDING]
    nothing = "(a stop word)" if word.lower() in stop_words else "(no synonym)"
    return f"{word}: {', '.join(synonyms) or nothing}"
