"""The report: runs the analysis, and writes all files together at the end."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor
from tqdm import tqdm

from ...core.configuration import check_data_folder
from ...core.dictionary import load_dictionary
from ...core.errors import InputError
from ...core.synonym_table import load_synonym_table
from ...core.vocabulary import STOP_WORDS, surface_forms, whole_words
from ...huggingface.masked_lm import find_folders
from ...models.electra import ElectraModel
from ...models.loading import Checkpoint, check_masked_lm, find_checkpoints, load_ours
from ...synonyms.inflection import relation
from ..reporting.layout import table_names, write_csv, write_json
from ..reporting.report_folder import draw_if_possible, list_files, report_folder
from ..reporting.training_log import loss_points
from .case_page import Case, TeacherCase, case_page, cases_json
from .cases import TeacherCollector, Wording
from .compared_sources import source_rows, sources_table
from .counting import CountingOptions, Details, Tables, count_checkpoint, load_teacher
from .pairs import COLUMNS, pair_rows
from .parts_of_speech import part_of_speech_in
from .predictions import Teacher
from .rate_plots import draw_training
from .rates import Row, by_mask_seed, rate_row, rates_table

RATES_CSV, RATES_JSON, SOURCES, PAIRS = "false_negatives.csv", "false_negatives.json", "sources.csv", "pairs.csv"
PLOTS, PAGE, CASES = ("training.png", "training.svg"), "cases.html", "cases.json"
FILES = {
    RATES_CSV: "rates of false negatives for each checkpoint and table",
    RATES_JSON: "the same rates, also of each masking",
    PLOTS[0]: "the rates over training",
    PLOTS[1]: "the rates over training",
    SOURCES: "comparison of the tables: their contents, and how often they fire",
    PAIRS: "the most frequent pairs of gold and predicted word: corrected, and possibly missed",
    CASES: "the cases with their sentences",
    PAGE: "rates, losses and cases on one page for a browser",
}


@dataclass(frozen=True, kw_only=True)
class AnalysisOptions(CountingOptions):
    """What to analyze with which synonym tables, how, and the folder of the report."""

    synonym_table: Sequence[Path]  # at least one
    output: Path
    path: Sequence[str] = ()  # checkpoints of fairseq-train, or patterns
    model: Sequence[str] = ()  # folders of transformers, or patterns
    training_log: Sequence[Path] = ()
    max_cases: int = 200  # corrections and near misses per table, and cases of the teacher
    teacher: Path | None = None  # another model, which judges the wrong predictions
    encoder_json: Path | None = None  # GPT-2's, for a dictionary of numbers
    paper: bool = False  # show the paper's Table 2, too


@dataclass(frozen=True)
class Symbols:
    """A dictionary's symbols as a reader sees them."""

    forms: Sequence[str]  # in a text, with the space before a word
    labels: Sequence[str]  # alone
    is_content: Tensor  # (V) boolean: whole words, but no stop words


def analyze(options: AnalysisOptions) -> str:
    """Analyze the checkpoints, write FILES to the output, and return the text to print.

    Cases, pairs and the comparison of tables are for the checkpoint trained longest. Raises InputError before anything
    runs for a table, a checkpoint or a teacher that does not fit the data, and for an output that cannot be written.
    """
    check_data_folder(options.data_bin)
    dictionary = load_dictionary(options.data_bin / "dict.txt")
    symbols = symbols_of(dictionary, options.encoder_json)
    paths = dict(zip(table_names(options.synonym_table), options.synonym_table))
    loaded = {name: load_synonym_table(path, dictionary) for name, path in paths.items()}
    tables = Tables({name: one.synonyms for name, one in loaded.items()}, next(iter(loaded.values())).continues_word)
    descriptions = {name: table.description for name, table in loaded.items()}
    checkpoints = find_all(options, dictionary)
    logs = options.training_log
    curves = [{"name": name, "points": loss_points(log)} for name, log in zip(table_names(logs), logs)]
    shown = max(checkpoints, key=lambda checkpoint: checkpoint.updates or 0)
    teacher = teacher_collector = None
    if options.teacher is not None:
        teacher_checkpoint = find_teacher(options.teacher, dictionary, options.data_bin)
        teacher = load_teacher(teacher_checkpoint, checkpoints, options, tables.synonyms)
        teacher_collector = TeacherCollector(
            str(options.teacher), tables.synonyms, symbols.is_content, options.max_cases
        )
    details = Details(tables.synonyms, options.max_cases, teacher_collector)

    with report_folder(options.output, FILES) as folder:
        rates = write_rates(checkpoints, options, tables, {shown: details}, teacher, folder)
        shown_rows = [row for row in rates if row["checkpoint"] == str(shown.path)]
        totals = shown_rows[0]["masked"], shown_rows[0]["mismatches"]
        sources = source_rows(tables.synonyms, descriptions, details.fired, *totals)
        write_csv(sources, folder / SOURCES)
        pairs, cases = pairs_and_cases(details, tables.synonyms, descriptions, symbols)
        write_csv(pairs, folder / PAIRS, COLUMNS)
        named = None if teacher is None else str(options.teacher)
        page = case_page(str(shown.path), shown.updates, options.split, shown_rows, cases, rates, curves, named)
        (folder / PAGE).write_text(page, encoding="utf-8")
        (folder / CASES).write_text(cases_json(cases), encoding="utf-8")
    compared = f"synonym tables, and how often they fire for {shown.path}"
    blocks = [rates_table(rates, options.paper), f"{compared}\n{sources_table(sources)}"]
    return "\n\n".join([*blocks, "\n".join(list_files(options.output, FILES))])


def find_all(options: AnalysisOptions, dictionary: Dictionary) -> list[Checkpoint]:
    """The checkpoints and folders; raises InputError as their functions do, and for one without a discriminator."""
    checkpoints = find_checkpoints(options.path, dictionary)
    checkpoints += find_folders(options.model, dictionary, options.data_bin)
    for checkpoint in checkpoints if options.detection else ():
        if checkpoint.path.is_dir() or not issubclass(load_ours(checkpoint.path)[1], ElectraModel):
            raise InputError(f"--detection: {checkpoint.path} has no discriminator; leave the option out")
    return checkpoints


def write_rates(
    checkpoints: Sequence[Checkpoint],
    options: CountingOptions,
    tables: Tables,
    details: Mapping[Checkpoint, Details],
    teacher: Teacher | None,
    folder: Path,
) -> list[Row]:
    """Count the false negatives of all checkpoints, write their rates and the plots, and return the rows.

    Adds to the ``details`` of a checkpoint that has them.
    """
    rates: list[Row] = []
    by_seed: list[dict[str, list[float]]] = []
    has_teacher = teacher is not None
    for number, checkpoint in enumerate(checkpoints, start=1):
        title = f"{checkpoint.path.name} ({number}/{len(checkpoints)})"
        with tqdm(desc=title, unit=" sequences", leave=False, disable=None) as progress:
            counted = count_checkpoint(checkpoint, options, tables, details.get(checkpoint), progress, teacher)
        about = str(checkpoint.path), checkpoint.updates
        rates += [
            rate_row(*about, table, counts, options.detection, has_teacher) | cosines
            for table, (counts, cosines) in zip(tables.synonyms, counted)
        ]
        by_seed += [by_mask_seed(counts, options.detection, has_teacher) for counts, _ in counted]
    write_csv(rates, folder / RATES_CSV)
    write_json([{**row, "by_mask_seed": values} for row, values in zip(rates, by_seed)], folder / RATES_JSON)
    draw_if_possible(draw_training, rates, [folder / name for name in PLOTS])
    return rates


def find_teacher(path: Path, dictionary: Dictionary, data_bin: Path) -> Checkpoint:
    """The teacher, a file or a folder; raises InputError as ``check_masked_lm`` and ``find_folders``."""
    return find_folders([str(path)], dictionary, data_bin)[0] if path.is_dir() else check_masked_lm(path, dictionary)


def content_words(dictionary: Dictionary, encoder_json: Path | None) -> Tensor:
    """Which symbols are whole words, but no stop words: (V) boolean."""
    words = whole_words(dictionary, encoder_json)
    content = {index for index, word in words.items() if word.lower() not in STOP_WORDS}
    return torch.tensor([index in content for index in range(len(dictionary))])


def symbols_of(dictionary: Dictionary, encoder_json: Path | None) -> Symbols:
    """The symbols of a dictionary; ``encoder_json`` is GPT-2's, for a dictionary of numbers."""
    forms = surface_forms(dictionary, encoder_json)
    labels = [form.strip() if form.startswith(" ") else symbol for form, symbol in zip(forms, dictionary.symbols)]
    return Symbols(forms, labels, content_words(dictionary, encoder_json))


def pairs_and_cases(
    details: Details, tables: Mapping[str, Tensor], descriptions: Mapping[str, Mapping[str, str]], symbols: Symbols
) -> tuple[list[dict[str, Any]], list[Case | TeacherCase]]:
    """The rows of the most frequent pairs, and the cases of all tables; ``descriptions`` are theirs."""
    languages = {
        name: json.loads(description.get("options", "{}")).get("lang", "eng")
        for name, description in descriptions.items()
    }
    # inflections are known only for English
    pair_inflection = relation if {*languages.values()} == {"eng"} else _unknown
    pairs = pair_rows(
        details.wrong, tables, details.word_embeddings, symbols.is_content, symbols.labels, pair_inflection
    )
    parts_of_speech = {language: part_of_speech_in(language) for language in dict.fromkeys(languages.values())}
    cases: list[Case | TeacherCase] = []
    for collector in details.collectors:
        language = languages[collector.name]
        inflection = relation if language == "eng" else _unknown
        cases += collector.cases(Wording(symbols.forms, symbols.labels, parts_of_speech[language], inflection))
    if details.teacher_collector is not None:
        part_of_speech = next(iter(parts_of_speech.values()))
        wording = Wording(symbols.forms, symbols.labels, part_of_speech, pair_inflection)
        cases += details.teacher_collector.cases(wording)
    return pairs, cases


def _unknown(word: str, other: str) -> str:
    return ""
