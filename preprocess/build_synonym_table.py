#!/usr/bin/env python3
"""Build the synonym table of a dictionary, or look at one.

    python preprocess/build_synonym_table.py --dict DATA_BIN/dict.txt --source wordnet --output synonyms.safetensors
    python preprocess/build_synonym_table.py --dict DATA_BIN/dict.txt --source vectors --vectors glove.6B.300d.txt \\
        --top-k 10 --min-similarity 0.5 --output synonyms.safetensors
    python preprocess/build_synonym_table.py --dict DATA_BIN/dict.txt --table synonyms.safetensors --show primary stay

Row i of the table holds the ids of the synonyms of symbol i of the dictionary; training reads it with --synonym-table.
Keys and values are whole words of the dictionary; stop words (closed-class words) are neither. From WordNet: all lemmas
of all synsets of the word. From vectors: the nearest words by cosine. The file is safetensors and describes itself:
source and version, the dictionary's fingerprint, options, counts.

The paper's 62.51 % of a 30,522-piece uncased vocabulary "have synonyms found in WordNet". With WordNet 3.0 and BERT's
vocabulary we find that figure (62.50 %) by counting every piece that WordNet knows, numbers and stop words included.
So it compares with the first of the three counts printed here, which are of whole words without stop words.
"""

import argparse
import json
from typing import Optional, Sequence

from fairseq.data import Dictionary
from torch import Tensor
from tqdm import tqdm

from tn_fairseq.dictionary import load_dictionary
from tn_fairseq.errors import InputError, one_line_errors
from tn_fairseq.synonyms.table import PADDING, build_table, load_synonym_table, read_description, save_synonym_table
from tn_fairseq.synonyms.vectors import nearest_neighbours, read_vectors
from tn_fairseq.synonyms.vocabulary import STOP_WORDS, whole_words

EXAMPLES = ("primary", "stay", "large", "begin", "quickly")
LABELS = {
    "wordnet": ("known to WordNet", "with a lemma other than itself", "with a synonym in the dictionary"),
    "vectors": ("with a vector", None, "with a neighbour kept"),
}
PAPER = "the paper's figure for 30,522 uncased pieces; it counts words known to WordNet, see --help"


@one_line_errors()
def main(argv: Optional[Sequence[str]] = None) -> None:
    args = parse_args(argv)
    dictionary = load_dictionary(args.dict)
    words = whole_words(dictionary, args.encoder_json)
    if args.show:
        table = load_synonym_table(args.table, dictionary)
        for name, value in sorted(read_description(args.table).items()):
            print(f"{name:24}{value}")
        for word in args.show:
            print(row_of(word, words, table, dictionary))
        return

    content_words = {index: word for index, word in words.items() if word.lower() not in STOP_WORDS}
    if args.source == "wordnet":
        # Imported here: NLTK takes two seconds, and only this source needs it.
        from tn_fairseq.synonyms.wordnet import ensure_wordnet, wordnet_synonyms, wordnet_version

        reader = ensure_wordnet()
        version = wordnet_version(reader)
        progress = tqdm(content_words.values(), desc="Looking up words", unit=" words", leave=False, disable=None)
        candidates = (wordnet_synonyms(reader, word) or None for word in progress)
        options = {}
    else:
        vectors = read_vectors(args.vectors, list(content_words.values()))
        version = vectors.version
        if vectors.not_utf8:
            print(f"{args.vectors}: passed over {vectors.not_utf8:,} lines whose word is not UTF-8")
        progress = tqdm(
            nearest_neighbours(vectors, args.top_k, args.min_similarity),
            total=len(vectors.words),
            desc="Comparing words",
            unit=" words",
            leave=False,
            disable=None,
        )
        neighbours = dict(progress)
        candidates = (neighbours.get(word) for word in content_words.values())
        options = {"top_k": args.top_k, "min_similarity": args.min_similarity}
    table, coverage = build_table(dictionary, content_words, candidates)

    counts = {label: count for label, count in zip(LABELS[args.source], coverage, strict=True) if label is not None}
    description = {"source": args.source, "source_version": version, "options": json.dumps(options)}
    save_synonym_table(args.output, table, dictionary, {**description, "counts": json.dumps(counts)})

    print(f"{'dictionary':36}{len(dictionary):9,}")
    print(f"{'whole words':36}{len(words):9,}, of them {len(words) - len(content_words)} stop words (left out)")
    print(f"{'source':36}{version}")
    for label, count in counts.items():
        print(f"{label:36}{count:9,} {count / len(dictionary):8.2%} of the dictionary")
    if args.source == "wordnet":
        print(f"{'':45} {0.6251:8.2%} ({PAPER})")
    for word in EXAMPLES:
        if word in content_words.values():
            print(row_of(word, words, table, dictionary))
    print(f"{args.output}: {table.size(0):,} rows of at most {table.size(1)} synonyms")


def parse_args(argv: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dict", required=True, metavar="FILE", help="the dict.txt of the data to train on")
    parser.add_argument("--encoder-json", metavar="FILE", help="GPT-2's encoder.json, for a dictionary of numbers")
    build = parser.add_argument_group("to build a table")
    build.add_argument("--source", choices=("wordnet", "vectors"), help="where synonyms come from")
    build.add_argument("--vectors", metavar="FILE", help="word vectors in the text format of GloVe or word2vec")
    build.add_argument("--top-k", type=int, default=10, metavar="N", help="neighbours kept of each word (default: 10)")
    build.add_argument("--min-similarity", type=float, metavar="X", help="least cosine of a neighbour (default: none)")
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
    if args.top_k < 1:
        parser.error("--top-k must be at least 1")
    return args


def row_of(word: str, words: dict[int, str], table: Tensor, dictionary: Dictionary) -> str:
    """The row of ``word`` in a line of text; raises InputError for a word that is no whole word of the dictionary."""
    index = next((index for index, entry in words.items() if entry == word), None)
    if index is None:
        raise InputError(f"--show: {word!r} is not a whole word of the dictionary")
    synonyms = [words[synonym] for synonym in table[index].tolist() if synonym != PADDING]
    nothing = "(a stop word)" if word.lower() in STOP_WORDS else "(no synonym)"
    return f"{word}: {', '.join(synonyms) or nothing}"


if __name__ == "__main__":
    main()
