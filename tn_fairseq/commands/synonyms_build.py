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

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InputError
from ..core.options import option
from ..synonyms.table_options import ENGLISH, TableOptions
from .arguments import command_line
from .synonyms_show import VocabularyOptions, read_words, row_of

if TYPE_CHECKING:
    from torch import Tensor

    from ..synonyms.swords import Target

EXAMPLES = ("primary", "stay", "large", "begin", "quickly")
PAPER = "the paper's figure for 30,522 uncased pieces; it counts words known to WordNet, see --help"


@dataclass(frozen=True, kw_only=True)
class BuildOptions(TableOptions, VocabularyOptions):
    """What the table is for, which synonyms are in it, and where it is written."""

    dry_run: bool = option(
        "only print how --synonyms is read, with examples, and write nothing", default=False, needs={"source": "list"}
    )
    swords: str | None = option(
        "print how people judge the table's pairs; the development data of SWORDS", default=None, metavar="FILE"
    )
    output: Path | None = option("the table to write (.safetensors)", default=None, unless="dry_run")


def build(options: BuildOptions) -> None:
    """Build a table, write it, and print a summary."""
    # imported here because torch takes seconds to import and --help does not need it
    from ..core.synonym_table import read_description, save_synonym_table
    from ..core.vocabulary import continues_word
    from ..huggingface.synonyms import TokenizerSymbols
    from ..synonyms.building import build_table, stop_words
    from ..synonyms.sources import SOURCES
    from ..synonyms.swords import read_swords

    if options.output and options.output.is_file() and not options.dry_run:
        try:
            read_description(options.output)
        except InputError:  # such as the list of which one is made
            raise InputError(f"--output {options.output}: exists and is no synonym table; give another file") from None
    dictionary, words = read_words(options)
    if isinstance(dictionary, TokenizerSymbols):
        continuations = dictionary.continuations
        options = replace(options, read_model=dictionary.read_model)
    else:
        continuations = continues_word(dictionary, options.encoder_json)
    if options.dry_run or not options.output:
        print(*SOURCES["list"].offer(options, dictionary, words).notes, sep="\n")
        return
    targets = read_swords(options.swords) if options.swords else None
    table, description, notes = build_table(options, dictionary, words)
    save_synonym_table(options.output, table, dictionary, description, continuations=continuations)

    for note in notes:
        print(note)
    stopped = stop_words(options)
    left_out = f"of them {sum(word.lower() in stopped for word in words.values())} stop words (left out)"
    if not stopped:
        left_out = "no stop words left out; give them with --stop-words FILE"
    print(f"{'dictionary':36}{len(dictionary):11,}")
    print(f"{'whole words':36}{len(words):11,}, {left_out}")
    print(f"{'source':36}{description['source_version']}")
    for label, count in json.loads(description["counts"]).items():
        print(f"{label:36}{count:11,} {count / len(dictionary):8.2%} of the dictionary")
    if list(options.source) == ["wordnet"] and options.lang == ENGLISH:
        print(f"{'':45} {0.6251:8.2%} ({PAPER})")
    if targets is not None:
        print_quality(table, targets, words)
    for word in EXAMPLES:
        if word in words.values():
            print(row_of(word, words, table, stopped))
    print(f"{options.output}: {table.size(0):,} rows of at most {table.size(1)} synonyms")


def print_quality(table: "Tensor", targets: Sequence["Target"], words: Mapping[int, str]) -> None:
    """Print how people judge the table's pairs in SWORDS, and how many pairs cross inflections."""
    from ..synonyms.acceptance import crossings, table_quality

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


main = command_line("synonyms build", __doc__, build)
