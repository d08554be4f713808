"""The report of a study: study.json, plots, summary.md and index.html."""

import html
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import InputError
from ...core.files import write_text
from .discussion import TITLE, Discussion, read_discussion
from .figures import collect, compact
from .paper_tables import NOTE, PAPER, at_a_glance, glance, paper_tables
from .plan import Plan
from .runner import LOCK, RECORD
from .statements import (
    GROUPS,
    NOTES,
    begun,
    by_measure,
    failures,
    hours,
    lengths,
    planned,
    power,
    progress,
    sentence,
    short,
    statements,
    titled,
)
from .study_page import page
from .study_plots import PLOTS, draw_doses, draw_start

JSON, PAGE, SUMMARY, PLAN = "study.json", "index.html", "summary.md", "plan.yaml"
DISCUSSION = "discussion.txt"


def write_study(
    plan: Plan, path: Path, folder: Path, machine: dict[str, str], earlier: Sequence[dict[str, Any]] = ()
) -> None:
    """Write study.json, the plots, summary.md and index.html to the study's folder, and print their paths."""
    results = collect(plan, folder, machine, earlier)
    write_text(folder / JSON, json.dumps(compact(results), separators=(",", ":"), ensure_ascii=False) + "\n")
    if path.resolve() != (folder / PLAN).resolve():
        write_text(folder / PLAN, path.read_text(encoding="utf-8"))
    shared = draw_doses(plan, results, folder)
    plots = {"": shared} | {
        name: draw_start(name, plan.starts[name], start_results, folder)
        for name, start_results in results["starts"].items()
    }
    discussion = read_discussion(folder / DISCUSSION)
    write_text(folder / SUMMARY, "\n".join(summary(plan, results, plots, discussion)) + "\n")
    template = Path(__file__).with_name("study_page.html").read_text(encoding="utf-8")
    body = "\n".join(page(plan, results, plots, discussion, folder))
    write_text(folder / PAGE, template.replace("{{title}}", html.escape(plan.title)).replace("{{body}}", body))
    for name, what in (
        (PAGE, "the report"),
        (SUMMARY, "the same in short"),
        (JSON, "all figures"),
        (RECORD, "commands"),
    ):
        if (folder / name).exists():
            print(f"  {folder / name}  {what}")


def check_free(folder: Path, plan: Path) -> None:
    """Raises InputError for a folder without a study that has files with the names of its report.

    The ``plan`` of the study may be among them.
    """
    if not ((folder / JSON).exists() or (folder / LOCK).exists()):
        for place in (folder / name for name in (PLAN, PAGE, SUMMARY)):
            if place.exists() and place.resolve() != plan.resolve():
                raise InputError(f"{place}: would be replaced; give another --output, or move it")


def summary(
    plan: Plan, results: dict[str, Any], plots: dict[str, dict[str, str]], discussion: Discussion
) -> Iterator[str]:
    """The report in short, as Markdown."""
    yield f"# {plan.title}"
    yield ""
    yield plan.question.strip()
    yield ""
    yield f"{results['date']}, {results['machine']['processor']}. {sentence(hours(results))}."
    yield f"`{PAGE}` has all figures and plots; `tn-fairseq study` writes it next to this file."
    for paragraph in discussion.opening:
        yield from ("", paragraph)
    header, rows = at_a_glance(plan, results)
    known = {row[0].partition(":")[0] for row in rows}
    yield from ("", glance(results), "")
    yield from (f"- `{name}`: {start.about}" for name, start in plan.starts.items() if name in known)
    yield from ("", *markdown(header, rows))
    if not_begun := planned(results):
        yield from ("", not_begun)
    if discussion.rest:
        yield from ("", "## Discussion")
    for part in discussion.rest:
        yield from ("", f"##{part}" if part.startswith(TITLE) else part)
    for plot, caption in plots[""].items():
        yield from ("", f"![{caption}]({PLOTS}/{plot}.svg)")
    for name, start in plan.starts.items():
        start_results = results["starts"][name]
        if not begun(start_results):
            continue
        yield from ("", f"## {name}: {start.about}", "")
        yield f"{progress(start_results)}, of {lengths(start)}."
        yield (
            f"The column of `{start.baseline}` shows means. The other columns show differences from it, with 95% "
            "intervals. A difference is in bold if its interval excludes zero."
        )
        for group in GROUPS:
            compared = [row for row in start_results["comparisons"] if row["group"] == group]
            if not compared:
                continue
            yield from ("", f"### {sentence(group)}", "", NOTES[group], "")
            arms = list(dict.fromkeys(row["arm"] for row in compared))
            cells = [
                [titled(measure, next(iter(by_arm.values()))["unit"]), *(short(by_arm.get(arm)) for arm in arms)]
                for measure, by_arm in by_measure(compared).items()
            ]
            yield from markdown(["", *arms], cells)
        for title, lines in (
            ("What is clear, and what is not", statements(start, start_results)),
            ("What this study could have seen with a probability of 80%", power(start_results)),
            ("Failed runs", failures(start_results)),
        ):
            if lines:
                yield from ("", f"### {title}", "", *(f"- {line}" for line in lines))
        if difference := plots[name].get(f"{name}.difference"):  # the other plots show what is in the tables
            yield from ("", f"![{difference}]({PLOTS}/{name}.difference.svg)")
    yield from ("", f"## {PAPER}", "", NOTE)
    for table in paper_tables(plan, results):
        yield from ("", f"### {table.title}", "", *markdown(table.header, table.rows), "", table.note)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table; the numbers are on the right."""
    yield f"| {' | '.join(header)} |"
    yield "| --- " + "| ---: " * (len(header) - 1) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
