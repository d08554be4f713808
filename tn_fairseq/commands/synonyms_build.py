"""Build a synonym table for a dictionary or a tokenizer.

    tn-fairseq synonyms build --dict DATA_BIN/dict.txt --source wordnet \\
        --output synonyms.safetensors
    tn-fairseq synonyms build --dict DATA_BIN/dict.txt --source wordnet vectors \\
        --combine union --vectors glove.6B.300d.txt --path checkpoint_last.pt --filter model=0.3 --same-inflection \\
        --no-contrasts --output synonyms.safetensors
    tn-fairseq synonyms build --dict DATA_BIN/dict.txt --source list \\
        --synonyms th_en_US_v2.dat --format mythes --output synonyms.safetensors
    tn-fairseq synonyms build --tokenizer MODEL --source model --path MODEL \\
        --output synonyms.safetensors

With --tokenizer, the table is for a tokenizer of transformers, and --path can also name a model of transformers. It is
the same table as for the dict.txt that binarize writes for this tokenizer.

Keys and values are whole words of the dictionary, and never stop words (closed-class words). From WordNet: all lemmas
of all synsets of the word. From vectors: the nearest words by cosine. From a model: the nearest words by the cosine of
its own input word embeddings, after their common directions are removed. Near words are used in similar ways, but need
not mean the same: large is near small. From a list: what a file says, by falling score and then in its order, ignoring
case. The table describes itself: source and version, options, counts.

With --combine, the union has the synonyms of any source, the intersection those of all sources. In both, the words that
more sources offer come first, then those with a better mean rank. Filters then drop pairs of a word and a synonym. With
--same-inflection, WordNet's lemmas are also offered in the form of the word.

The lemmas of other languages (--lang) come from the Open Multilingual WordNet, which does not have every language. Base
forms are known only for English; words of other languages are looked up as they are, ignoring case. Accented words
need a vocabulary with accents (train-tokenizer --cased).

The paper reports that 62.51% of a 30,522-piece uncased vocabulary "have synonyms found in WordNet". With WordNet 3.0
and BERT's vocabulary we get this figure (62.50%) if we count every piece that WordNet knows, including numbers and
stop words. So compare it with the first of the three counts printed here, which count whole words without stop words.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from ..core.dictionary import Symbols
from ..core.errors import InputError, one_line_errors
from ..core.synonym_table import read_description, save_synonym_table
from ..core.vocabulary import continues_word
from ..huggingface.synonyms import TokenizerSymbols
from ..synonyms.acceptance import crossings, table_quality
from ..synonyms.building import build_table, stop_words
from ..synonyms.list_formats import FORMATS
from ..synonyms.rows import COMBINATIONS
from ..synonyms.sources import ENGLISH, FILTERS, MODEL_MIN_SIMILARITY, NEIGHBORS, SOURCES, TableOptions
from ..synonyms.swords import Target, read_swords
from .arguments import command_parser
from .synonyms_show import add_vocabulary_options, read_words, row_of

EXAMPLES = ("primary", "stay", "large", "begin", "quickly")
BEYOND_READING = ("top_k", "filter", "same_inflection", "no_contrasts", "stop_words", "swords", "output")
PAPER = "the paper's figure for 30,522 uncased pieces; it counts words known to WordNet, see --help"


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Build a table."""
    args = parse(argv)
    if not args.dry_run:
        _check_replaced(Path(args.output))
    dictionary, words = read_words(args)
    if isinstance(dictionary, TokenizerSymbols):
        continuations = dictionary.continuations
        args.options = replace(args.options, read_model=dictionary.read_model)
    else:
        continuations = continues_word(dictionary, args.encoder_json)
    if args.dry_run:
        print(*SOURCES["list"].offer(args.options, dictionary, words).notes, sep="\n")
        if unused := [name for name in BEYOND_READING if vars(args)[name]]:
            print("without effect on reading:", ", ".join("--" + name.replace("_", "-") for name in unused))
    else:
        make_table(args, dictionary, words, continuations)


def _check_replaced(path: Path) -> None:
    """Raises InputError for a file that is no synonym table, such as the list of which one is made."""
    if path.is_file():
        try:
            read_description(path)
        except InputError:
            raise InputError(f"--output {path}: exists and is no synonym table; give another file") from None


def make_table(
    args: argparse.Namespace, dictionary: Symbols, words: Mapping[int, str], continuations: Sequence[bool]
) -> None:
    """Build a table, write it, and print a summary."""
    targets = read_swords(args.swords) if args.swords else None
    table, description, notes = build_table(args.options, dictionary, words)
    save_synonym_table(args.output, table, dictionary, description, continuations=continuations)

    for note in notes:
        print(note)
    stopped = stop_words(args.options)
    left_out = f"of them {sum(word.lower() in stopped for word in words.values())} stop words (left out)"
    if not stopped:
        left_out = "no stop words left out; give them with --stop-words FILE"
    print(f"{'dictionary':36}{len(dictionary):11,}")
    print(f"{'whole words':36}{len(words):11,}, {left_out}")
    print(f"{'source':36}{description['source_version']}")
    for label, count in json.loads(description["counts"]).items():
        print(f"{label:36}{count:11,} {count / len(dictionary):8.2%} of the dictionary")
    if args.source == ["wordnet"] and args.lang == ENGLISH:
        print(f"{'':45} {0.6251:8.2%} ({PAPER})")
    if targets is not None:
        print_quality(table, targets, words)
    for word in EXAMPLES:
        if word in words.values():
            print(row_of(word, words, table, stopped))
    print(f"{args.output}: {table.size(0):,} rows of at most {table.size(1)} synonyms")


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
        print(f"{label:36}{count:11,} {count / max(total, 1):8.2%} of {total:,} {what}")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command's options; exits with a usage error if options are missing or contradict each other."""
    parser = command_parser("synonyms build", __doc__)
    add = parser.add_argument
    add_vocabulary_options(parser)
    add("--source", nargs="+", choices=SOURCES, help="where synonyms come from (required)")
    add("--combine", choices=COMBINATIONS, help="how to combine several sources")
    text = "ISO 639-3 code of the language of WordNet's lemmas, such as fra, spa or jpn (default: eng)"
    add("--lang", default=ENGLISH, metavar="CODE", help=text)
    for source in SOURCES.values():
        if source.flag:
            add(source.flag, metavar=source.metavar, help=source.help)
    text = f"synonyms to keep per word (default: {NEIGHBORS} for vectors and a model, all for a list)"
    add("--top-k", type=int, metavar="N", help=text)
    text = f"minimum cosine of a neighbor (default: none for vectors, {MODEL_MIN_SIMILARITY} for a model)"
    add("--min-similarity", type=float, metavar="X", help=text)
    add("--format", choices=FORMATS, help="the format of --synonyms; required with --source list")
    text = "names of the columns in a TSV or CSV file (default: word, synonym and, if it is there, score)"
    add("--columns", type=parse_columns, default={}, metavar="word=NAME,synonym=NAME,score=NAME", help=text)
    text = "keep only rows of a TSV or CSV file whose column has this value, or one of several values of a column"
    add("--where", nargs="+", action="extend", type=parse_value, default=[], metavar="COLUMN=VALUE", help=text)
    text = "only print how --synonyms is read, with examples, and write nothing"
    add("--dry-run", action="store_true", help=text)
    add("--symmetric", action="store_true", help="read each pair of --synonyms in both directions")
    add("--min-score", type=float, metavar="X", help="minimum score of a pair in --synonyms")
    text = "keep only pairs with a cosine of at least X in --vectors (vectors=X) or in the model of --path (model=X)"
    add("--filter", nargs="+", type=parse_filter, default=[], metavar="SOURCE=X", help=text)
    text = "keep only synonyms in the same form as the word: polls for elections, not election"
    add("--same-inflection", action="store_true", help=text)
    text = "drop pairs that exclude each other: two names, months, weekdays or numbers, and antonyms"
    add("--no-contrasts", action="store_true", help=text)
    text = "words without synonyms, one per line (default: built-in English list; none with --lang)"
    add("--stop-words", metavar="FILE", help=text)
    text = "print how people judge the table's pairs; the development data of SWORDS"
    add("--swords", metavar="FILE", help=text)
    add("--output", metavar="FILE", help="the table to write (.safetensors); required without --dry-run")
    args = parser.parse_args(argv)
    if args.tokenizer and args.encoder_json:
        parser.error("--encoder-json needs --dict")
    if args.dry_run and args.source != ["list"]:
        parser.error("--dry-run needs --source list and no other source")
    if not args.source or not (args.output or args.dry_run):
        parser.error("give --source and --output; tn-fairseq synonyms show prints rows of a table")
    if len(dict(args.filter)) < len(args.filter):
        parser.error("--filter names a source twice")
    where: dict[str, list[str]] = {}
    for name, value in args.where:
        where.setdefault(name, []).append(value)
    given = vars(args) | {"filter": dict(args.filter), "where": where}
    try:
        args.options = TableOptions(**{name: given[name] for name in TableOptions.__annotations__ if name in given})
    except InputError as error:
        parser.error(str(error))
    return args


def parse_filter(text: str) -> tuple[str, float]:
    """A source and a cosine, as in ``vectors=0.4``; raises argparse.ArgumentTypeError for another form."""
    name, _, floor = text.partition("=")
    with suppress(ValueError):
        return name, float(floor)
    raise argparse.ArgumentTypeError(f"must be {' or '.join(f'{name}=X' for name in FILTERS)}, not {text}")


def parse_columns(text: str) -> dict[str, str]:
    """Names of columns, as in ``word=headword,synonym=gloss``; raises argparse.ArgumentTypeError for another form."""
    return dict(map(parse_value, text.split(",")))


def parse_value(text: str) -> tuple[str, str]:
    """A name and a value, as in ``relation=synonym``; raises argparse.ArgumentTypeError for another form."""
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, not {text}")
    return name, value
