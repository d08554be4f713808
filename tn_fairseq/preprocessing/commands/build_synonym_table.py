"""Build a synonym table for a dictionary or a tokenizer, or show one.

    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --source wordnet \\
        --output synonyms.safetensors
    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --source wordnet vectors \\
        --combine union --vectors glove.6B.300d.txt --path checkpoint_last.pt --filter model=0.3 --same-inflection \\
        --no-contrasts --output synonyms.safetensors
    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --source list \\
        --synonyms th_en_US_v2.dat --output synonyms.safetensors
    python -m tn_fairseq.preprocessing build-synonym-table --dict DATA_BIN/dict.txt --table synonyms.safetensors \\
        --show primary stay
    python -m tn_fairseq.preprocessing build-synonym-table --tokenizer MODEL --source model --path MODEL \\
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
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from torch import Tensor

from ...arguments import command_parser
from ...dictionary import Symbols, read_symbols
from ...errors import PREPROCESSING, InputError, naming, one_line_errors
from ...huggingface.synonyms import TokenizerSymbols, load_tokenizer
from ...synonym_table import PADDING, load_synonym_table, save_synonym_table
from ...synonyms.acceptance import crossings, table_quality
from ...synonyms.building import build_table, stop_words
from ...synonyms.lists import FORMATS
from ...synonyms.rows import COMBINATIONS
from ...synonyms.sources import ENGLISH, FILTERS, MODEL_MIN_SIMILARITY, NEIGHBORS, SOURCES, TableOptions
from ...synonyms.swords import Target, read_swords
from ...vocabulary import STOP_WORDS, continues_word, whole_words

EXAMPLES = ("primary", "stay", "large", "begin", "quickly")
PAPER = "the paper's figure for 30,522 uncased pieces; it counts words known to WordNet, see --help"


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Build a table, or print rows of a table."""
    args = parse(argv)
    dictionary: Symbols
    if args.tokenizer:
        with naming("--tokenizer"):
            dictionary = TokenizerSymbols(load_tokenizer(args.tokenizer))
        words, continuations = dictionary.words, dictionary.continuations
        if not args.show:
            args.options = replace(args.options, read_model=dictionary.read_model)
    else:
        dictionary = read_symbols(args.dict)
        words, continuations = whole_words(dictionary, args.encoder_json), continues_word(dictionary, args.encoder_json)
    if args.show:
        show_table(args, dictionary, words)
    elif args.dry_run:
        print(*SOURCES["list"].offer(args.options, dictionary, words).notes, sep="\n")
    else:
        make_table(args, dictionary, words, continuations)


def show_table(args: argparse.Namespace, dictionary: Symbols, words: Mapping[int, str]) -> None:
    """Print the description of a table and the requested rows.

    Raises InputError, at the end, for words that are not whole words of the dictionary.
    """
    table, _, description = load_synonym_table(args.table, dictionary)
    for name, value in sorted(description.items()):
        print(f"{name:24}{value}")
    ours = {"lang", "stop_words"}.isdisjoint(json.loads(description.get("options", "{}")))
    known = set(words.values())
    for word in args.show:
        if word in known:
            print(row_of(word, words, table, STOP_WORDS if ours else ()))
    if unknown := [repr(word) for word in args.show if word not in known]:
        problem = "is not a whole word" if len(unknown) == 1 else "are not whole words"
        raise InputError(f"--show: {', '.join(unknown)} {problem} in {args.dict or args.tokenizer}")


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


def row_of(word: str, words: Mapping[int, str], table: Tensor, stop_words: Collection[str]) -> str:
    """The row of ``word`` as one line of text."""
    index = next(index for index, entry in words.items() if entry == word)
    synonyms = [words[synonym] for synonym in table[index].tolist() if synonym != PADDING]
    nothing = "(a stop word)" if word.lower() in stop_words else "(no synonym)"
    return f"{word}: {', '.join(synonyms) or nothing}"


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command's options; exits with a usage error if options are missing or contradict each other."""
    parser = command_parser(f"{PREPROCESSING} build-synonym-table", __doc__)
    vocabulary = parser.add_mutually_exclusive_group(required=True)
    vocabulary.add_argument("--dict", metavar="FILE", help="the dict.txt of the training data")
    text = "a folder of save_pretrained, or a name on the Hugging Face Hub"
    vocabulary.add_argument("--tokenizer", metavar="DIR", help=text)
    parser.add_argument("--encoder-json", metavar="FILE", help="GPT-2's encoder.json, for a dictionary of numbers")
    build = parser.add_argument_group("to build a table")
    build.add_argument("--source", nargs="+", choices=SOURCES, help="where synonyms come from")
    build.add_argument("--combine", choices=COMBINATIONS, help="how to combine several sources")
    text = "ISO 639-3 code of the language of WordNet's lemmas, such as fra, spa or jpn (default: eng)"
    build.add_argument("--lang", default=ENGLISH, metavar="CODE", help=text)
    for source in SOURCES.values():
        if source.flag:
            build.add_argument(source.flag, metavar=source.metavar, help=source.help)
    text = f"synonyms to keep per word (default: {NEIGHBORS} for vectors and a model, all for a list)"
    build.add_argument("--top-k", type=int, metavar="N", help=text)
    text = f"minimum cosine of a neighbor (default: none for vectors, {MODEL_MIN_SIMILARITY} for a model)"
    build.add_argument("--min-similarity", type=float, metavar="X", help=text)
    build.add_argument("--format", choices=FORMATS, help="the format of --synonyms (default: recognized)")
    text = "only print how --synonyms is read, with examples, and write nothing"
    build.add_argument("--dry-run", action="store_true", help=text)
    build.add_argument("--symmetric", action="store_true", help="read each pair of --synonyms in both directions")
    build.add_argument("--min-score", type=float, metavar="X", help="minimum score of a pair in --synonyms")
    text = "keep only pairs with a cosine of at least X in --vectors (vectors=X) or in the model of --path (model=X)"
    build.add_argument("--filter", nargs="+", type=parse_filter, default=[], metavar="SOURCE=X", help=text)
    text = "keep only synonyms in the same form as the word: polls for elections, not election"
    build.add_argument("--same-inflection", action="store_true", help=text)
    text = "drop pairs that exclude each other: two names, months, weekdays or numbers, and antonyms"
    build.add_argument("--no-contrasts", action="store_true", help=text)
    text = "words without synonyms, one per line (default: built-in English list; none with --lang)"
    build.add_argument("--stop-words", metavar="FILE", help=text)
    text = "print how people judge the table's pairs; the development data of SWORDS"
    build.add_argument("--swords", metavar="FILE", help=text)
    build.add_argument("--output", metavar="FILE", help="the table to write (.safetensors)")
    show = parser.add_argument_group("to show a table")
    show.add_argument("--table", metavar="FILE", help="an existing table")
    text = "print the table's description and the rows of these words"
    show.add_argument("--show", nargs="+", metavar="WORD", help=text)
    args = parser.parse_args(argv)
    if args.tokenizer and args.encoder_json:
        parser.error("--encoder-json needs --dict")
    if args.show:
        if not args.table or args.source or args.output or args.dry_run:
            text = "neither --source nor --output nor --dry-run; build the table first"
            parser.error(f"--show needs --table FILE, and {text}")
        for action in build._group_actions:
            if getattr(args, action.dest) != action.default:
                parser.error(f"{action.option_strings[0]} has no effect on --show; omit it")
        return args
    if args.table:
        parser.error("--table needs --show; omit it to build a table")
    if args.dry_run and args.source != ["list"]:
        parser.error("--dry-run needs --source list and no other source")
    if not args.source or not (args.output or args.dry_run):
        parser.error("to build a table, give --source and --output; to show one, give --table and --show")
    if len(dict(args.filter)) < len(args.filter):
        parser.error("--filter names a source twice")
    given = vars(args) | {"filter": dict(args.filter)}
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
