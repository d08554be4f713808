"""The report: what is counted, and the files that appear together when all is done."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from fairseq.data import Dictionary
from tqdm import tqdm

from ..configuration import check_data_folder
from ..dictionary import load_dictionary
from ..errors import InputError
from ..synonyms.table import load_synonym_table, read_description
from ..synonyms.vocabulary import STOP_WORDS, surface_forms, whole_words
from .checkpoints import find_checkpoints
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
    RATES_CSV: "how often the predictions of each checkpoint are false negatives, by each table",
    RATES_JSON: "the same",
    PLOTS[0]: "the same over training",
    PLOTS[1]: "the same over training",
    SOURCES: "the tables compared: what they hold, and how often they fire",
    PAIRS: "the most frequent pairs of gold and predicted word: corrected, and perhaps missed",
    CASES: "the cases in their sentences",
    PAGE: "the same, for a browser",
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
    """Analyse the checkpoints, write FILES to ``output``, and return what to print.

    Cases, pairs and firing tables are those of the checkpoint that was trained longest. Raises InputError before
    anything runs for a table or a checkpoint that does not fit the data, and for an output that cannot be written.
    """
    check_data_folder(options.data_bin)
    dictionary = load_dictionary(options.data_bin / "dict.txt")
    forms = surface_forms(dictionary, encoder_json)
    names = _table_names(table_paths)
    tables = {name: load_synonym_table(path, dictionary) for name, path in zip(names, table_paths)}
    descriptions = {name: read_description(path) for name, path in zip(names, table_paths)}
    checkpoints = find_checkpoints(checkpoint_names, dictionary)
    shown = max(checkpoints, key=lambda checkpoint: checkpoint.updates or 0)
    details = Details(tables, max_cases)

    with _staging(output) as folder:
        evaluated = []
        for number, checkpoint in enumerate(checkpoints, start=1):
            title = f"{checkpoint.path.name} ({number}/{len(checkpoints)})"
            with tqdm(desc=title, unit=" sequences", leave=False, disable=None) as progress:
                counts = count_checkpoint(
                    checkpoint, options, tables, details if checkpoint is shown else None, progress
                )
            path = str(checkpoint.path)
            evaluated += [Evaluated(path, checkpoint.updates, *found) for found in zip(tables, counts)]
        rates = rows(evaluated)
        write_rates(rates, folder / RATES_CSV, folder / RATES_JSON)
        try:
            draw_training(rates, *(folder / name for name in PLOTS))
        except InputError as error:  # no matplotlib
            print(f"{' and '.join(PLOTS)} are left out: {error}", file=sys.stderr)

        of_shown = [row for row in rates if row["checkpoint"] == str(shown.path)]
        totals = of_shown[0]
        sources = source_rows(tables, descriptions, details.fired, totals["masked"], totals["mismatches"])
        write_sources(sources, folder / SOURCES)
        labels = [form.strip() if form.startswith(" ") else symbol for form, symbol in zip(forms, dictionary.symbols)]
        is_word = _content_words(dictionary, encoder_json)
        write_pairs(pair_rows(details.pairs, tables, details.word_embeddings, is_word, labels), folder / PAIRS)
        cases = [
            case
            for collector in details.collectors
            for case in collector.cases(forms, labels, _part_of_speech(descriptions[collector.name]))
        ]
        page = case_page(str(shown.path), shown.updates, options.split, of_shown, cases)
        (folder / PAGE).write_text(page, encoding="utf-8")
        (folder / CASES).write_text(_cases_json(cases), encoding="utf-8")
        _publish(folder, output)
    files = [f"  {output / name}  {what}" for name, what in FILES.items() if (output / name).exists()]
    return "\n".join(
        [
            rates_table(rates, show_paper),
            "",
            f"tables, and how often they fire for {shown.path}",
            sources_table(sources),
            "",
            *files,
        ]
    )


def _cases_json(cases: Sequence[Case]) -> str:
    """A line a case: an object with the fields of ``Case``."""
    lines = [json.dumps({**case._asdict(), "synonyms": dict(case.synonyms)}, ensure_ascii=False) for case in cases]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _table_names(paths: Sequence[Path]) -> list[str]:
    """The files' names without their suffix, or all of their paths where two are called the same."""
    names = [path.stem for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _content_words(dictionary: Dictionary, encoder_json: Path | None) -> torch.Tensor:
    """Which entries are whole words, and no stop words: (V) boolean."""
    is_word = torch.zeros(len(dictionary), dtype=torch.bool)
    words = whole_words(dictionary, encoder_json)
    is_word[[index for index, word in words.items() if word.lower() not in STOP_WORDS]] = True
    return is_word


def _part_of_speech(description: dict[str, str]) -> Callable[[str, str], str]:
    """What tells parts of speech in the language of a table; ``unknown`` for all where there is no WordNet."""
    from ..synonyms.wordnet import ensure_wordnet  # imported here: NLTK takes two seconds

    lang = json.loads(description.get("options", "{}")).get("lang", "eng")
    try:
        reader = ensure_wordnet()
    except InputError as error:
        print(f"parts of speech are left out: {error}", file=sys.stderr)
        return lambda word, other: UNKNOWN
    return lambda word, other: part_of_speech(reader, word, other, lang)


@contextmanager
def _staging(output: Path) -> Iterator[Path]:
    """Lend a folder inside ``output`` for files in the making, made before the work begins and gone after it."""
    staging = output / f".{os.getpid()}.tmp"
    is_new = not output.exists()
    try:
        staging.mkdir(parents=True)
        yield staging
    except OSError as error:
        named = Path(error.filename or output).absolute()
        if not (named.is_relative_to(output.absolute()) or output.absolute().is_relative_to(named)):
            raise
        raise InputError(f"--output {output}: cannot be written ({error.strerror}); name another folder") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if is_new and output.is_dir() and not any(output.iterdir()):
            output.rmdir()


def _publish(folder: Path, output: Path) -> None:
    """Put the files in place at once; those of an earlier report go, so that no two reports mix."""
    for name in FILES:
        (output / name).unlink(missing_ok=True)
    for name in FILES:
        if (folder / name).exists():
            os.replace(folder / name, output / name)
