"""The report of a study: study.json, plots, summary.md, and index.html, one page that needs no network."""

import base64
import html
import json
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Dict, List, Optional, Tuple

from figures import (
    COST,
    DETECTION,
    FALSE_NEGATIVES,
    FINE_TUNING,
    HELD_OUT,
    IN_TRAINING,
    RATES,
    RECOVERED,
    WORDS,
    collect,
    smoothed,
)
from plan import Plan, Start
from runner import RECORD
from tables import NOTE, paper_tables

from tn_fairseq.errors import InputError
from tn_fairseq.files import write_text
from tn_fairseq.reporting.paper import AVERAGE
from tn_fairseq.reporting.plot import COLORS, DASHES, INK, OVER_AXIS, drawing

JSON, PAGE, SUMMARY, PLOTS, DISCUSSION = "study.json", "index.html", "summary.md", "plots", "discussion.txt"
GROUPS = (RECOVERED, HELD_OUT, IN_TRAINING, FALSE_NEGATIVES, DETECTION, WORDS, FINE_TUNING, COST)
NOTES = {
    RECOVERED: "The oracle shows what can be gained at most: it trains on text without synonyms. 0% is the baseline, "
    "and 100% is the oracle with the same seed. Synonyms of the hidden word count as right.",
    HELD_OUT: "Text that no run was trained on, masked several times; the same masks for all runs. The loss is that of "
    "plain masked LM.",
    IN_TRAINING: "From the training logs. Each batch is measured before the model learns from it. Runs with the same "
    "seed see the same text with the same masks in the same order. So the text is new to the run, though not always to "
    "the weights that it started from. If the runs have dropout, it is on.",
    FALSE_NEGATIVES: "With the same synonym table for all arms, after the last update.",
    DETECTION: "ELECTRA's discriminator reads the words that its generator draws, with the same masks for all runs. "
    "Synonyms of the original word count neither as replaced nor as found.",
    WORDS: "What the models know about words, measured without fine-tuning: substitutes of words in sentences "
    "(SWORDS), similar words, and pairs of sentences (BLiMP). These intervals resample the words or sentences and the "
    "seeds; with so few seeds they are too narrow.",
    FINE_TUNING: "Scores of the development data, a mean over the seeds of fine-tuning for each seed of pre-training.",
    COST: "Short trainings of all arms in turns, one at a time.",
}
# column of the table of all starts -> group, measure (of the shares, how it begins), and that of starts with an oracle
HEADLINES = {
    "accuracy (%)": (HELD_OUT, RATES["accuracy"][1], RATES["merged_accuracy"][1]),
    "loss (bits)": (HELD_OUT, RATES["loss"][1], RATES["merged_loss"][1]),
    "recovered accuracy (%)": (RECOVERED, "", "of the accuracy"),
    "recovered loss (%)": (RECOVERED, "", "of the loss"),
    "GLUE": (FINE_TUNING, AVERAGE, AVERAGE),
    "SQuAD F1": (FINE_TUNING, "SQuAD F1", "SQuAD F1"),
}
GLANCE = (
    "The first arm of a start shows means, the others differences from it, with 95% intervals over the seeds. A "
    "difference is in bold if its interval excludes zero. Accuracy and loss are those of held-out text. In starts with "
    "an oracle, synonyms of the hidden word count as right."
)
PAPER = "The tables of the paper, next to ours"
WIDTH = 3.9  # inches of a plot; narrow, so that its letters are readable on a phone

Row = Dict[str, Any]


def write_report(
    plan: Plan, path: Path, folder: Path, machine: Dict[str, str], earlier: Sequence[Dict[str, Any]] = ()
) -> None:
    """Write study.json, the plots, summary.md and index.html to the study's folder, and print their paths."""
    results = collect(plan, folder, machine, earlier)
    write_text(folder / JSON, json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    if path.resolve() != (folder / "plan.yaml").resolve():
        shutil.copyfile(path, folder / "plan.yaml")
    shared = draw_doses(plan, results, folder)
    plots = {"": shared} | {
        name: draw_start(name, plan.starts[name], of_start, folder) for name, of_start in results["starts"].items()
    }
    discussion = folder / DISCUSSION
    remarks = discussion.read_text(encoding="utf-8").strip().split("\n\n") if discussion.exists() else []
    write_text(folder / SUMMARY, "\n".join(summary(plan, results, plots, remarks)) + "\n")
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    body = "\n".join(page(plan, results, plots, remarks, folder))
    write_text(folder / PAGE, template.replace("{{title}}", html.escape(plan.title)).replace("{{body}}", body))
    for name, what in (
        (PAGE, "the report"),
        (SUMMARY, "the same in short"),
        (JSON, "all figures"),
        (RECORD, "commands"),
    ):
        print(f"  {folder / name}  {what}")


# What the figures say


def clear(row: Row) -> bool:
    """Whether the interval of a difference excludes zero."""
    return row["low"] is not None and (row["low"] > 0 or row["high"] < 0)


def verdict(row: Row) -> str:
    """``better`` or ``worse`` if the difference is clear and the measure has a good direction, else an empty string."""
    if not clear(row) or not row["better"]:
        return ""
    return "better" if row["difference"] * row["better"] > 0 else "worse"


def findings(start: Start, of_start: Dict[str, Any]) -> List[str]:
    """A sentence for each arm: on which measures it is clearly better or worse than the baseline, or neither."""
    lines = []
    for arm, settings in start.arms.items():
        rows = [
            row for row in of_start["comparisons"] if row["arm"] == arm and row["low"] is not None and row["better"]
        ]
        if arm == start.baseline or not rows:
            continue
        parts = []
        for word in ("better", "worse"):
            found = [row for row in rows if verdict(row) == word]
            if found:
                parts.append(f"{word} on " + "; ".join(f"{row['measure']} ({change(row)})" for row in found))
        rest = sum(not verdict(row) for row in rows)
        parts.append(f"no clear difference on {rest} of {len(rows)} measures")
        lines.append(f"{arm} ({settings.about}): {'; '.join(parts)}.")
    return lines


def statements(start: Start, of_start: Dict[str, Any]) -> List[str]:
    """What is clear in a start, and what is not."""
    return [*findings(start, of_start), *chance(of_start), *corrected(of_start), *unused_margins(start, of_start)]


def chance(of_start: Dict[str, Any]) -> List[str]:
    """How many intervals exclude zero, and how many would if no arm had any effect."""
    rows = [row for row in of_start["comparisons"] if row["low"] is not None and row["group"] != COST]
    if not rows:
        return []
    return [
        f"{sum(map(clear, rows))} of {len(rows)} intervals exclude zero. If no arm had any effect, about "
        f"{0.05 * len(rows):.1f} would, because each is a 95% interval. Many measures are related."
    ]


def corrected(of_start: Dict[str, Any]) -> List[str]:
    """Which differences remain after Holm's correction, and which are shown to be within their margin."""
    lines = []
    # a share of the oracle's gain is a held-out figure on another scale
    rows = [row for row in of_start["comparisons"] if row.get("holm") is not None and row["better"]]
    rows = [row for row in rows if row["group"] != RECOVERED]
    if rows:
        found = [row for row in rows if row["holm"] < 0.05]
        of_arms = [
            f"{arm} on " + ", ".join(row["measure"] for row in found if row["arm"] == arm)
            for arm in _in_order(found, "arm")
        ]
        lines.append(
            f"After Holm's correction for all arms and measures of a group, {len(found)} of {len(rows)} differences "
            f"are significant{': ' if found else ''}{'; '.join(of_arms)}."
        )
    tested = [row for row in of_start["comparisons"] if row.get("equivalent") is not None]
    same: Dict[Tuple[str, str, str], List[str]] = {}  # measures with the same result
    for measure in _in_order(tested, "measure"):
        of_measure = [row for row in tested if row["measure"] == measure]
        excluded = ", ".join(row["arm"] for row in of_measure if row["equivalent"])
        arms = ", ".join(row["arm"] for row in of_measure)
        same.setdefault((f"{of_measure[0]['margin']:g}", excluded or "no arm", arms), []).append(measure)
    for (margin, excluded, arms), measures in same.items():
        what = f"a difference larger than {margin} is excluded for {excluded}; tested: {arms}"
        lines.append(f"{'; '.join(measures)}: {what} (two one-sided 5% tests).")
    return lines


def unused_margins(start: Start, of_start: Dict[str, Any]) -> List[str]:
    """The plan's margins that nothing was tested against, for example because the name has a mistake."""
    rows = [row for row in of_start["comparisons"] if row.get("equivalent") is not None]
    used = {name for row in rows for name in (row["measure"], row["group"])}
    unused = [name for name in start.margins if of_start["comparisons"] and name not in used]
    return [f"No difference was tested against the margin of {name}." for name in unused]


def _in_order(rows: Sequence[Row], key: str) -> List[str]:
    return list(dict.fromkeys(row[key] for row in rows))


def digits(row: Row) -> int:
    """Decimal places: updates are integers, and losses and small shares need more."""
    if row["unit"] == "updates":
        return 0
    value = abs(row["value"])
    if row["unit"] == "%" and 0 < value < 0.01:
        return 5
    return 2 if value >= 1 and row["unit"] != "bits" else 3


def number(row: Row, key: str, signed: bool = False) -> str:
    value = row[key]
    if value is None:
        return "-"
    zero = "z" if key == "difference" else ""  # +0.00, not -0.00, but the end of an interval keeps its sign
    return f"{value:{'+' if signed else ''}{zero},.{digits(row)}f}".replace("-", "\u2212")


def titled(measure: str, unit: str) -> str:
    """A measure with its unit, unless the unit is a word of its name."""
    return measure if unit in measure else f"{measure} ({unit})"


def by_measure(rows: Sequence[Row]) -> Dict[str, Dict[str, Row]]:
    """The rows of each measure by arm, in the order of the rows."""
    found: Dict[str, Dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row["measure"], {})[row["arm"]] = row
    return found


def change(row: Row) -> str:
    """A difference with its unit and interval."""
    text = number(row, "difference", signed=True) + ({"%": " points", "": ""}.get(row["unit"], f" {row['unit']}"))
    if row["low"] is not None:
        text += f", {number(row, 'low', True)} to {number(row, 'high', True)}"
    return text


def hours(results: Dict[str, Any]) -> str:
    training = sum(run["hours"] for start in results["starts"].values() for run in start["runs"])
    return f"{training:.1f} hours of training and {results['other_hours']:.1f} hours of preparation and measuring"


def progress(of_start: Dict[str, Any]) -> str:
    states = [run["state"] for run in of_start["runs"]]
    text = f"{states.count('finished')} of {len(states)} runs are finished"
    return text + (f", and {states.count('failed')} failed" if "failed" in states else "")


def failures(of_start: Dict[str, Any]) -> List[str]:
    return [f"{run['arm']}, seed {run['seed']}: {run['error']}" for run in of_start["runs"] if run["state"] == "failed"]


def power(of_start: Dict[str, Any]) -> List[str]:
    """For each measure, the smallest difference that the study would have found with a probability of 80%."""
    found: Dict[str, List[Row]] = {}
    for row in of_start["comparisons"]:
        if row["detectable"] is not None and row["group"] != COST:
            found.setdefault(row["measure"], []).append(row)
    lines = []
    for measure, rows in found.items():
        least, most = (end(rows, key=lambda row: row["detectable"]) for end in (min, max))
        ends = dict.fromkeys(number(row, "detectable") for row in (least, most))
        unit = {"%": " points", "": ""}.get(least["unit"], f" {least['unit']}")
        lines.append(f"{measure}: {' to '.join(ends)}{unit}")
    return lines


# Plots


def doses(plan: Plan, results: Dict[str, Any], column: str) -> Tuple[Dict[str, List[Any]], Dict[str, List[Any]]]:
    """For each arm, its points (dose, difference, low, high) in all starts with an oracle, by dose.

    The dose is the share of the baseline's wrong predictions that are synonyms, in percent. The second dictionary has
    the starts that are apart: they train another model than the first one, or begin with other weights, because an
    earlier start has the same text.
    """
    measure = RATES[column][1]
    found: Dict[str, List[Any]] = {}
    apart: Dict[str, List[Any]] = {}
    texts = set()
    models = [_model(start) for start in plan.starts.values() if start.oracle]
    for name, start in plan.starts.items():
        rows = results["starts"][name]["comparisons"]
        dose = dose_of(start, rows)
        for row in rows if start.oracle and dose is not None else ():
            if row["measure"] == measure and row["group"] == HELD_OUT and row["difference"] is not None:
                is_apart = start.data in texts or _model(start) != models[0]
                points = (apart if is_apart else found).setdefault(row["arm"], [])
                points.append((dose, row["difference"], row["low"], row["high"]))
        texts.add(start.data)
    found = {arm: sorted(points) for arm, points in found.items() if len(points) + len(apart.get(arm, [])) > 1}
    return found, {arm: sorted(points) for arm, points in apart.items() if arm in found}


def _model(start: Start) -> Tuple[List[str], int]:
    """How a start trains, without the files of its weights and synonyms."""
    return [word for word in shlex.split(start.train) if not word.endswith((".pt", ".safetensors"))], start.updates


def dose_of(start: Start, rows: Sequence[Row]) -> Optional[float]:
    measure = RATES["prediction_rate"][1]
    return next((row["value"] for row in rows if (row["measure"], row["arm"]) == (measure, start.baseline)), None)


def draw_doses(plan: Plan, results: Dict[str, Any], folder: Path) -> Dict[str, str]:
    """Draw the gain of each arm against the dose of synonyms, with the starts without an oracle as dotted lines.

    Returns the caption by file name without a suffix.
    """
    (folder / PLOTS).mkdir(exist_ok=True)
    panels = {column: doses(plan, results, column) for column in ("merged_accuracy", "merged_loss")}
    if not all(joined for joined, _ in panels.values()):
        return {}
    others = {
        name: dose_of(start, results["starts"][name]["comparisons"])
        for name, start in plan.starts.items()
        if not start.oracle
    }
    files = [folder / PLOTS / f"doses.{suffix}" for suffix in ("svg", "png")]
    try:
        with drawing((WIDTH, 6), *files) as figure:
            for axis, (column, (joined, apart)) in zip(figure.subplots(2, 1, sharex=True), panels.items()):
                axis.axhline(0, color=INK, linewidth=0.8)
                for place, (arm, points) in enumerate(joined.items()):
                    color = COLORS[place % len(COLORS)]
                    label = arm if column == "merged_accuracy" else None
                    axis.errorbar(*_spread(points), color=color, marker="o", markersize=4, label=label)
                    if arm in apart:
                        axis.errorbar(*_spread(apart[arm]), color=color, fmt="s", markersize=4, fillstyle="none")
                for name, dose in others.items():
                    if dose:
                        axis.axvline(dose, color=INK, linestyle=":", linewidth=1)
                        axis.annotate(
                            name, (dose, 1), xycoords=("data", "axes fraction"), rotation=90, va="top", fontsize=7
                        )
                _, title, unit, _ = RATES[column]
                axis.set_title(titled(title, {"%": "points"}.get(unit, unit)), fontsize=8.5, loc="left")
            axis.set_xscale("log")
            low, high = axis.get_xlim()
            axis.set_xticks([dose for dose in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if low <= dose <= high])
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_formatter("")
            axis.set_xlabel("wrong predictions of the baseline that are synonyms (%)")
            figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    except InputError:  # no matplotlib, as the plots of the starts say
        return {}
    return {
        "doses": (
            "What each arm gains over the baseline if more words have synonyms. Dotted: starts on English as it is. "
            "Hollow squares: another model, or other weights at the start."
        )
    }


def _spread(points: Sequence[Any]) -> Tuple[Sequence[float], Sequence[float], List[List[float]]]:
    """The doses, the differences, and how far their intervals reach down and up."""
    x, y, lows, highs = zip(*points)
    return x, y, [[0 if end is None else abs(end - at) for at, end in zip(y, ends)] for ends in (lows, highs)]


def draw_start(name: str, start: Start, of_start: Dict[str, Any], folder: Path) -> Dict[str, str]:
    """Draw the plots of a start as SVG and PNG; returns their captions by file name without a suffix."""
    (folder / PLOTS).mkdir(exist_ok=True)
    drawn: Dict[str, str] = {}

    def files(plot: str, caption: str) -> List[Path]:
        drawn[f"{name}.{plot}"] = caption
        return [folder / PLOTS / f"{name}.{plot}.{suffix}" for suffix in ("svg", "png")]

    try:
        curves = mean_curves(start, of_start)
        if curves:
            caption = "Masked-LM accuracy during training, a mean over the seeds."
            with drawing((WIDTH, 3.6), *files("accuracy", caption)) as figure:
                draw_lines(figure, start, curves, "accuracy (%)")
            differences = paired_curves(start, of_start)
            if differences:
                caption = f"The same accuracy minus that of {start.baseline} with the same seed: same text, same masks."
                with drawing((WIDTH, 3.6), *files("difference", caption)) as figure:
                    draw_lines(figure, start, differences, f"accuracy minus {start.baseline} (points)", zero=True)
        if of_start["rates"]:
            caption = "Wrong predictions that are synonyms of the hidden word, with the same table for all arms."
            with drawing((WIDTH, 3.6), *files("rates", caption)) as figure:
                draw_lines(figure, start, mean_rates(start, of_start), "of the wrong predictions (%)", points=True)
        for group in GROUPS:
            rows = [row for row in of_start["comparisons"] if row["group"] == group and row["low"] is not None]
            if not rows:
                continue
            measures, arms = by_measure(rows), len({row["arm"] for row in rows})
            caption = f"Differences from {start.baseline} with 95% intervals: {group}."
            size = (WIDTH, len(measures) * (0.75 + 0.19 * arms))
            with drawing(size, *files(f"forest{GROUPS.index(group)}", caption)) as figure:
                draw_forest(figure, start, measures)
    except InputError as error:  # no matplotlib
        print(f"no plots are written: {error}", file=sys.stderr)
        return {}
    return drawn


def look(start: Start, arm: str) -> Dict[str, Any]:
    if arm == start.baseline:
        return {"color": INK, "linestyle": "-"}  # like the line of zero in plots of differences
    place = [other for other in start.arms if other != start.baseline].index(arm)
    return {"color": COLORS[place % len(COLORS)], "linestyle": DASHES[place // len(COLORS) % len(DASHES)]}


def mean_curves(start: Start, of_start: Dict[str, Any]) -> Dict[str, Any]:
    """Smoothed accuracies by arm, averaged over seeds."""
    found: Dict[str, List[Any]] = {}
    for curve in of_start["curves"]:
        found.setdefault(curve["arm"], []).append(smoothed(curve, window_of(start)))
    return {arm: average(curves) for arm, curves in found.items() if curves[0][0]}


def paired_curves(start: Start, of_start: Dict[str, Any]) -> Dict[str, Any]:
    """Smoothed differences from the baseline's accuracy with the same seed, averaged over seeds."""
    curves = {(curve["arm"], curve["seed"]): smoothed(curve, window_of(start)) for curve in of_start["curves"]}
    found: Dict[str, List[Any]] = {}
    for (arm, seed), curve in curves.items():
        plain = dict(zip(*curves.get((start.baseline, seed), ((), ()))))
        both = [(updates, value - plain[updates]) for updates, value in zip(*curve) if updates in plain]
        if arm != start.baseline and both:
            found.setdefault(arm, []).append(tuple(zip(*both)))
    return {arm: average(of_arm) for arm, of_arm in found.items()}


def window_of(start: Start) -> int:
    return start.measures["logs"].window if "logs" in start.measures else 10 * start.log_every


def mean_rates(start: Start, of_start: Dict[str, Any]) -> Dict[str, Any]:
    found: Dict[str, Dict[int, List[float]]] = {}
    for row in of_start["rates"]:
        found.setdefault(row["arm"], {}).setdefault(row["updates"], []).append(row["prediction_rate"])
    return {
        arm: (sorted(of_arm), [fmean(of_arm[updates]) for updates in sorted(of_arm)]) for arm, of_arm in found.items()
    }


def average(curves: Sequence[Any]) -> Any:
    """The mean of curves over the updates that all of them have."""
    found = [dict(zip(*curve)) for curve in curves]
    shared = [updates for updates in found[0] if all(updates in one for one in found)]
    return shared, [fmean(one[updates] for one in found) for updates in shared]


def draw_lines(
    figure, start: Start, curves: Dict[str, Any], label: str, zero: bool = False, points: bool = False
) -> None:
    axis = figure.subplots()
    if zero:
        axis.axhline(0, color=INK, linewidth=0.8)
    for arm, (updates, values) in curves.items():
        axis.plot(updates, values, label=arm, linewidth=1.4, marker="o" if points else "", **look(start, arm))
    axis.set_xlabel("updates")
    axis.set_ylabel(label)
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.xaxis.get_major_locator().set_params(integer=True, nbins=6)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)


def draw_forest(figure, start: Start, measures: Dict[str, Dict[str, Row]]) -> None:
    """A panel for each measure with a line for each arm."""
    panels = figure.subplots(len(measures), 1, squeeze=False)[:, 0]
    for axis, (measure, of_arm) in zip(panels, measures.items()):
        axis.axvline(0, color=INK, linewidth=0.8)
        for place, (arm, row) in enumerate(of_arm.items()):
            color = look(start, arm)["color"]
            axis.hlines(place, row["low"], row["high"], color=color, linewidth=1.4, **OVER_AXIS)
            axis.plot([row["difference"]], [place], "o", color=color, markersize=4.5, **OVER_AXIS)
        axis.set_yticks(range(len(of_arm)), of_arm)
        axis.set_ylim(len(of_arm) - 0.5, -0.5)
        unit = next(iter(of_arm.values()))["unit"]
        title = textwrap.fill(titled(measure, {"%": "points"}.get(unit, unit)), 44)
        axis.set_title(title, fontsize=8.5, loc="left")
        axis.tick_params(labelsize=8)
        axis.locator_params(axis="x", nbins=5)


# Markdown


def summary(
    plan: Plan, results: Dict[str, Any], plots: Dict[str, Dict[str, str]], remarks: Sequence[str]
) -> Iterator[str]:
    """The report in short, as Markdown."""
    yield f"# {plan.title}"
    yield ""
    yield plan.question.strip()
    yield ""
    yield f"{results['date']}, {results['machine']['processor']}. {sentence(hours(results))}."
    yield "[index.html](index.html) has all figures; download it to open it in a browser."
    if remarks:
        yield from ("", remarks[0])
    header, rows = at_a_glance(plan, results)
    known = {row[0].partition(":")[0] for row in rows}
    yield from ("", GLANCE, "")
    yield from (f"- `{name}`: {start.about}" for name, start in plan.starts.items() if name in known)
    yield from ("", *markdown(header, rows))
    if remarks[1:]:
        yield from ("", "## Discussion", "", "\n\n".join(remarks[1:]))
    for plot, caption in plots[""].items():
        yield from ("", f"![{caption}]({PLOTS}/{plot}.png)")
    for name, start in plan.starts.items():
        of_start = results["starts"][name]
        yield from ("", f"## {name}: {start.about}", "")
        yield f"{progress(of_start)}, of {start.updates:,} updates each."
        yield (
            f"The column of `{start.baseline}` shows means. The other columns show differences from it, with 95% "
            "intervals. A difference is in bold if its interval excludes zero."
        )
        for group in GROUPS:
            rows = [row for row in of_start["comparisons"] if row["group"] == group]
            if not rows:
                continue
            yield from ("", f"### {sentence(group)}", "", NOTES[group], "")
            arms = list(dict.fromkeys(row["arm"] for row in rows))
            lines = [
                [titled(measure, next(iter(of_arm.values()))["unit"]), *(cell(of_arm.get(arm)) for arm in arms)]
                for measure, of_arm in by_measure(rows).items()
            ]
            yield from markdown(["", *arms], lines)
        for title, lines in (
            ("What is clear, and what is not", statements(start, of_start)),
            ("What this study could have seen with a probability of 80%", power(of_start)),
            ("Failed runs", failures(of_start)),
        ):
            if lines:
                yield from ("", f"### {title}", "", *(f"- {line}" for line in lines))
        for plot, caption in plots[name].items():
            yield from ("", f"![{caption}]({PLOTS}/{plot}.png)")
    yield from ("", f"## {PAPER}", "", NOTE)
    for of_paper in paper_tables(plan, results):
        yield from ("", f"### {of_paper.title}", "", *markdown(of_paper.header, of_paper.rows), "", of_paper.note)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table; the numbers are on the right."""
    yield f"| {' | '.join(header)} |"
    yield "| --- " + "| ---: " * (len(header) - 1) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def at_a_glance(plan: Plan, results: Dict[str, Any]) -> Tuple[List[str], List[List[str]]]:
    """The header and the rows of one table for all starts: what each arm changes in the most important measures."""
    found: Dict[str, Dict[Tuple[str, str], Row]] = {column: {} for column in HEADLINES}
    for name, start in plan.starts.items():
        for column, (group, plain, with_oracle) in HEADLINES.items():
            measure = with_oracle if start.oracle else plain
            for row in results["starts"][name]["comparisons"]:
                same = row["measure"].startswith(measure) if group == RECOVERED else row["measure"] == measure
                if row["group"] == group and same:
                    found[column][name, row["arm"]] = row  # of shares at several updates, the last one
    columns = [column for column, cells in found.items() if cells]
    lines = []
    for name, start in plan.starts.items():
        for arm in start.arms:
            runs = results["starts"][name]["runs"]
            finished = sum(run["arm"] == arm and run["state"] == "finished" for run in runs)
            cells = [cell(found[column].get((name, arm))) for column in columns]
            lines += [[f"{name}: {arm}", str(finished), *cells]] if finished else []
    return ["start: arm", "seeds", *columns], lines


def cell(row: Optional[Row]) -> str:
    """The mean of the baseline, or the difference with half of its interval, in bold if the interval excludes zero."""
    if row is None:
        return "-"
    if row["difference"] is None:
        return number(row, "value")
    text = number(row, "difference", signed=True)
    if row["low"] is not None:
        text += f" ± {(row['high'] - row['low']) / 2:,.{digits(row)}f}"
    return f"**{text}**" if clear(row) else text


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


# The page


def page(
    plan: Plan, results: Dict[str, Any], plots: Dict[str, Dict[str, str]], remarks: Sequence[str], folder: Path
) -> Iterator[str]:
    """The body of the page as HTML."""
    yield f"<h1>{html.escape(plan.title)}</h1>"
    yield f'<p class="lead">{html.escape(plan.question.strip())}</p>'
    for remark in remarks[:1]:
        yield f"<p><b>In short.</b> {html.escape(remark)}</p>"
    header, rows = at_a_glance(plan, results)
    yield f'<div class="wide">{table(header, rows)}</div><p class="note">{GLANCE}</p>'
    yield '<div class="plots">' + "".join(picture(folder, *plot) for plot in plots[""].items()) + "</div>"
    if remarks[1:]:
        yield "<h2>Discussion</h2>"
        yield from (f"<p>{html.escape(remark)}</p>" for remark in remarks[1:])
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
    for name, start in plan.starts.items():
        yield from page_of_start(name, start, results["starts"][name], plots[name], folder)
    yield f"<h2>{PAPER}</h2><p>{html.escape(NOTE)}</p>"
    for of_paper in paper_tables(plan, results):
        yield f"<h3>{html.escape(of_paper.title)}</h3>"
        yield f'<div class="wide">{table(of_paper.header, of_paper.rows)}</div>'
        yield f'<p class="note">{html.escape(of_paper.note)}</p>'


def page_of_start(
    name: str, start: Start, of_start: Dict[str, Any], plots: Dict[str, str], folder: Path
) -> Iterator[str]:
    yield f"<h2>{html.escape(start.about)}</h2>"
    yield f"<p>{progress(of_start)}. Each run has {start.updates:,} updates.</p>"
    lines = statements(start, of_start)
    yield bullets(lines or ["There are no intervals yet, which need two seeds of an arm."])
    failed = failures(of_start)
    if failed:
        yield "<h3>Failed runs</h3>" + bullets(failed)
    arms = []
    for arm, settings in start.arms.items():
        runs = [run for run in of_start["runs"] if run["arm"] == arm]
        done = sum(run["state"] == "finished" for run in runs)
        speed = of_start["tokens_per_second"].get(arm)
        time = f"{60 * sum(run['hours'] for run in runs):,.0f}"
        arms.append(
            [f"{arm}: {settings.about}", f"{done}/{len(runs)}", time, "-" if speed is None else f"{speed:,.0f}"]
        )
    yield table(["arm", "runs", "min.", "tokens/s"], arms)
    curves = {plot: caption for plot, caption in plots.items() if ".forest" not in plot}
    if curves:
        yield '<div class="plots">' + "".join(picture(folder, *plot) for plot in curves.items()) + "</div>"
    yield from overview(start, of_start)
    for group in GROUPS:
        rows = [row for row in of_start["comparisons"] if row["group"] == group]
        if not rows:
            continue
        yield f'<h3>{sentence(group)}</h3><p class="note">{html.escape(NOTES[group])}</p>'
        forest = f"{name}.forest{GROUPS.index(group)}"
        yield '<div class="plots">'
        yield picture(folder, forest, plots[forest]) if forest in plots else ""
        tables = (measure_table(measure, list(of_arm.values())) for measure, of_arm in by_measure(rows).items())
        yield "<div>" + "".join(tables)
        yield "</div></div>"
    lines = power(of_start)
    if lines:
        yield "<h3>What this study could have seen</h3><p>The smallest true differences that it would have found with "
        yield "a probability of 80%. Smaller effects may exist: this study cannot tell.</p>" + bullets(lines)


def overview(start: Start, of_start: Dict[str, Any]) -> Iterator[str]:
    """A table of all differences, with a row for each measure and a column for each arm."""
    measured = {row["arm"] for row in of_start["comparisons"]}
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
        for measure, of_arm in by_measure([row for row in of_start["comparisons"] if row["group"] == group]).items():
            plain, unit = of_arm.get(start.baseline), next(iter(of_arm.values()))["unit"]
            yield f"<tr>{cells('td', [titled(measure, unit), number(plain, 'value') if plain else '-'])}"
            for row in map(of_arm.get, arms):
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
