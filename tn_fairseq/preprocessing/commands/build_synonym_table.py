"""Build a synonym table for a dictionary, or show one.

    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --source wordnet \\
        --output synonyms.safetensors
    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --source wordnet --lang fra \\
        --stop-words french.txt --output synonyms.safetensors
    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --source vectors \\
        --vectors glove.6B.300d.txt --top-k 10 --min-similarity 0.5 --output synonyms.safetensors
    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --source model \\
        --path checkpoint_last.pt --output synonyms.safetensors
    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --table synonyms.safetensors \\
        --show primary stay

Row i of the table contains the ids of the synonyms of symbol i of the dictionary; training reads it with
--synonym-table. Keys and values are whole words of the dictionary, and never stop words (closed-class words). From
WordNet: all lemmas of all synsets of the word. From vectors: the nearest words by cosine. From a model: the nearest
words by the cosine of its own input word embeddings, after their common directions are removed. Near words are used in
similar ways, but need not mean the same: large is near small. The file is safetensors and describes itself: source and
version, the dictionary's fingerprint, options, counts.

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
from pathlib import Path
from typing import Collection, Iterator, Mapping, NamedTuple, Optional, Sequence

from fairseq.data import Dictionary
from torch import Tensor
from tqdm import tqdm

from ...dictionary import load_dictionary
from ...errors import InputError, one_line_errors
from ...files import read_text
from ...synonyms.embeddings import read_embeddings
from ...synonyms.table import PADDING, build_table, load_synonym_table, read_description, save_synonym_table
from ...synonyms.vectors import Vectors, nearest_neighbors, read_vectors
from ...synonyms.vocabulary import STOP_WORDS, whole_words

ENGLISH = "eng"
EXAMPLES = ("primary", "stay", "large", "begin", "quickly")
LABELS = {
    "wordnet": ("known to WordNet", "with a lemma other than itself", "with a synonym in the dictionary"),
    "vectors": ("with a vector", None, "with a neighbor kept"),
    "model": ("with an embedding", None, "with a neighbor kept"),
}
# The nearest of 22,000 random vectors of dimension 128 have a cosine of 0.4, like words early in training.
MODEL_MIN_SIMILARITY = 0.5
PAPER = "the paper's figure for 30,522 uncased pieces; it counts words known to WordNet, see --help"


class Offer(NamedTuple):
    """What a source offers: its version, its options, and an iterator over each word's candidates (or None)."""

    version: str
    options: dict[str, object]
    candidates: Iterator[Optional[Sequence[str]]]


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
    stop_words = read_stop_words(args.stop_words, args.lang)
    content_words = {index: word for index, word in words.items() if word.lower() not in stop_words}
    offer = SOURCES[args.source](args, dictionary, content_words)
    table, coverage = build_table(dictionary, content_words, offer.candidates)

    counts = {label: count for label, count in zip(LABELS[args.source], coverage, strict=True) if label is not None}
    options = {**offer.options, **({"stop_words": Path(args.stop_words).name} if args.stop_words else {})}
    description = {"source": args.source, "source_version": offer.version, "options": json.dumps(options)}
    description["counts"] = json.dumps(counts)
    save_synonym_table(args.output, table, dictionary, description, args.encoder_json)

    left_out = f"of them {len(words) - len(content_words)} stop words (left out)"
    if not stop_words:
        left_out = "no stop words left out; give them with --stop-words FILE"
    print(f"{'dictionary':36}{len(dictionary):9,}")
    print(f"{'whole words':36}{len(words):9,}, {left_out}")
    print(f"{'source':36}{offer.version}")
    for label, count in counts.items():
        print(f"{label:36}{count:9,} {count / len(dictionary):8.2%} of the dictionary")
    if args.source == "wordnet" and args.lang == ENGLISH:
        print(f"{'':45} {0.6251:8.2%} ({PAPER})")
    for word in EXAMPLES:
        if word in content_words.values():
            print(row_of(word, words, table, stop_words))
    print(f"{args.output}: {table.size(0):,} rows of at most {table.size(1)} synonyms")


def from_wordnet(args: argparse.Namespace, dictionary: Dictionary, words: Mapping[int, str]) -> Offer:
    """All lemmas of all synsets of each word."""
    # Imported here because NLTK takes two seconds, and only this source needs it.
    from ...synonyms.wordnet import ensure_language, ensure_wordnet, wordnet_synonyms, wordnet_version

    reader = ensure_wordnet()
    if args.lang != ENGLISH:
        ensure_language(reader, args.lang)
    progress = tqdm(words.values(), desc="Looking up words", unit=" words", leave=False, disable=None)
    return Offer(
        wordnet_version(reader, args.lang),
        {} if args.lang == ENGLISH else {"lang": args.lang},
        (wordnet_synonyms(reader, word, args.lang) or None for word in progress),
    )


def from_vectors(args: argparse.Namespace, dictionary: Dictionary, words: Mapping[int, str]) -> Offer:
    """The nearest neighbors of each word in a file of word vectors."""
    vectors = read_vectors(args.vectors, list(words.values()))
    if vectors.not_utf8:
        print(f"{args.vectors}: skipped {vectors.not_utf8:,} lines whose word is not UTF-8")
    return _neighbors(vectors, words, args.top_k, args.min_similarity)


def from_model(args: argparse.Namespace, dictionary: Dictionary, words: Mapping[int, str]) -> Offer:
    """The nearest neighbors of each word among the input word embeddings of a checkpoint."""
    floor = MODEL_MIN_SIMILARITY if args.min_similarity is None else args.min_similarity
    return _neighbors(read_embeddings(args.path, dictionary, words), words, args.top_k, floor)


SOURCES = {"wordnet": from_wordnet, "vectors": from_vectors, "model": from_model}


def _neighbors(vectors: Vectors, words: Mapping[int, str], top_k: int, min_similarity: Optional[float]) -> Offer:
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
    build.add_argument("--source", choices=tuple(SOURCES), help="where synonyms come from")
    build.add_argument(
        "--lang",
        default=ENGLISH,
        metavar="CODE",
        help="ISO 639-3 code of the language of WordNet's lemmas, such as fra, spa or jpn (default: eng)",
    )
    build.add_argument("--vectors", metavar="FILE", help="word vectors in the text format of GloVe or word2vec")
    build.add_argument("--path", metavar="FILE", help="a checkpoint of ELECTRA, BERT or RoBERTa with this dictionary")
    build.add_argument("--top-k", type=int, default=10, metavar="N", help="neighbors to keep per word (default: 10)")
    build.add_argument(
        "--min-similarity",
        type=float,
        metavar="X",
        help=f"minimum cosine of a neighbor (default: none for vectors, {MODEL_MIN_SIMILARITY} for a model)",
    )
    build.add_argument(
        "--stop-words",
        metavar="FILE",
        help="words without synonyms, one per line (default: built-in English list; none with --lang)",
    )
    build.add_argument("--output", metavar="FILE", help="the table to write (.safetensors)")
    show = parser.add_argument_group("to show a table")
    show.add_argument("--table", metavar="FILE", help="an existing table")
    show.add_argument(
        "--show", nargs="+", metavar="WORD", help="print the table's description and the rows of these words"
    )
    return parser


def check_usage(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit with a usage error if options are missing or contradict each other."""
    if args.show:
        if not args.table:
            parser.error("--show needs --table FILE")
    elif not args.source or not args.output:
        parser.error("to build a table, give --source and --output; to show one, give --table and --show")
    elif (args.source == "vectors") != (args.vectors is not None):
        parser.error("--source vectors and --vectors FILE must be used together")
    elif (args.source == "model") != (args.path is not None):
        parser.error("--source model and --path FILE must be used together")
    elif args.source != "wordnet" and args.lang != ENGLISH:
        parser.error("--lang needs --source wordnet")
    if args.top_k < 1:
        parser.error("--top-k must be at least 1")


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
