"""The report: reads the data, measures tables and checkpoints, and writes all files together at the end."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary
from torch import Tensor

from ....core.configuration import check_data_folder
from ....core.dictionary import load_dictionary
from ....core.errors import InputError
from ....core.synonym_table import load_synonym_table
from ....core.vocabulary import whole_words
from ....models.loading import Checkpoint, check_masked_lm, find_checkpoints, load
from ....synonyms.acceptance import crossings, table_quality
from ....synonyms.swords import read_swords
from ...evaluate.finetuning import check_baseline, default_name, split_name
from ...reporting.comparison import comparison_lines, report_files, significant, write_report
from ...reporting.layout import table_names, write_csv
from ...reporting.report_folder import list_files, report_folder
from .judged_corrections import judge_text
from .lexical_measures import (
    BY_PARADIGM,
    NO_TARGET,
    OTHER_DATA,
    LexicalOptions,
    Part,
    Words,
    parts_of,
    swords_name,
)
from .results import Measured, Row, checkpoint_rows, table_rows, tables_text

NAME, TABLES = "lexical", "synonym_tables.csv"
FILES = {TABLES: "the measures of the synonym tables", **report_files(NAME)}
INTERVALS = """\
±: half the width of the 95% bootstrap interval over targets, word pairs or pairs of sentences; differences are paired.
Several checkpoints with one name are seeds, which are resampled too. With one seed, the interval does not cover the
spread over seeds, and with few seeds it is too narrow."""


def evaluate_lexical(options: LexicalOptions) -> str:
    """Measure the tables and the checkpoints, write FILES to the output, and return the text to print.

    Raises InputError before anything runs for data, a table or a checkpoint that is invalid or does not fit the
    dictionary, and for an output that cannot be written.
    """
    _check(options)
    check_data_folder(options.data)
    dictionary = load_dictionary(options.data / "dict.txt")
    targets = [] if options.swords is None else read_swords(options.swords)
    vocabulary = Words(dictionary, whole_words(dictionary, options.encoder_json), targets)
    paths = dict(zip(table_names(options.synonym_table), options.synonym_table))
    tables = {name: load_synonym_table(path, dictionary).synonyms for name, path in paths.items()}
    synonym_table_rows = rows_of_tables(tables, vocabulary)
    if not all(row["one_piece_targets"] for row in synonym_table_rows):
        raise InputError(f"{options.swords}: {NO_TARGET} of {options.data}; {OTHER_DATA}")
    parts = parts_of(options, vocabulary, tables)
    groups = find_groups(options.checkpoints, dictionary, options.baseline)
    judge = None if options.judge is None else check_masked_lm(options.judge, dictionary)

    with report_folder(options.output, FILES) as folder:
        measured = [measure_group(name, group, parts, options.data) for name, group in groups.items()]
        contexts = {data: item_contexts for part in parts for data, item_contexts in part.contexts.items()}
        rows = checkpoint_rows(measured, options.baseline, contexts)
        blocks = [tables_text(synonym_table_rows)] if synonym_table_rows else []
        if judge is not None:
            blocks.append(judge_text(load(judge, options.data), options.data, targets, tables, vocabulary.words))
        if rows:
            shown = [row for row in rows if not row.measure.endswith(BY_PARADIGM)]
            blocks.append("\n".join(comparison_lines(shown)))
            blocks += ["\n".join(part.notes) for part in parts]
            blocks.append("\n".join([INTERVALS, *significant(rows)]))
        text = "\n\n".join(blocks)
        write_report(folder, NAME, rows, text, synonym_tables=synonym_table_rows)
        if synonym_table_rows:
            write_csv(synonym_table_rows, folder / TABLES)
    return "\n".join([text, "", *list_files(options.output, FILES)])


def _check(options: LexicalOptions) -> None:
    """Raises InputError if there is nothing to measure, or nothing to measure it with."""
    if not options.checkpoints and not options.synonym_table:
        raise InputError("nothing to measure; give checkpoints, or --synonym-table with --swords")
    if options.synonym_table and options.swords is None:
        raise InputError("--synonym-table needs --swords, the judgments to compare it with")
    if options.judge is not None and not options.synonym_table:
        raise InputError("--judge needs --synonym-table, whose synonyms it accepts or not")
    if options.checkpoints and not (options.swords or options.word_pairs or options.blimp):
        raise InputError("nothing to measure the checkpoints with; give --swords, --word-pairs or --blimp")
    if not options.checkpoints and (options.word_pairs or options.blimp):
        raise InputError("--word-pairs and --blimp measure checkpoints; give at least one")
    if options.blimp_pairs is not None and options.blimp is None:
        raise InputError("--blimp-pairs needs --blimp, the file that has them")
    names = [path.stem for path in options.word_pairs]
    names += [] if options.swords is None else [swords_name(options.swords)]
    names += [] if options.blimp is None else [options.blimp.stem]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two files are named {name}; rename one, because results have these names")


def rows_of_tables(tables: Mapping[str, Tensor], vocabulary: Words) -> list[Row]:
    """The rows of each synonym table, int32 (V, columns), with synonyms matched by lemma and by spelling."""
    rows = []
    for name, table in tables.items():
        qualities = {
            match: table_quality(table, vocabulary.targets, vocabulary.words, by_lemma)
            for match, by_lemma in (("lemma", True), ("spelling", False))
        }
        rows += table_rows(name, qualities, crossings(table, vocabulary.words), len(vocabulary.targets))
    return rows


def find_groups(arguments: Sequence[str], dictionary: Dictionary, baseline: str | None) -> dict[str, list[Checkpoint]]:
    """The checkpoints by name: those that match the pattern of ``NAME=PATTERN``, or each without a name by itself.

    Raises InputError as ``find_checkpoints`` does, for a name that is used twice, for seeds with different numbers of
    updates, and for a baseline that is not among the names.
    """
    groups: dict[str, list[Checkpoint]] = {}
    for argument in arguments:
        name, pattern = split_name(argument)
        if name is not None and "/" in name:  # a path that contains "="
            name, pattern = None, argument
        checkpoints = find_checkpoints([pattern], dictionary)
        new = {name: checkpoints} if name is not None else {default_name(one.path): [one] for one in checkpoints}
        for other in groups.keys() & new.keys():
            raise InputError(f"two checkpoints are named {other}; give them different names: NAME=CHECKPOINT.pt")
        groups |= new
    for name, group in groups.items():
        updates = sorted({one.updates for one in group}, key=str)
        if len(updates) > 1:
            raise InputError(
                f"{name}: checkpoints of {updates[0]} and {updates[1]} updates are not seeds of one experiment; match "
                "one file of each run, or omit the name to measure each file by itself"
            )
    check_baseline(baseline, list(groups))
    return groups


def measure_group(name: str, group: Sequence[Checkpoint], parts: Sequence[Part], data: Path) -> Measured:
    """Measure all seeds of a checkpoint, loaded one at a time."""
    seeds = []
    for checkpoint in group:
        loaded = load(checkpoint, data)
        try:
            seeds.append({one: values for part in parts for one, values in part.measure(loaded).items()})
        except InputError as error:
            raise InputError(f"{checkpoint.path}: {error}") from None
    return Measured(name, group[0].updates, {one: np.stack([seed[one] for seed in seeds]) for one in seeds[0]})
