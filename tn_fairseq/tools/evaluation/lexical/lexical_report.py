"""The report: reads the data, measures tables and checkpoints, and writes all files together at the end."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary

from ....core.configuration import check_data_folder
from ....core.dictionary import load_dictionary
from ....core.errors import InputError
from ....core.synonym_table import load_synonym_table
from ....core.vocabulary import whole_words
from ....models.loading import Checkpoint, find_checkpoints, load
from ....synonyms.acceptance import crossings, table_quality
from ....synonyms.swords import read_swords
from ...reporting.layout import table_names, write_csv, write_json
from ...reporting.report_folder import draw_if_possible, list_files, report_folder
from ..finetuning import check_baseline, default_name, split_name
from .lexical_measures import NO_TARGET, OTHER_DATA, Measure, parts_of, swords_name
from .results import (
    Measured,
    checkpoint_rows,
    checkpoints_text,
    draw_measures,
    table_rows,
    tables_text,
)

CSV, JSON, TABLES, TEXT = "lexical.csv", "lexical.json", "synonym_tables.csv", "lexical.txt"
PLOTS = ("lexical.png", "lexical.svg")
FILES = {
    CSV: "each measure of each checkpoint, with intervals and differences",
    JSON: "the same measures, and those of the synonym tables",
    TABLES: "the measures of the synonym tables",
    PLOTS[0]: "the measures with their intervals",
    PLOTS[1]: "the measures with their intervals",
    TEXT: "what the command prints",
}


def write_report(options: Namespace) -> str:
    """Measure the tables and the checkpoints, write FILES to the output, and return the text to print.

    ``options`` are the command's. Raises InputError before anything runs for data, a table or a checkpoint that is
    invalid or does not fit the dictionary, and for an output that cannot be written.
    """
    _check(options)
    check_data_folder(options.data)
    dictionary = load_dictionary(options.data / "dict.txt")
    words = whole_words(dictionary, options.encoder_json)
    paths = dict(zip(table_names(options.synonym_table), options.synonym_table))
    tables = {name: load_synonym_table(path, dictionary).synonyms for name, path in paths.items()}
    targets = [] if options.swords is None else read_swords(options.swords)
    of_tables = []
    for name, table in tables.items():
        matches = {"lemma": True, "spelling": False}
        qualities = {match: table_quality(table, targets, words, by_lemma) for match, by_lemma in matches.items()}
        of_tables += table_rows(name, qualities, crossings(table, words), len(targets))
        if not of_tables[-1]["one_piece_targets"]:
            raise InputError(f"{options.swords}: {NO_TARGET} of {options.data}; {OTHER_DATA}")
    parts = parts_of(options, targets, dictionary, words, tables)
    groups = find_groups(options.checkpoints, dictionary, options.baseline)

    with report_folder(options.output, FILES) as folder:
        measures = [part.measure for part in parts]
        measured = [measure_group(name, group, measures, options.data) for name, group in groups.items()]
        gold = {key: values for part in parts for key, values in part.gold.items()}
        contexts = {data: of_items for part in parts for data, of_items in part.contexts.items()}
        notes = {data: note for part in parts for data, note in part.notes.items()}
        rows = checkpoint_rows(measured, gold, options.baseline, contexts)
        blocks = [tables_text(of_tables)] if of_tables else []
        blocks += [checkpoints_text(rows, notes)] if rows else []
        text = "\n\n".join(blocks)
        write_json({"checkpoints": rows, "synonym_tables": of_tables}, folder / JSON)
        (folder / TEXT).write_text(text + "\n", encoding="utf-8")
        if of_tables:
            write_csv(of_tables, folder / TABLES)
        if rows:
            write_csv(rows, folder / CSV)
            draw_if_possible(draw_measures, rows, [folder / name for name in PLOTS])
    return "\n".join([text, "", *list_files(options.output, FILES)])


def _check(options: Namespace) -> None:
    """Raises InputError if there is nothing to measure, or nothing to measure it with."""
    if not options.checkpoints and not options.synonym_table:
        raise InputError("nothing to measure; give checkpoints, or --synonym-table with --swords")
    if options.synonym_table and options.swords is None:
        raise InputError("--synonym-table needs --swords, the judgments to compare it with")
    if options.checkpoints and not (options.swords or options.word_pairs or options.blimp):
        raise InputError("nothing to measure the checkpoints with; give --swords, --word-pairs or --blimp")
    if not options.checkpoints and (options.word_pairs or options.blimp):
        raise InputError("--word-pairs and --blimp measure checkpoints; give at least one")
    names = [path.stem for path in options.word_pairs]
    names += [] if options.swords is None else [swords_name(options.swords)]
    names += [] if options.blimp is None else [options.blimp.stem]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two files are named {name}; rename one, because results have these names")


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
        found = find_checkpoints([pattern], dictionary)
        new = {name: found} if name is not None else {default_name(one.path): [one] for one in found}
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


def measure_group(name: str, group: Sequence[Checkpoint], measures: Sequence[Measure], data: Path) -> Measured:
    """Measure all seeds of a checkpoint, loaded one at a time."""
    seeds = []
    for checkpoint in group:
        loaded = load(checkpoint, data)
        try:
            seeds.append({key: values for measure in measures for key, values in measure(loaded).items()})
        except InputError as error:
            raise InputError(f"{checkpoint.path}: {error}") from None
    return Measured(name, group[0].updates, {key: np.stack([seed[key] for seed in seeds]) for key in seeds[0]})
