"""Build a synonym table from its options."""

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from ..core.dictionary import Symbols
from ..core.files import read_text
from ..core.synonym_table import rows_to_table
from ..core.vocabulary import STOP_WORDS
from .inflection import VERSION as LEMMINFLECT
from .inflection import Relation, relation
from .neighbors import at_least
from .rows import build_rows, combine, keep_pairs
from .sources import SOURCES
from .table_options import ENGLISH, TableOptions


class BuiltTable(NamedTuple):
    """A table, int32 (len(dictionary), columns), its description, and lines about what was read."""

    table: Tensor
    description: dict[str, str]
    notes: Sequence[str]


def stop_words(options: TableOptions) -> Collection[str]:
    """The lowercase words that neither have nor are synonyms; raises InputError for a file that cannot be read."""
    if options.stop_words:
        text = read_text(options.stop_words, "give a text file with one word per line with --stop-words", "utf-8-sig")
        return {line.strip().lower() for line in text.splitlines()}
    return STOP_WORDS if options.lang == ENGLISH else ()


def build_table(options: TableOptions, dictionary: Symbols, words: Mapping[int, str]) -> BuiltTable:
    """The table for ``words`` (id -> word), the whole words of ``dictionary``, without stop words.

    Raises InputError for a source that is missing, damaged, or does not fit the dictionary.
    """
    stopped = stop_words(options)
    words = {index: word for index, word in words.items() if word.lower() not in stopped}
    needed = dict.fromkeys([*options.source, *options.filter])
    offers = {name: SOURCES[name].offer(options, dictionary, words) for name in needed}
    rows_and_coverage = {name: build_rows(words, offers[name].candidates) for name in options.source}
    first = options.source[0]
    if len(options.source) > 1:
        rows = combine([rows for rows, _ in rows_and_coverage.values()], options.combine)
        counts = {SOURCES[name].counts[0]: coverage.known for name, (_, coverage) in rows_and_coverage.items()}
        counts["with a synonym in the table"] = len(rows)
        used: dict[str, object] = {
            "combine": options.combine,
            **{name: offers[name].options for name in options.source},
        }
    else:
        rows, coverage = rows_and_coverage[first]
        counts = {label: count for label, count in zip(SOURCES[first].counts, coverage, strict=True) if label}
        used = offers[first].options
    if options.lang != ENGLISH:
        used["lang"] = options.lang
    if options.stop_words:
        used["stop_words"] = Path(options.stop_words).name
    if options.filter:
        used["filter"] = {
            name: {"min_similarity": floor, "version": offers[name].version} for name, floor in options.filter.items()
        }
    for name, floor in options.filter.items():
        vectors = offers[name].vectors
        assert vectors is not None  # because it is one of FILTERS
        rows = keep_pairs(rows, words, at_least(vectors, floor))
    if options.same_inflection:
        rows = keep_pairs(rows, words, lambda word, other: relation(word, other) == Relation.SAME_FORM)
        used["same_inflection"] = LEMMINFLECT
    if options.no_contrasts:
        # Imported here because NLTK takes two seconds.
        from .contrasts import is_contrast
        from .wordnet import ensure_wordnet, wordnet_version

        reader = ensure_wordnet()
        rows = keep_pairs(rows, words, lambda word, other: not is_contrast(reader, word, other))
        used["no_contrasts"] = wordnet_version(reader)
    counts[list(counts)[-1]] = len(rows)
    description = {
        "source": f"{options.combine} of {', '.join(options.source)}" if len(options.source) > 1 else first,
        "source_version": "; ".join(offers[name].version for name in options.source),
        "options": json.dumps(used),
        "counts": json.dumps(counts),
    }
    notes = [line for offer in offers.values() for line in offer.notes]
    return BuiltTable(rows_to_table(dictionary, rows), description, notes)
