"""The report: reads the data, measures tables and checkpoints, and writes all files together at the end."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor

from ... import objectives
from ...configuration import check_data_folder
from ...criterions.mlm_soft_reg import input_word_embeddings
from ...dictionary import load_dictionary
from ...errors import InputError
from ...files import publish, write_folder
from ...models.loading import Checkpoint, Loaded, find_checkpoints, load
from ...reporting.layout import table_names, write_csv
from ...synonym_table import load_synonym_table
from ...synonyms.acceptance import crossings, table_quality
from ...synonyms.swords import Target, read_swords
from ...synonyms.words import word_finder
from ...tokenizers import load_tokenizer
from ...vocabulary import whole_words
from ..finetuning import default_name, split_name
from .blimp import by_group, prefers_good, read_blimp
from .plot import draw_measures
from .results import (
    ACCURACY,
    MEAN_COSINE,
    SPEARMAN,
    Key,
    Measured,
    checkpoint_rows,
    checkpoints_text,
    table_rows,
    tables_text,
)
from .substitution import find_questions, measure_substitutes
from .word_pairs import mean_cosine, one_piece_pairs, read_word_pairs

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
_NO_TARGET = "none of its targets is one piece in the vocabulary"
_OTHER_DATA = "give the data of a model whose vocabulary has English words"
# the measure of a model by key, (items,) each
Measure = Callable[[Loaded], dict[Key, np.ndarray]]


@dataclass(frozen=True)
class Sources:
    """What to measure with; ``data`` is a folder with dict.txt and, unless only tables are measured, tokenizer/."""

    data: Path
    swords: Path | None
    synonym_tables: Sequence[Path]
    word_pairs: Sequence[Path]
    blimp: Path | None
    blimp_pairs: int
    encoder_json: Path | None


def write_report(arguments: Sequence[str], sources: Sources, baseline: str | None, output: Path) -> str:
    """Measure the tables and the checkpoints, write FILES to ``output``, and return the text to print.

    ``arguments`` are ``CHECKPOINT.pt`` or ``NAME=PATTERN``. Raises InputError before anything runs for data, a table or
    a checkpoint that is invalid or does not fit the dictionary, and for an output that cannot be written.
    """
    _check(arguments, sources)
    check_data_folder(sources.data)
    dictionary = load_dictionary(sources.data / "dict.txt")
    words = whole_words(dictionary, sources.encoder_json)
    names = table_names(sources.synonym_tables)
    tables = {name: load_synonym_table(path, dictionary) for name, path in zip(names, sources.synonym_tables)}
    targets = [] if sources.swords is None else read_swords(sources.swords)
    of_tables = []
    for name, table in tables.items():
        matches = {"lemma": True, "spelling": False}
        qualities = {match: table_quality(table, targets, words, by_lemma) for match, by_lemma in matches.items()}
        of_tables += table_rows(name, qualities, crossings(table, words), len(targets))
        if not of_tables[-1]["one_piece_targets"]:
            raise InputError(f"{sources.swords}: {_NO_TARGET} of {sources.data}; {_OTHER_DATA}")
    measures: list[Measure] = []
    gold: dict[Key, np.ndarray] = {}
    notes: dict[str, str] = {}
    groups: dict[str, list[Checkpoint]] = {}
    if arguments:
        measures, gold, notes = _measures(sources, targets, dictionary, words, tables)
        groups = find_groups(arguments, dictionary, baseline)

    with write_folder(output, "--output") as folder:
        measured = [measure_group(name, group, measures, sources.data) for name, group in groups.items()]
        rows = checkpoint_rows(measured, gold, baseline)
        blocks = [tables_text(of_tables)] if of_tables else []
        blocks += [checkpoints_text(rows, notes)] if rows else []
        text = "\n\n".join(blocks)
        content = {"checkpoints": rows, "synonym_tables": of_tables}
        (folder / JSON).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        (folder / TEXT).write_text(text + "\n", encoding="utf-8")
        if of_tables:
            write_csv(of_tables, folder / TABLES)
        if rows:
            write_csv(rows, folder / CSV)
            try:
                draw_measures(rows, *(folder / name for name in PLOTS))
            except InputError as error:  # no matplotlib
                print(f"{' and '.join(PLOTS)} are not written: {error}", file=sys.stderr)
        # delete the files of an earlier report, so that two reports do not mix
        publish(folder, output, last=TEXT, old=[output / name for name in FILES])
    files = [f"  {output / name}  {what}" for name, what in FILES.items() if (output / name).exists()]
    return "\n".join([text, "", *files])


def _check(arguments: Sequence[str], sources: Sources) -> None:
    """Raises InputError if there is nothing to measure, or nothing to measure it with."""
    if not arguments and not sources.synonym_tables:
        raise InputError("nothing to measure; give checkpoints, or --synonym-table with --swords")
    if sources.synonym_tables and sources.swords is None:
        raise InputError("--synonym-table needs --swords, the judgments to compare it with")
    if arguments and not (sources.swords or sources.word_pairs or sources.blimp):
        raise InputError("nothing to measure the checkpoints with; give --swords, --word-pairs or --blimp")
    if not arguments and (sources.word_pairs or sources.blimp):
        raise InputError("--word-pairs and --blimp measure checkpoints; give at least one")
    stems = [path.stem for path in sources.word_pairs]
    for stem in stems:
        if stems.count(stem) > 1:
            raise InputError(f"--word-pairs: two files are named {stem}; rename one, because results have these names")


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
    if baseline is not None and baseline not in groups:
        raise InputError(f"--baseline {baseline}: not among the checkpoints, which are named {', '.join(groups)}")
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


def _measures(
    sources: Sources,
    targets: Sequence[Target],
    dictionary: Dictionary,
    words: Mapping[int, str],
    tables: Mapping[str, Tensor],
) -> tuple[list[Measure], dict[Key, np.ndarray], dict[str, str]]:
    """Functions that measure a model, the similarities of word pairs by key, and what is left out by data."""
    measures: list[Measure] = []
    gold: dict[Key, np.ndarray] = {}
    notes: dict[str, str] = {}
    if sources.swords is not None or sources.blimp is not None:
        tokenizer = load_tokenizer(sources.data / "tokenizer")
        lookup = tokenizer.lookup_table(dictionary)

    if sources.swords is not None:
        data = sources.swords.name.split(".json")[0]
        questions = find_questions(targets, tokenizer, lookup, words)
        if not questions:
            raise InputError(f"{sources.swords}: {_NO_TARGET} of {sources.data}; {_OTHER_DATA}")
        judged = sum(len(question.target.substitutes) for question in questions)
        used = sum(len(question.scores) for question in questions)
        notes[data] = (
            f"{len(questions):,} of {len(targets):,} targets are one piece; {used:,} of their {judged:,} judged "
            "substitutes are one piece in the form of\nthe target. All others are left out."
        )

        def substitutes(loaded: Loaded) -> dict[Key, np.ndarray]:
            found = measure_substitutes(loaded, questions, tables, words)
            return {Key(data, measure, table): values for (measure, table), values in found.items()}

        measures.append(substitutes)

    find = word_finder(words)
    pairs: dict[Key, tuple[Tensor, Tensor]] = {}
    for path in sources.word_pairs:
        rated = read_word_pairs(path)
        left, right, kept = one_piece_pairs(rated, find)
        share = f"{len(kept):,} of {len(rated):,} pairs are two one-piece words"
        if len(kept) < 2:
            raise InputError(f"{path}: {share} in the vocabulary; {_OTHER_DATA}")
        key = Key(path.stem, SPEARMAN)
        pairs[key], gold[key] = (left, right), np.array([pair.similarity for pair in kept])
        notes[path.stem] = f"{path.stem}: {share}; the others are left out."

    def correlations(loaded: Loaded) -> dict[Key, np.ndarray]:
        embeddings = input_word_embeddings(loaded.model).weight.detach().float().cpu()
        found = {
            key: 1 - objectives.soft_regularization(embeddings[left], embeddings[right]).numpy()  # cosines
            for key, (left, right) in pairs.items()
        }
        return found | {
            Key("word embeddings", MEAN_COSINE): np.array([mean_cosine(embeddings[torch.tensor(list(words))])])
        }

    if pairs:
        measures.append(correlations)

    if sources.blimp is not None:
        stem = sources.blimp.stem
        minimal_pairs = read_blimp(sources.blimp, sources.blimp_pairs)
        members = by_group(minimal_pairs)
        files = sum(kind == " by paradigm" for kind, _ in members)
        notes[stem] = f"{len(minimal_pairs):,} pairs of {files} paradigms, at most {sources.blimp_pairs:,} of each."

        def accuracies(loaded: Loaded) -> dict[Key, np.ndarray]:
            found = prefers_good(loaded, minimal_pairs, tokenizer, lookup)
            return {Key(stem, ACCURACY + kind, part): found[numbers] for (kind, part), numbers in members.items()}

        measures.append(accuracies)
    return measures, gold, notes
