"""The report of a study: its table, its comparisons, and a page."""

import os
import platform
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from markupsafe import Markup

from ...core.errors import InputError
from ...core.files import read_text
from ..jobs import RECORD
from ..results import plot
from ..results.layout import align
from ..results.measures import DETAILS, FINE_TUNING, measure_of
from ..results.report import (
    COMPARISONS,
    FILES,
    PAGE,
    TABLE,
    Section,
    check_output,
    page,
    report_folder,
    sections_of,
    write_report,
)
from ..results.show import Table, findings, number, sentence, short, show, wide
from .earlier import Earlier
from .plan import Plan, Start, runs_of
from .study_rows import compare_start, curves_of, finished_runs, smoothed

PLAN, DISCUSSION, KIND = "plan.yaml", "discussion.txt", "study"
TITLE = "# "  # begins a line of a discussion that is the title of a section
# measure of the table of all starts, and of starts with an oracle
HEADLINES = {
    "accuracy (%)": ("accuracy", "merged_accuracy"),
    "loss (bits)": ("loss", "merged_loss"),
    "recovered accuracy (%)": ("recovered_accuracy", "recovered_accuracy"),
    "recovered loss (%)": ("recovered_loss", "recovered_loss"),
    "GLUE": ("average", "average"),
    "SQuAD F1": ("F1", "F1"),
}
GLANCE = (
    "The first arm of a start shows means, the others differences from it, with 95% intervals over the seeds. A "
    "difference is in bold if its interval excludes zero. Accuracy and loss are those of held-out text. In starts with "
    "an oracle, synonyms of the masked word count as right. GLUE is the average of some of its tasks."
)
HOW = (
    "All arms of a start share everything but the objective: the initial weights, the text and its order, the masks, "
    "the schedule and the number of updates. Runs are compared seed by seed, over the seeds that both arms have. "
    "Intervals are Student's 95% intervals of the paired differences, unless the text says otherwise. They cover the "
    "spread over training runs. “Could see” is the smallest true difference that the study would have found with a "
    "probability of 80%."
)

PAPER = "The tables of the paper, next to ours"
PAPER_NOTE = (
    "The paper gives single numbers, without their spread. Our models are smaller, and were trained for minutes, so "
    "only the signs of differences can be compared. “H100 hours” estimates what it takes to train a model of the paper "
    "once: 6 operations per parameter and token, at 40% of the peak."
)


def check_free(output: Path, plan: Path) -> None:
    """Raises InputError for a folder with another report, or without one that has files with the names of ours."""
    check_output(output, KIND)
    if not (output / TABLE).exists() and not (output / RECORD).exists():
        for place in (output / name for name in (PLAN, PAGE, COMPARISONS)):
            if place.exists() and place.resolve() != plan.resolve():
                raise InputError(f"{place}: would be replaced; give another --output, or move it")


def write_study(
    plan: Plan, path: Path, output: Path, table: pd.DataFrame, earlier: Sequence[Earlier], failed: Sequence[str]
) -> None:
    """Write the report to the current folder, which is called ``output``, and print its main table."""
    kept = [one.comparisons for one in earlier]
    empty = pd.DataFrame(columns=["start", "measure", "data", "part", "arm"])
    before = pd.concat(kept, ignore_index=True).drop_duplicates() if kept else empty
    parts = {
        name: compare_start(table[table["start"] == name], name, start, before) for name, start in plan.starts.items()
    }
    comparisons = pd.concat([part for part in parts.values() if len(part)] or list(parts.values()), ignore_index=True)
    here = machine([one.about.get("machine", {}).get("processor", "") for one in earlier])
    # not the paths of this machine
    told = plan.model_dump(mode="json", exclude={"paper"}) | {"sources": list(plan.sources)}
    about = {"plan": told, "date": time.strftime("%Y-%m-%d"), "machine": here}
    glance = at_a_glance(plan, table, comparisons)
    opening, rest = read_discussion(Path(DISCUSSION))
    hours = table[table["measure"] == "hours"].groupby("arm")["value"].sum()
    used = f"{hours.drop('', errors='ignore').sum():.1f} hours of training and {hours.get('', 0):.1f} of the rest"
    sections = [
        Section(tables=[glance], paragraphs=[GLANCE]),
        *rest,
        Section("How", paragraphs=[HOW, f"{about['date']}. {', '.join(here.values())}. {used}."]),
    ]
    if failed:
        sections.append(Section("Failed", bullets=failed))
    for name, start in plan.starts.items():
        if len(parts[name]):
            sections += sections_of_start(name, start, table[table["start"] == name], parts[name])
    left = [name for name in plan.starts if not len(parts[name])]
    if left:
        sections.append(Section(paragraphs=[f"Planned, without a finished run: {', '.join(left)}."]))
    if plan.paper:
        sections.append(Section(PAPER, paragraphs=[PAPER_NOTE], tables=list(paper_tables(plan, comparisons))))
    html = page(plan.title, [plan.question.strip(), *opening], sections)
    with report_folder(Path(), FILES, KIND) as folder:
        write_report(folder, KIND, table, comparisons, html, about)
        if path.resolve() != Path(PLAN).resolve():
            shutil.copyfile(path, folder / PLAN)
    if len(plan.starts) == 1:
        print(show(comparisons))
    else:
        print("\n".join(align([glance.header, *([Markup(cell).striptags() for cell in row] for row in glance.rows)])))
    print("", *(f"  {output / name}  {what}" for name, what in FILES.items()), sep="\n")


def at_a_glance(plan: Plan, table: pd.DataFrame, comparisons: pd.DataFrame) -> Table:
    """What each arm of each start changes in the most important measures; of shares at several updates, the last."""
    rows = {(row["start"], row["arm"], row["measure"]): row for row in comparisons.to_dict("records")}
    finished = finished_runs(table)
    body = []
    for name, start in plan.starts.items():
        for arm in start.arms:
            measures = [both[bool(start.oracle)] for both in HEADLINES.values()]
            cells = [short(rows.get((name, arm, measure)), measure_of(measure)) for measure in measures]
            seeds = sum((run.start, run.arm) == (name, arm) for run in finished)
            body += [[f"{name}: {arm}", str(seeds), *cells]] if seeds else []
    used = [0, 1, *(n for n in range(2, 2 + len(HEADLINES)) if any(row[n] != "-" for row in body))]
    header = ["start: arm", "seeds", *HEADLINES]
    return Table([header[n] for n in used], [[row[n] for n in used] for row in body])


def sections_of_start(name: str, start: Start, table: pd.DataFrame, comparisons: pd.DataFrame) -> Iterator[Section]:
    """What is clear, the arms, the curves, all differences, and the groups of measures."""
    finished, runs = finished_runs(table), runs_of(name, start)
    speeds = table[table["measure"] == "tokens_per_second"].groupby("arm")["value"].median()
    minutes = 60 * table[(table["measure"] == "hours") & (table["arm"] != "")].groupby("arm")["value"].sum()
    arms = []
    for arm, settings in start.arms.items():
        of_arm = [run for run in runs if run.arm == arm]
        speed = f"{speeds[arm]:,.0f}" if arm in speeds else "-"
        done = f"{sum(run in finished for run in of_arm)}/{len(of_arm)}"
        arms.append(
            [f"{arm}: {settings.about}", done, f"{start.updates_of(arm):,}", f"{minutes.get(arm, 0):,.0f}", speed]
        )
    yield Section(
        sentence(start.about),
        paragraphs=[f"{name}: {sum(run in finished for run in runs)} of {len(runs)} runs are finished."],
        bullets=[*findings(comparisons), *unused_margins(start, comparisons)] or ["No intervals: they need two seeds."],
        tables=[Table(["arm", "runs", "updates", "min.", "tokens/s"], arms)],
        plots=plots(start, table),
    )
    note = f"Means of {start.baseline}, and differences from it with half of their intervals."
    shown = comparisons[~comparisons["measure"].isin(DETAILS)]
    yield Section("All differences at a glance", 3, [note], tables=[wide(shown)])
    yield from sections_of(comparisons, level=3)


def unused_margins(start: Start, comparisons: pd.DataFrame) -> list[str]:
    """The plan's margins that nothing was tested against, for example because the name has a mistake."""
    measures = comparisons[comparisons["equivalent"].notna()]["measure"].map(measure_of)
    used = {name for measure in measures for name in (measure.titled(unit=False), measure.group)}
    return [f"No difference was tested against the margin of {name}." for name in start.margins if name not in used]


def plots(start: Start, table: pd.DataFrame) -> dict[str, str]:
    """The accuracy during training, its difference from the baseline, and the rates of false negatives."""
    drawn: dict[str, str] = {}
    arms = [start.baseline, *(arm for arm in start.arms if arm != start.baseline)]
    window = start.measures.logs.window if start.measures.logs else 10 * start.log_every
    curves = {run: smoothed(*curve, window) for run, curve in curves_of(table, "curve_accuracy").items()}
    differences = {}
    for (arm, seed), (updates, values) in curves.items():
        plain = dict(zip(*curves.get((start.baseline, seed), ((), ()))))
        both = [number for number, at in enumerate(updates) if at in plain]
        if arm != start.baseline and both:
            differences[arm, seed] = updates[both], values[both] - [plain[at] for at in updates[both]]
    if any(len(updates) for updates, _ in curves.values()):
        caption = "Masked-LM accuracy during training, a mean over the seeds."
        drawn[caption] = plot.lines(mean_curves(curves), arms, "accuracy (%)")
    if differences:
        caption = f"The same accuracy minus that of {start.baseline} with the same seed: same text, same masks."
        label = f"accuracy minus {start.baseline} (points)"
        drawn[caption] = plot.lines(mean_curves(differences), arms, label, zero=True)
    rates = curves_of(table, "prediction_rate")
    if any(len(updates) > 1 for updates, _ in rates.values()):
        caption = "Wrong predictions that are synonyms of the masked word, with the same table for all arms."
        drawn[caption] = plot.lines(mean_curves(rates), arms, "of the wrong predictions (%)", points=True)
    return drawn


def mean_curves(
    curves: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]],
) -> dict[str, tuple[Sequence[float], Sequence[float]]]:
    """The mean curve of each arm over its seeds, at the updates that all of them have."""
    found = {}
    for arm in dict.fromkeys(arm for arm, _ in curves):
        seeds = [pd.Series(values, updates) for (of, _), (updates, values) in curves.items() if of == arm]
        means = pd.concat(seeds, axis=1).dropna().mean(axis=1)
        if len(means):
            found[arm] = means.index.to_numpy(), means.to_numpy()
    return found


def paper_tables(plan: Plan, comparisons: pd.DataFrame) -> Iterator[Table]:
    """The published tables, each with our rows of the arms that resemble one of their rows.

    A column is a measure, or MEASURE under ATTACK. Our cells are means over the seeds with half of a 95% interval.
    """
    paper = pd.read_csv(str(plan.paper), dtype={"row": str, "column": str})
    cells = {}
    for row in comparisons.to_dict("records"):
        measure = row["measure"].removeprefix("attacked ")
        column = (
            f"{measure} under {row['part']}"
            if measure_of(row["measure"]).group == FINE_TUNING and row["part"]
            else measure
        )
        cells[row["start"], row["arm"], column] = number(row, "value", "low", "high")
    for title, rows in paper.groupby("table", sort=False):
        columns = list(dict.fromkeys(rows["column"]))
        values = {(row, column): f"{value:g}" for row, column, value in zip(rows["row"], rows["column"], rows["value"])}
        names = list(dict.fromkeys(rows["row"]))
        body = [[row, *(values.get((row, column), "-") for column in columns)] for row in names]
        for name, start in plan.starts.items():
            for arm, settings in start.arms.items():
                ours = [cells.get((name, arm, column), "-") for column in columns]
                if settings.resembles in names and any(cell != "-" for cell in ours):
                    body.append([f"ours, {name}: {arm}", *ours])
        yield Table(["", *columns], body, str(title))


def read_discussion(path: Path) -> tuple[list[str], list[Section]]:
    """The author's conclusions: paragraphs for the top of the report, and sections for below its table.

    Blank lines separate paragraphs, and a line that begins with ``# `` is a title. What is above the first title is for
    the top; without titles, only the first paragraph is.
    """
    text = read_text(path, "delete it") if path.exists() else ""
    text = re.sub(f"^{TITLE}.*$", r"\n\g<0>\n", text, flags=re.MULTILINE)
    parts = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    first = next((number for number, part in enumerate(parts) if part.startswith(TITLE)), 1)
    sections = [Section("Discussion")] if parts[first:] else []
    for part in parts[first:]:
        title = part.removeprefix(TITLE)
        sections.append(Section(paragraphs=[part]) if title == part else Section(title, 3))
    return parts[:first], sections


def machine(others: Sequence[str]) -> dict[str, str]:
    """The processors of this and other machines, as the systems give them, and the versions here."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []  # only on Linux
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    processor = f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"
    if torch.cuda.is_available():
        processor += f", {torch.cuda.get_device_name()}"
    processors = dict.fromkeys(name for one in (processor, *others) for name in one.split("; ") if name)
    system, python = platform.platform(), f"Python {platform.python_version()}"
    return {"processor": "; ".join(processors), "system": system, "python": python}
