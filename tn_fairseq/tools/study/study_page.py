"""The report of a study as one page of HTML, which needs no network."""

import base64
import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .discussion import TITLE, Discussion
from .paper_tables import NOTE, PAPER, at_a_glance, glance, paper_tables
from .plan import Plan, Start
from .runner import RECORD
from .statements import (
    GROUPS,
    NOTES,
    Row,
    begun,
    by_measure,
    clear,
    failures,
    hours,
    lengths,
    number,
    planned,
    power,
    progress,
    sentence,
    statements,
    titled,
    verdict,
)
from .study_plots import PLOTS


def page(
    plan: Plan, results: dict[str, Any], plots: dict[str, dict[str, str]], discussion: Discussion, folder: Path
) -> Iterator[str]:
    """The body of the page as HTML."""
    yield f"<h1>{html.escape(plan.title)}</h1>"
    yield f'<p class="lead">{html.escape(plan.question.strip())}</p>'
    yield from (f"<p>{html.escape(part)}</p>" for part in discussion.opening)
    header, rows = at_a_glance(plan, results)
    yield f'<div class="wide">{table(header, rows)}</div><p class="note">{glance(results)}</p>'
    yield '<div class="plots">' + "".join(picture(folder, *plot) for plot in plots[""].items()) + "</div>"
    if discussion.rest:
        yield "<h2>Discussion</h2>"
    for part in discussion.rest:
        title = part.removeprefix(TITLE)
        yield f"<p>{html.escape(part)}</p>" if title == part else f"<h3>{html.escape(title)}</h3>"
    yield "<h2>How</h2>"
    yield (
        "<p>All arms of a start share everything but the objective: the initial weights, the text and its order, the "
        "masks, the schedule and the number of updates. Runs are compared seed by seed, over the seeds that both arms "
        "have. Intervals are Student's 95% intervals of the paired differences, unless the text says otherwise. They "
        "cover the spread over training runs. <em>Could see</em> is the smallest true difference that the study would "
        "have found with a probability of 80%.</p>"
    )
    machine = html.escape(", ".join(results["machine"].values()))
    yield f"<p>{results['date']}. Machine: {machine}. Time used: {hours(results)}.</p>"
    yield f'<p class="note">The plan is in plan.yaml, and every command with its time and exit code in {RECORD}.</p>'
    if not_begun := planned(results):
        yield f"<p>{html.escape(not_begun)}</p>"
    for name, start in plan.starts.items():
        if begun(results["starts"][name]):
            yield from page_of_start(name, start, results["starts"][name], plots[name], folder)
    yield f"<h2>{PAPER}</h2><p>{html.escape(NOTE)}</p>"
    for paper_table in paper_tables(plan, results):
        yield f"<h3>{html.escape(paper_table.title)}</h3>"
        yield f'<div class="wide">{table(paper_table.header, paper_table.rows)}</div>'
        yield f'<p class="note">{html.escape(paper_table.note)}</p>'


def page_of_start(
    name: str, start: Start, start_results: dict[str, Any], plots: dict[str, str], folder: Path
) -> Iterator[str]:
    yield f"<h2>{html.escape(start.about)}</h2>"
    yield f"<p>{progress(start_results)}, of {lengths(start)}.</p>"
    lines = statements(start, start_results)
    yield bullets(lines or ["There are no intervals yet, which need two seeds of an arm."])
    failed = failures(start_results)
    if failed:
        yield "<h3>Failed runs</h3>" + bullets(failed)
    arms = []
    for arm, settings in start.arms.items():
        runs = [run for run in start_results["runs"] if run["arm"] == arm]
        done = sum(run["state"] == "finished" for run in runs)
        speed = start_results["tokens_per_second"].get(arm)
        time = f"{60 * sum(run['hours'] for run in runs):,.0f}"
        arms.append(
            [f"{arm}: {settings.about}", f"{done}/{len(runs)}", time, "-" if speed is None else f"{speed:,.0f}"]
        )
    yield table(["arm", "runs", "min.", "tokens/s"], arms)
    curves = {plot: caption for plot, caption in plots.items() if ".forest" not in plot}
    if curves:
        yield '<div class="plots">' + "".join(picture(folder, *plot) for plot in curves.items()) + "</div>"
    yield from overview(start, start_results)
    for group in GROUPS:
        rows = [row for row in start_results["comparisons"] if row["group"] == group]
        if not rows:
            continue
        yield f'<h3>{sentence(group)}</h3><p class="note">{html.escape(NOTES[group])}</p>'
        forest = f"{name}.forest{GROUPS.index(group)}"
        yield '<div class="plots">'
        yield picture(folder, forest, plots[forest]) if forest in plots else ""
        tables = (measure_table(measure, list(by_arm.values())) for measure, by_arm in by_measure(rows).items())
        yield "<div>" + "".join(tables)
        yield "</div></div>"
    lines = power(start_results)
    if lines:
        yield "<h3>What this study could have seen</h3><p>The smallest true differences that it would have found with "
        yield "a probability of 80%. Smaller effects may exist: this study cannot tell.</p>" + bullets(lines)


def overview(start: Start, start_results: dict[str, Any]) -> Iterator[str]:
    """A table of all differences, with a row for each measure and a column for each arm."""
    measured = {row["arm"] for row in start_results["comparisons"]}
    arms = [arm for arm in start.arms if arm in measured and arm != start.baseline]
    if not arms:
        return
    yield "<h3>All differences at a glance</h3>"
    yield (
        f'<p class="note">Means of {start.baseline}, and differences from it. A difference is bold if its interval '
        "excludes zero. Green is better and red is worse. Intervals are below.</p>"
    )
    head = cells("th", ["measure", start.baseline, *arms]).replace("_", "_<wbr>")
    yield f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>'
    for group in GROUPS:
        for measure, by_arm in by_measure(
            [row for row in start_results["comparisons"] if row["group"] == group]
        ).items():
            plain, unit = by_arm.get(start.baseline), next(iter(by_arm.values()))["unit"]
            yield f"<tr>{cells('td', [titled(measure, unit), number(plain, 'value') if plain else '-'])}"
            for row in map(by_arm.get, arms):
                color = f' class="{verdict(row)}"' if row and clear(row) else ""
                yield f"<td{color}>{marked(row) if row else '-'}</td>"
            yield "</tr>"
    yield "</tbody></table></div>"


def bullets(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', header)}</tr></thead><tbody>{body}</tbody></table>"


def cells(tag: str, texts: Sequence[str]) -> str:
    """Cells of a row; what is between two pairs of stars is in bold, as in Markdown."""
    bold = (re.sub(r"\*\*(.+)\*\*", r"<b>\1</b>", html.escape(text)) for text in texts)
    return "".join(f"<{tag}>{text}</{tag}>" for text in bold)


def marked(row: Row) -> str:
    """A difference as HTML, in bold if it is clear."""
    text = number(row, "difference", signed=True)
    return f"<b>{text}</b>" if clear(row) else text


def measure_table(measure: str, rows: Sequence[Row]) -> str:
    """A table of one measure: the mean of each arm, its difference with the interval, and what could be seen."""
    lines = []
    for row in rows:
        runs = f"{row['seeds']} {'round' if row['interval'] == 'rounds' else 'seed'}{'s' * (row['seeds'] > 1)}"
        difference = ""
        if row["difference"] is not None:
            interval = "" if row["low"] is None else f"{number(row, 'low', True)} to {number(row, 'high', True)}"
            difference = f"{marked(row)}<small>{interval}</small>"
        lines.append(
            f'<tr class="{verdict(row)}"><td>{html.escape(row["arm"])}<small>{runs}</small></td>'
            f"<td>{number(row, 'value')}</td><td>{difference}</td><td>{number(row, 'detectable')}</td></tr>"
        )
    title = sentence(titled(measure, rows[0]["unit"]))
    better = {1: ", more is better", -1: ", less is better", 0: ""}[rows[0]["better"]]
    return (
        f"<table><caption>{html.escape(title)}{better}</caption><thead><tr><th>arm</th><th>mean</th>"
        f"<th>difference</th><th>could see</th></tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def picture(folder: Path, plot: str, caption: str) -> str:
    content = base64.b64encode((folder / PLOTS / f"{plot}.svg").read_bytes()).decode()
    text = html.escape(caption)
    image = f'<img src="data:image/svg+xml;base64,{content}" alt="{text}">'
    return f"<figure>{image}<figcaption>{text}</figcaption></figure>"
