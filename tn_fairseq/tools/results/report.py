"""The three files of every report: the table, the comparisons as CSV, and the page."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader

from ...core.errors import InputError
from ...core.files import publish, write_folder
from .measures import GROUPS, TABLES, names_of
from .show import Table, by_arm, findings, legend, sentence, show, tables
from .table import read_table, write_table

TABLE, COMPARISONS, PAGE = "results.parquet", "comparisons.csv", "index.html"
FILES = {
    PAGE: "the page: figures and plots",
    COMPARISONS: "each measure with its interval and its difference from the baseline",
    TABLE: "all values, a row for each",
}


@dataclass
class Section:
    """A part of a page: a title, paragraphs, a list, plots as SVG with their captions, and tables."""

    title: str = ""
    level: int = 2
    paragraphs: Sequence[str] = ()
    bullets: Sequence[str] = ()
    plots: Mapping[str, str] = field(default_factory=dict)  # caption -> SVG
    tables: Sequence[Table] = ()


def sections_of(comparisons: pd.DataFrame, level: int = 2) -> Iterator[Section]:
    """A section for each group of measures, with their tables."""
    for group, note in GROUPS.items():
        rows = comparisons[comparisons["measure"].isin(names_of(group))]
        if len(rows):  # the arms of TABLES are the tables
            shown = [by_arm(rows)] if group == TABLES else list(tables(rows))
            yield Section(sentence(group), level, [note], tables=shown)


def page(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """A page of HTML without a network."""
    environment = Environment(loader=PackageLoader(__package__, "."), autoescape=True, trim_blocks=True)
    return environment.get_template("page.html.jinja").render(title=title, lead=lead, sections=sections)


def page_of(title: str, lead: Sequence[str], comparisons: pd.DataFrame, first: Sequence[Section] = ()) -> str:
    """The page about comparisons: what is clear, other sections, a section for each group, and what columns mean."""
    headings = [f"{heading}: {meaning}" for heading, meaning in legend(comparisons).items()]
    sections = [Section(bullets=list(findings(comparisons))), *first, *sections_of(comparisons)]
    return page(title, lead, [*sections, Section("Columns", bullets=headings)])


def check_output(output: Path, kind: str) -> None:
    """Raises InputError if a folder has a report of another kind, such as GLUE, which would be replaced."""
    if (output / TABLE).exists() and (other := read_table(output / TABLE)[1].get("report")) != kind:
        raise InputError(f"--output {output}: has the report of {other or 'something else'}; give another folder")


@contextmanager
def report_folder(output: Path, files: Mapping[str, str], kind: str) -> Iterator[Path]:
    """Yield a folder to write the files of a report to, and move them into ``output`` together at the end.

    ``files`` says what each file contains, and the last one must be written. Raises InputError for an output that
    cannot be written, or that ``check_output`` refuses.
    """
    check_output(output, kind)
    with write_folder(output, "--output") as folder:
        yield folder
        # delete the files of an earlier report, so that two reports do not mix
        publish(folder, output, last=list(files)[-1], old=[output / name for name in files])


def report(
    output: Path,
    title: str,
    table: pd.DataFrame,
    comparisons: pd.DataFrame,
    notes: Sequence[str] = (),
    about: Mapping[str, Any] | None = None,
) -> str:
    """Write FILES about comparisons to a folder, and return the text to print, with the names of the files."""
    with report_folder(output, FILES, title) as folder:
        write_report(folder, title, table, comparisons, page_of(title, notes, comparisons), about)
    return f"{show(comparisons, notes)}\n\n{list_files(output, FILES)}"


def write_report(
    folder: Path,
    kind: str,
    table: pd.DataFrame,
    comparisons: pd.DataFrame,
    html: str,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write FILES to a folder; ``about`` is what the table was made from."""
    write_table(table, folder / TABLE, {"report": kind, **(about or {})})
    comparisons.to_csv(folder / COMPARISONS, index=False, float_format="%.7g", lineterminator="\n")
    (folder / PAGE).write_text(html, encoding="utf-8")


def list_files(output: Path, files: Mapping[str, str]) -> str:
    """A line for each file of the report that was written."""
    return "\n".join(f"  {output / name}  {what}" for name, what in files.items() if (output / name).exists())
