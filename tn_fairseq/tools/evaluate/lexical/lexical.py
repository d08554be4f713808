"""The report: reads the data, measures tables and checkpoints, and writes all files together at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from fairseq.data import Dictionary
from torch import Tensor

from ....core.configuration import check_data_folder
from ....core.dictionary import load_dictionary
from ....core.errors import InputError
from ....core.synonym_table import load_synonym_tables
from ....core.vocabulary import whole_words, word_finder
from ....models.loading import Checkpoint, check_masked_lm, find_checkpoints, load
from ....synonyms.swords import read_swords
from ...results.compare import compare
from ...results.report import FILES, list_files, page_of, report_folder, write_report
from ...results.show import show, show_arms
from ...results.table import join, table_of
from ..finetuning import check_baseline, default_name, split_name
from .lexical_options import LexicalOptions
from .parts import BY_PARADIGM, NO_TARGET, OTHER_DATA, Part, Words, parts_of, swords_name
from .tables import judge_rows, table_rows

INTERVALS = (
    "The intervals are 95% bootstrap intervals over targets, word pairs or pairs of sentences; differences are paired. "
    "Several checkpoints with one name are seeds, which are resampled too. With one seed, the interval does not cover "
    "the spread over seeds, and with few seeds it is too narrow."
)


@dataclass(frozen=True)
class Inputs:
    """What the options name."""

    vocabulary: Words
    tables: Mapping[str, Tensor]  # int32 (V, columns)
    parts: Sequence[Part]
    groups: Mapping[str, Sequence[Checkpoint]]  # the seeds of each name
    judge: Checkpoint | None


def evaluate_lexical(options: LexicalOptions) -> str:
    """Measure the tables and the checkpoints, write FILES to the output, and return the text to print.

    Raises InputError before anything runs for data, a table or a checkpoint that is invalid or does not fit the
    dictionary, and for an output that cannot be written.
    """
    inputs = read_inputs(options)
    with report_folder(options.output, FILES, "words") as folder:
        of_tables, of_checkpoints = measure_tables(options, inputs), measure_all(options, inputs)
        tables = compare(of_tables)
        checkpoints = compare(of_checkpoints, options.baseline, how="items")
        comparisons = pd.concat([one for one in (tables, checkpoints) if len(one)], ignore_index=True)
        shown = checkpoints[checkpoints["measure"] != BY_PARADIGM]
        notes = {"tables": [], "checkpoints": [note for part in inputs.parts for note in part.notes]}
        if len(tables):
            find, targets = word_finder(inputs.vocabulary.words), inputs.vocabulary.targets
            left_out = sum(find(target.word) is None for target in targets)
            notes["tables"].append(f"{left_out:,} of {len(targets):,} targets are not one piece and left out.")
            notes["tables"].append('"by spelling" counts only synonyms that are spelled like the judged lemma.')
        if inputs.judge is not None:
            notes["tables"].append('"judge 0.5" has the synonyms with a score of at least 0.5, "no judge" all.')
        if len(checkpoints):
            notes["checkpoints"].append(INTERVALS)
        if options.baseline is not None:
            notes["checkpoints"].append(f"The baseline is {options.baseline}.")
        lead = [*notes["tables"], *notes["checkpoints"]]
        html = page_of("Words", lead, comparisons[comparisons["measure"] != BY_PARADIGM])
        write_report(folder, "words", join(of_tables, of_checkpoints), comparisons, html, {"data": str(options.data)})
    blocks = [show_arms(tables, notes["tables"])] if len(tables) else []
    blocks += [show(shown, notes["checkpoints"])] if len(shown) else []
    return "\n\n".join([*blocks, list_files(options.output, FILES)])


def lexical_rows(options: LexicalOptions) -> pd.DataFrame:
    """The measures of the checkpoints as a table of results; writes nothing, and raises InputError as the report."""
    return measure_all(options, read_inputs(options))


def read_inputs(options: LexicalOptions) -> Inputs:
    """Read what the options name; raises InputError for what is invalid or does not fit the dictionary."""
    if options.checkpoints and not (options.swords or options.word_pairs or options.blimp):
        raise InputError("nothing to measure the checkpoints with; give --swords, --word-pairs or --blimp")
    names = [path.stem for path in (*options.word_pairs, *([options.blimp] if options.blimp else []))]
    names += [swords_name(options.swords)] if options.swords else []
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two files are named {name}; rename one, because results have these names")
    check_data_folder(options.data)
    dictionary = load_dictionary(options.data / "dict.txt")
    targets = [] if options.swords is None else read_swords(options.swords)
    vocabulary = Words(dictionary, whole_words(dictionary, options.encoder_json), targets)
    loaded = load_synonym_tables(options.synonym_table, dictionary)
    tables = {name: table.synonyms for name, table in loaded.items()}
    find = word_finder(vocabulary.words)
    if tables and all(find(target.word) is None for target in targets):
        raise InputError(f"{options.swords}: {NO_TARGET} of {options.data}; {OTHER_DATA}")
    parts = parts_of(options, vocabulary, tables)
    groups = find_groups(options.checkpoints, dictionary, options.baseline)
    judge = None if options.judge is None else check_masked_lm(options.judge, dictionary)
    return Inputs(vocabulary, tables, parts, groups, judge)


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


def measure_tables(options: LexicalOptions, inputs: Inputs) -> pd.DataFrame:
    """The rows of the synonym tables, also as the judge filters them if there is one."""
    vocabulary = inputs.vocabulary
    rows = [
        row
        for name, table in inputs.tables.items()
        for row in table_rows(name, table, vocabulary.targets, vocabulary.words)
    ]
    if inputs.judge is not None:
        judge = load(inputs.judge, options.data)
        rows += judge_rows(judge, options.data, vocabulary.targets, inputs.tables, vocabulary.words)
    return table_of(rows, data=swords_name(options.swords) if options.swords else "")


def measure_all(options: LexicalOptions, inputs: Inputs) -> pd.DataFrame:
    """The rows of all seeds of the checkpoints, loaded one at a time, and of people's similarities of word pairs."""
    tables = []
    for name, group in inputs.groups.items():
        for seed, checkpoint in enumerate(group, start=1):
            loaded = load(checkpoint, options.data)
            updates = "" if checkpoint.updates is None else str(checkpoint.updates)
            try:
                rows = [row for part in inputs.parts for row in part.measure(loaded)]
            except InputError as error:
                raise InputError(f"{checkpoint.path}: {error}") from None
            tables.append(table_of(rows, arm=name, checkpoint=updates, seed=seed))
    return join(*tables, table_of(row for part in inputs.parts for row in part.people))
