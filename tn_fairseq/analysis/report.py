"""The report: runs the analysis, and writes all files together at the end."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from fairseq.data import Dictionary
from tqdm import tqdm

from ..configuration import check_data_folder
from ..dictionary import load_dictionary
from ..errors import InputError
from ..files import publish, write_folder
from ..models.loading import find_checkpoints
from ..reporting.layout import table_names
from ..synonym_table import load_synonym_table, read_description
from ..synonyms.inflection import relation
from ..synonyms.wordnet import FETCH, find_wordnet
from ..vocabulary import STOP_WORDS, continues_word, surface_forms, whole_words
from .counting import Details, Options, count_checkpoint
from .page import Case, case_page
from .pairs import pair_rows, write_pairs
from .parts_of_speech import UNKNOWN, part_of_speech
from .plot import draw_training
from .rates import Evaluated, rates_table, rows, write_rates
from .sources import source_rows, sources_table, write_sources

RATES_CSV, RATES_JSON, SOURCES, PAIRS = "false_negatives.csv", "false_negatives.json", "sources.csv", "pairs.csv"
PLOTS, PAGE, CASES = ("training.png", "training.svg"), "cases.html", "cases.json"
FILES = {
    RATES_CSV: "rates of false negatives for each checkpoint and table",
    RATES_JSON: "the same rates",
    PLOTS[0]: "the rates over training",
    PLOTS[1]: "the rates over training",
    SOURCES: "comparison of the tables: their contents, and how often they fire",
    PAIRS: "the most frequent pairs of gold and predicted word: corrected, and possibly missed",
    CASES: "the cases with their sentences",
    PAGE: "the same cases for a browser",
}


def write_report(
    options: Options,
    checkpoint_names: Sequence[str],
    table_paths: Sequence[Path],
    output: Path,
    max_cases: int,
    show_paper: bool,
    encoder_json: Path | None,
) -> str:
    """Analyze the checkpoints, write FILES to ``output``, and return the text to print.

    Cases, pairs and the comparison of tables are for the checkpoint trained longest. Raises InputError before anything
    runs for a table or a checkpoint that does not fit the data, and for an output that cannot be written.
    """
    check_data_folder(options.data_bin)
    dictionary = load_dictionary(options.data_bin / "dict.txt")
    forms = surface_forms(dictionary, encoder_json)
    continuations = torch.tensor(continues_word(dictionary, encoder_json))
    names = table_names(table_paths)
    tables = {name: load_synonym_table(path, dictionary) for name, path in zip(names, table_paths)}
    descriptions = {name: read_description(path) for name, path in zip(names, table_paths)}
    checkpoints = find_checkpoints(checkpoint_names, dictionary)
    shown = max(checkpoints, key=lambda checkpoint: checkpoint.updates or 0)
    details = Details(tables, max_cases)

    with write_folder(output, "--output") as folder:
        evaluated = []
        for number, checkpoint in enumerate(checkpoints, start=1):
            title = f"{checkpoint.path.name} ({number}/{len(checkpoints)})"
            with tqdm(desc=title, unit=" sequences", leave=False, disable=None) as progress:
                counts = count_checkpoint(
                    checkpoint, options, tables, continuations, details if checkpoint is shown else None, progress
                )
            path = str(checkpoint.path)
            evaluated += [Evaluated(path, checkpoint.updates, *found) for found in zip(tables, counts)]
        rates = rows(evaluated)
        write_rates(rates, folder / RATES_CSV, folder / RATES_JSON)
        try:
            draw_training(rates, *(folder / name for name in PLOTS))
        except InputError as error:  # no matplotlib
            print(f"{' and '.join(PLOTS)} are not written: {error}", file=sys.stderr)

        of_shown = [row for row in rates if row["checkpoint"] == str(shown.path)]
        totals = of_shown[0]
        sources = source_rows(tables, descriptions, details.fired, totals["masked"], totals["mismatches"])
        write_sources(sources, folder / SOURCES)
        labels = [form.strip() if form.startswith(" ") else symbol for form, symbol in zip(forms, dictionary.symbols)]
        is_word = _content_words(dictionary, encoder_json)
        languages = {
            name: json.loads(description.get("options", "{}")).get("lang", "eng")
            for name, description in descriptions.items()
        }
        # inflections are known only for English
        inflections = {language: relation if language == "eng" else _unknown for language in languages.values()}
        of_pairs = relation if list(inflections) == ["eng"] else _unknown
        write_pairs(
            pair_rows(details.pairs, tables, details.word_embeddings, is_word, labels, of_pairs), folder / PAIRS
        )
        parts_of_speech = {language: _part_of_speech(language) for language in dict.fromkeys(languages.values())}
        cases = [
            case
            for collector in details.collectors
            for language in [languages[collector.name]]
            for case in collector.cases(forms, labels, parts_of_speech[language], inflections[language])
        ]
        page = case_page(str(shown.path), shown.updates, options.split, of_shown, cases)
        (folder / PAGE).write_text(page, encoding="utf-8")
        (folder / CASES).write_text(_cases_json(cases), encoding="utf-8")
        # delete the files of an earlier report, so that two reports do not mix
        publish(folder, output, last=PAGE, old=[output / name for name in FILES])
    files = [f"  {output / name}  {what}" for name, what in FILES.items() if (output / name).exists()]
    return "\n".join(
        [
            rates_table(rates, show_paper),
            "",
            f"synonym tables, and how often they fire for {shown.path}",
            sources_table(sources),
            "",
            *files,
        ]
    )


def _cases_json(cases: Sequence[Case]) -> str:
    """A JSON list with one line per case: an object with the fields of ``Case``."""
    lines = [json.dumps({**case._asdict(), "synonyms": dict(case.synonyms)}, ensure_ascii=False) for case in cases]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _content_words(dictionary: Dictionary, encoder_json: Path | None) -> torch.Tensor:
    """Which entries are whole words but not stop words: (V) boolean."""
    is_word = torch.zeros(len(dictionary), dtype=torch.bool)
    words = whole_words(dictionary, encoder_json)
    is_word[[index for index, word in words.items() if word.lower() not in STOP_WORDS]] = True
    return is_word


def _unknown(word: str, other: str) -> str:
    return ""


def _part_of_speech(language: str) -> Callable[[str, str], str]:
    """A function that gives parts of speech in a language; always ``unknown`` if NLTK has no WordNet for it."""
    reason = (
        f"NLTK has no WordNet; get it with {FETCH}"
        if language == "eng"
        else f"NLTK has no WordNet of {language}; build a synonym table with --source wordnet --lang {language} first"
    )
    try:
        reader = find_wordnet(language)
    except InputError as error:
        reader, reason = None, error
    if reader is None:
        print(f"parts of speech are {UNKNOWN}: {reason}", file=sys.stderr)
        return lambda word, other: UNKNOWN
    return lambda word, other: part_of_speech(reader, word, other, language)
