"""The report: runs the analysis, and writes all files together at the end."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from fairseq.data import Dictionary
from torch import Tensor
from tqdm import tqdm

from ...core.configuration import check_data_folder
from ...core.dictionary import load_dictionary
from ...core.errors import InputError
from ...core.synonym_table import Table, load_synonym_tables, names_of
from ...core.vocabulary import STOP_WORDS, surface_forms, whole_words
from ...huggingface.masked_lm_folder import find_folders
from ...models.electra import ElectraModel
from ...models.loading import Checkpoint, check_masked_lm, find_checkpoints, load_ours
from ...synonyms.inflection import relation
from ..results import plot
from ..results.compare import compare
from ..results.layout import shorten
from ..results.measures import TABLES, measure_of
from ..results.report import FILES as RESULTS
from ..results.report import Section, list_files, page_of, report_folder, write_report
from ..results.show import show, show_arms
from ..results.table import join, table_of
from ..training_log import loss_points
from .analysis_options import AnalysisOptions
from .case_page import Case, TeacherCase, case_page, cases_json
from .cases import TeacherCollector, Wording
from .compared_tables import source_rows, table_rows
from .counting import Details, count_checkpoint, load_teacher
from .pairs import COLUMNS, pair_rows
from .parts_of_speech import part_of_speech_in
from .predictions import Teacher

SOURCES, PAIRS, CASE_PAGE, CASES = "sources.csv", "pairs.csv", "cases.html", "cases.json"
FILES = {
    **RESULTS,
    SOURCES: "comparison of the tables: their contents, and how often they fire",
    PAIRS: "the most frequent pairs of gold and predicted word: corrected, and possibly missed",
    CASES: "the cases with their sentences",
    CASE_PAGE: "rates, losses and cases on one page for a browser",
}
OVER_TRAINING = ("accuracy", "prediction_rate")
INTERVALS = (
    "The seeds are maskings of the same text. The intervals are Student's over them, so they cover only the choice of "
    "masked tokens: other text or another training run would add to it. They are 0 if all maskings give the same."
)


@dataclass(frozen=True)
class Symbols:
    """A dictionary's symbols as a reader sees them."""

    forms: Sequence[str]  # in a text, with the space before a word
    labels: Sequence[str]  # alone
    is_content: Tensor  # (V) boolean: whole words, but no stop words


@dataclass(frozen=True)
class Inputs:
    """What the options name."""

    dictionary: Dictionary
    tables: Mapping[str, Table]
    checkpoints: Sequence[Checkpoint]
    teacher: Teacher | None


def analyze(options: AnalysisOptions) -> str:
    """Analyze the checkpoints, write FILES to the output, and return the text to print.

    Cases, pairs and the comparison of tables are for the checkpoint trained longest. Raises InputError before anything
    runs for a table, a checkpoint or a teacher that does not fit the data, and for an output that cannot be written.
    """
    inputs = read_inputs(options)
    symbols = symbols_of(inputs.dictionary, options.encoder_json)
    synonyms = {name: table.synonyms for name, table in inputs.tables.items()}
    descriptions = {name: table.description for name, table in inputs.tables.items()}
    curves = [{"name": name, "points": loss_points(log)} for name, log in names_of(options.training_log).items()]
    shown = max(inputs.checkpoints, key=lambda checkpoint: checkpoint.updates or 0)
    teacher = None if options.teacher is None else str(options.teacher)
    collector = TeacherCollector(teacher, synonyms, symbols.is_content, options.max_cases) if teacher else None
    details = Details(synonyms, options.max_cases, collector)

    with report_folder(options.output, FILES, "false negatives") as folder:
        table = count_all(options, inputs, {shown: details})
        of_shown = table[(table["arm"] == str(shown.path)) & table["part"].eq("")].groupby("measure")["value"].sum()
        totals = int(of_shown["masked"]), int(of_shown["mismatches"])
        sources = source_rows(synonyms, descriptions, details.fired, *totals)
        pd.DataFrame(sources).to_csv(folder / SOURCES, index=False, float_format="%.7g", lineterminator="\n")
        table = join(table, table_of(table_rows(sources), data=options.split))
        comparisons = compare(table)
        shown_comparisons = comparisons.assign(
            sd=math.nan, median=math.nan, best=math.nan
        )  # the best masking is chance
        pairs, cases = pairs_and_cases(details, inputs.tables, symbols)
        pair_table = pd.DataFrame(pairs, columns=list(COLUMNS))
        pair_table.to_csv(folder / PAIRS, index=False, float_format="%.7g", lineterminator="\n")
        rates = figures(table, comparisons, inputs.checkpoints, list(synonyms))
        html = case_page(str(shown.path), shown.updates, options.split, cases, rates, curves, teacher)
        (folder / CASE_PAGE).write_text(html, encoding="utf-8")
        (folder / CASES).write_text(cases_json(cases), encoding="utf-8")
        notes = [INTERVALS] if options.mask_seeds > 1 else []
        notes.append(f"In {shown.path}, {totals[1]:,} of {totals[0]:,} masked tokens were predicted incorrectly.")
        plots = {
            label: plot.lines(lines, list(lines), label, points=True) for label, lines in over_training(table).items()
        }
        sections = [Section("Over training", plots=plots)] if plots else []
        lead = [f"Masked words of the split {options.split} of {options.data_bin}.", *notes]
        html = page_of("False negatives", lead, shown_comparisons, sections)
        about = {"data": str(options.data_bin), "split": options.split, "teacher": teacher, "tables": descriptions}
        write_report(folder, "false negatives", table, comparisons, html, about)
    measures = shown_comparisons["measure"].map(measure_of)
    printed = shown_comparisons[[measure.group != TABLES and not measure.detail for measure in measures]]
    of_tables = shown_comparisons[[measure.group == TABLES for measure in measures]]
    blocks = [show(printed, notes), show_arms(of_tables), list_files(options.output, FILES)]
    return "\n\n".join(blocks)


def analyze_rows(options: AnalysisOptions) -> pd.DataFrame:
    """The rates of each checkpoint as a table of results; writes nothing, and raises InputError as ``analyze``."""
    return count_all(options, read_inputs(options), {})


def read_inputs(options: AnalysisOptions) -> Inputs:
    """Read what the options name; raises InputError for what does not fit the data."""
    check_data_folder(options.data_bin)
    dictionary = load_dictionary(options.data_bin / "dict.txt")
    tables = load_synonym_tables(options.synonym_table, dictionary)
    checkpoints = find_checkpoints(options.path, dictionary)
    checkpoints += find_folders(options.model, dictionary, options.data_bin)
    for checkpoint in checkpoints if options.detection else ():
        if checkpoint.path.is_dir() or not issubclass(load_ours(checkpoint.path)[1], ElectraModel):
            raise InputError(f"--detection: {checkpoint.path} has no discriminator; leave the option out")
    teacher, path = None, options.teacher
    if path is not None:
        folders = find_folders([str(path)] if path.is_dir() else [], dictionary, options.data_bin)
        found = folders[0] if folders else check_masked_lm(path, dictionary)
        synonyms = {name: table.synonyms for name, table in tables.items()}
        teacher = load_teacher(found, checkpoints, options, synonyms)
    return Inputs(dictionary, tables, checkpoints, teacher)


def count_all(options: AnalysisOptions, inputs: Inputs, details: Mapping[Checkpoint, Details]) -> pd.DataFrame:
    """The rows of all checkpoints, named by their paths; adds to the ``details`` of a checkpoint that has them."""
    tables = []
    for number, checkpoint in enumerate(inputs.checkpoints, start=1):
        title = f"{checkpoint.path.name} ({number}/{len(inputs.checkpoints)})"
        with tqdm(desc=title, unit=" sequences", leave=False, disable=None) as progress:
            rows = count_checkpoint(
                checkpoint, options, inputs.tables, details.get(checkpoint), progress, inputs.teacher
            )
        updates = "" if checkpoint.updates is None else str(checkpoint.updates)
        tables.append(table_of(rows, arm=str(checkpoint.path), checkpoint=updates, data=options.split))
    return join(*tables)


def figures(
    table: pd.DataFrame, comparisons: pd.DataFrame, checkpoints: Sequence[Checkpoint], tables: Sequence[str]
) -> list[dict[str, Any]]:
    """For each checkpoint and table, the mean of each rate with its interval, and counts summed over the maskings."""
    rows = []
    for checkpoint in checkpoints:
        for name in tables:
            row: dict[str, Any] = {"checkpoint": str(checkpoint.path), "updates": checkpoint.updates, "table": name}
            values, rates = (
                one[(one["arm"] == str(checkpoint.path)) & one["part"].isin(["", name])] for one in (table, comparisons)
            )
            for rate in rates.to_dict("records"):
                ends = (None if math.isnan(rate[end]) else rate[end] for end in ("low", "high"))
                row |= dict(
                    zip(
                        (rate["measure"], *(f"{rate['measure']}_{end}" for end in ("low", "high"))),
                        (rate["value"], *ends),
                    )
                )
            sums = values.groupby("measure")["value"].sum()
            row |= {count: int(sums[count]) for count in ("sequences", "masked", "mismatches", "corrected")}
            rows.append(row | {"mask_seeds": int(values["seed"].max())})
    return rows


def over_training(table: pd.DataFrame) -> dict[str, dict[str, tuple[list[int], list[float]]]]:
    """The updates and the means of OVER_TRAINING, by label, and then by folder and synonym table if there are several.

    Empty if all checkpoints have the same number of updates.
    """
    known = table[table["checkpoint"] != ""]
    known = known.assign(updates=known["checkpoint"].astype(int), run=[str(Path(arm).parent) for arm in known["arm"]])
    if known["updates"].nunique() < 2:
        return {}
    found: dict[str, dict[str, tuple[list[int], list[float]]]] = {}
    for measure in OVER_TRAINING:
        rows = known[known["measure"] == measure]
        several = [column for column in ("run", "part") if rows[column].nunique() > 1]
        lines = found[measure_of(measure).titled()] = {}
        for (run, part), line in rows.groupby(["run", "part"], sort=False):
            names = {"run": shorten(run, 40), "part": part}
            means = line.groupby("updates")["value"].mean()
            name = ", ".join(names[column] for column in several)
            lines[name] = list(means.index), list(means)
    return found


def symbols_of(dictionary: Dictionary, encoder_json: Path | None) -> Symbols:
    """The symbols of a dictionary; ``encoder_json`` is GPT-2's, for a dictionary of numbers."""
    forms = surface_forms(dictionary, encoder_json)
    labels = [form.strip() if form.startswith(" ") else symbol for form, symbol in zip(forms, dictionary.symbols)]
    words = whole_words(dictionary, encoder_json)
    is_content = [index in words and words[index].lower() not in STOP_WORDS for index in range(len(dictionary))]
    return Symbols(forms, labels, torch.tensor(is_content))


def pairs_and_cases(
    details: Details, tables: Mapping[str, Table], symbols: Symbols
) -> tuple[list[dict[str, Any]], list[Case | TeacherCase]]:
    """The rows of the most frequent pairs, and the cases of all tables."""
    languages = {
        name: json.loads(table.description.get("options", "{}")).get("lang", "eng") for name, table in tables.items()
    }
    wordings = {
        language: Wording(
            symbols.forms,
            symbols.labels,
            part_of_speech_in(language),
            relation if language == "eng" else _unknown,  # inflections are known only for English
        )
        for language in dict.fromkeys(languages.values())
    }
    of_all = next(iter(wordings.values()))._replace(inflection=relation if set(wordings) == {"eng"} else _unknown)
    synonyms = {name: table.synonyms for name, table in tables.items()}
    pairs = pair_rows(
        details.wrong, synonyms, details.word_embeddings, symbols.is_content, symbols.labels, of_all.inflection
    )
    cases: list[Case | TeacherCase] = []
    for collector in details.collectors:
        cases += collector.cases(wordings[languages[collector.name]])
    if details.teacher_collector is not None:
        cases += details.teacher_collector.cases(of_all)
    return pairs, cases


def _unknown(word: str, other: str) -> str:
    return ""
