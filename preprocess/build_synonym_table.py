#!/usr/bin/env python3
"""Build the synonym table of a dictionary, or look at one.

    python preprocess/build_synonym_table.py --dict DATA_BIN/dict.txt --source wordnet --output synonyms.safetensors
    python preprocess/build_synonym_table.py --dict DATA_BIN/dict.txt --source wordnet --lang fra \\
        --stop-words french.txt --output synonyms.safetensors
    python preprocess/build_synonym_table.py --dict DATA_BIN/dict.txt --source vectors --vectors glove.6B.300d.txt \\
        --top-k 10 --min-similarity 0.5 --output synonyms.safetensors
    python preprocess/build_synonym_table.py --dict DATA_BIN/dict.txt --source model --path checkpoint_last.pt \\
        --output synonyms.safetensors
    python preprocess/build_synonym_table.py --dict DATA_BIN/dict.txt --table synonyms.safetensors --show primary stay

Row i of the table holds the ids of the synonyms of symbol i of the dictionary; training reads it with --synonym-table.
Keys and values are whole words of the dictionary; stop words (closed-class words) are neither. From WordNet: all lemmas
of all synsets of the word. From vectors: the nearest words by cosine. From a model: the nearest words by the cosine of
its own input word embeddings, once what these have in common is taken out. Near words are used alike, but need not
mean the same: large is near small. The file is safetensors and describes itself: source and version, the dictionary's
fingerprint, options, counts.

The lemmas of other languages (--lang) come from the Open Multilingual WordNet, in which not every language is. Base
forms are known for English only: other words are looked up as they are, but for their casing. The accented words of a
language need a vocabulary with accents (train_tokenizer.py --cased). Our stop words are English: with --lang none are
left out unless --stop-words names a list.

The paper's 62.51 % of a 30,522-piece uncased vocabulary "have synonyms found in WordNet". With WordNet 3.0 and BERT's
vocabulary we find that figure (62.50 %) by counting every piece that WordNet knows, numbers and stop words included.
So it compares with the first of the three counts printed here, which are of whole words without stop words.
"""

import argparse
import json
from pathlib import Path
from typing import Collection, Iterator, Mapping, NamedTuple, Optional, Sequence

from fairseq.data import Dictionary
from torch import Tensor
from tqdm import tqdm

from tn_fairseq.dictionary import load_dictionary
from tn_fairseq.errors import InputError, one_line_errors
from tn_fairseq.synonyms.embeddings import read_embeddings
from tn_fairseq.synonyms.table import PADDING, build_table, load_synonym_table, read_description, save_synonym_table
from tn_fairseq.synonyms.vectors import Vectors, nearest_neighbours, read_vectors
from tn_fairseq.synonyms.vocabulary import STOP_WORDS, whole_words

ENGLISH = "eng"
EXAMPLES = ("primary", "stay", "large", "begin", "quickly")
LABELS = {
    "wordnet": ("known to WordNet", "with a lemma other than itself", "with a synonym in the dictionary"),
    "vectors": ("with a vector", None, "with a neighbour kept"),
    "model": ("with an embedding", None, "with a neighbour kept"),
}
# Of 22,000 random vectors of dimension 128 the nearest have a cosine of 0.4, and so do the words of a young model.
MODEL_MIN_SIMILARITY = 0.5
PAPER = "the paper's figure for 30,522 uncased pieces; it counts words known to WordNet, see --help"


class Offer(NamedTuple):
    """What a source offers: its version, its options, and for each word in turn candidates or None."""

    version: str
    options: dict[str, object]
    candidates: Iterator[Optional[Sequence[str]]]


@one_line_errors()
def main(argv: Optional[Sequence[str]] = None) -> None:
    args = parse_args(argv)
    dictionary = load_dictionary(args.dict)
    words = whole_words(dictionary, args.encoder_json)
    if args.show:
        show_table(args, dictionary, words)
    else:
        make_table(args, dictionary, words)


def show_table(args: argparse.Namespace, dictionary: Dictionary, words: Mapping[int, str]) -> None:
    """Print the description of a table and the rows asked for.

    Raises InputError, at the end, for words that are no whole words of the dictionary.
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
        problem = "is no whole word" if len(unknown) == 1 else "are no whole words"
        raise InputError(f"--show: {', '.join(unknown)} {problem} of {args.dict}")


def make_table(args: argparse.Namespace, dictionary: Dictionary, words: Mapping[int, str]) -> None:
    """Build a table, write it, and print what is in it."""
    stop_words = read_stop_words(args.stop_words, args.lang)
    content_words = {index: word for index, word in words.items() if word.lower() not in stop_words}
    offer = SOURCES[args.source](args, dictionary, content_words)
    table, coverage = build_table(dictionary, content_words, offer.candidates)

    counts = {label: count for label, count in zip(LABELS[args.source], coverage, strict=True) if label is not None}
    options = {**offer.options, **({"stop_words": Path(args.stop_words).name} if args.stop_words else {})}
    description = {"source": args.source, "source_version": offer.version, "options": json.dumps(options)}
    save_synonym_table(args.output, table, dictionary, {**description, "counts": json.dumps(counts)})

    left_out = f"of them {len(words) - len(content_words)} stop words (left out)"
    if not stop_words:
        left_out = "none of them left out as stop words; --stop-words FILE names them"
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
    # Imported here: NLTK takes two seconds, and only this source needs it.
    from tn_fairseq.synonyms.wordnet import ensure_language, ensure_wordnet, wordnet_synonyms, wordnet_version

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
    """The nearest neighbours of each word in a file of word vectors."""
    vectors = read_vectors(args.vectors, list(words.values()))
    if vectors.not_utf8:
        print(f"{args.vectors}: passed over {vectors.not_utf8:,} lines whose word is not UTF-8")
    return _neighbours(vectors, words, args.top_k, args.min_similarity)


def from_model(args: argparse.Namespace, dictionary: Dictionary, words: Mapping[int, str]) -> Offer:
    """The nearest neighbours of each word among the input word embeddings of a checkpoint."""
    floor = MODEL_MIN_SIMILARITY if args.min_similarity is None else args.min_similarity
    return _neighbours(read_embeddings(args.path, dictionary, words), words, args.top_k, floor)


SOURCES = {"wordnet": from_wordnet, "vectors": from_vectors, "model": from_model}


def _neighbours(vectors: Vectors, words: Mapping[int, str], top_k: int, min_similarity: Optional[float]) -> Offer:
    progress = tqdm(
        nearest_neighbours(vectors, top_k, min_similarity),
        total=len(vectors.words),
        desc="Comparing words",
        unit=" words",
        leave=False,
        disable=None,
    )
    neighbours = dict(progress)
    options = {"top_k": top_k, "min_similarity": min_similarity}
    return Offer(vectors.version, options, (neighbours.get(word) for word in words.values()))


def parse_args(argv: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dict", required=True, metavar="FILE", help="the dict.txt of the data to train on")
    parser.add_argument("--encoder-json", metavar="FILE", help="GPT-2's encoder.json, for a dictionary of numbers")
    build = parser.add_argument_group("to build a table")
    build.add_argument("--source", choices=tuple(SOURCES), help="where synonyms come from")
    build.add_argument(
        "--lang",
        default=ENGLISH,
        metavar="CODE",
        help="the language of WordNet's lemmas as a code of ISO 639-3, such as fra, spa or jpn (default: eng)",
    )
    build.add_argument("--vectors", metavar="FILE", help="word vectors in the text format of GloVe or word2vec")
    build.add_argument("--path", metavar="FILE", help="a checkpoint of ELECTRA, BERT or RoBERTa with this dictionary")
    build.add_argument("--top-k", type=int, default=10, metavar="N", help="neighbours kept of each word (default: 10)")
    build.add_argument(
        "--min-similarity",
        type=float,
        metavar="X",
        help=f"least cosine of a neighbour (default: none for vectors, {MODEL_MIN_SIMILARITY} for a model)",
    )
    build.add_argument(
        "--stop-words",
        metavar="FILE",
        help="words that are to have no synonyms and be none, one a line (default: our English ones; none with --lang)",
    )
    build.add_argument("--output", metavar="FILE", help="the table to write (.safetensors)")
    show = parser.add_argument_group("to look at a table")
    show.add_argument("--table", metavar="FILE", help="an existing table")
    show.add_argument(
        "--show", nargs="+", metavar="WORD", help="print the table's description and the rows of these words"
    )
    args = parser.parse_args(argv)
    if args.show:
        if not args.table:
            parser.error("--show needs the table to look at: --table FILE")
    elif not args.source or not args.output:
        parser.error("to build a table, name --source and --output; to look at one, --table and --show")
    elif (args.source == "vectors") != (args.vectors is not None):
        parser.error("--vectors FILE goes with --source vectors")
    elif (args.source == "model") != (args.path is not None):
        parser.error("--path FILE goes with --source model")
    elif args.source != "wordnet" and args.lang != ENGLISH:
        parser.error("--lang goes with --source wordnet")
    if args.top_k < 1:
        parser.error("--top-k must be at least 1")
    return args


def read_stop_words(path: Optional[str], language: str) -> Collection[str]:
    """The stop words in a file, one a line, in lower case; without one, ours for English and none for other languages.

    Raises InputError for a file that is missing or not UTF-8.
    """
    if path is None:
        return STOP_WORDS if language == ENGLISH else frozenset()
    try:
        return frozenset(line.strip().lower() for line in Path(path).read_text(encoding="utf-8").splitlines())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; --stop-words is a text file, one word a line") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start}); convert the stop words to UTF-8") from None


def row_of(word: str, words: Mapping[int, str], table: Tensor, stop_words: Collection[str]) -> str:
    """The row of ``word`` in a line of text."""
    index = next(index for index, entry in words.items() if entry == word)
    synonyms = [words[synonym] for synonym in table[index].tolist() if synonym != PADDING]
    nothing = "(a stop word)" if word.lower() in stop_words else "(no synonym)"
    return f"{word}: {', '.join(synonyms) or nothing}"


if __name__ == "__main__":
    main()
