"""Comparisons as tables: for a terminal, for Markdown, and for a page. Nothing else formats a number."""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup, escape

from .compare import KEY, clear
from .layout import WIDTH, align
from .measures import GROUPS, Measure, measure_of

Row = Mapping[str, Any]
LEGEND = {
    "±": "half the width of the 95% interval",
    "n": "seeds",
    "items": "what was measured: examples, targets, or pairs of words or sentences",
    "sd": "standard deviation over the seeds",
    "best": "the best seed",
    "difference": "from the baseline",
    "p": "two-sided p value of the difference",
    "Holm": "the same after Holm's correction for all differences of a group of measures",
    "could see": "the smallest true difference that would have been found with a probability of 80%",
    "seeds for 1.0": "seeds on each side for a two-sided 5% t test to find a true difference of 1.0 with power 0.8",
}


@dataclass
class Table:
    """A table of texts, with its caption and a note below it."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    note: str = ""


def show(comparisons: pd.DataFrame, notes: Sequence[str] = ()) -> str:
    """All comparisons for a terminal of 120 columns, with a legend, notes, and what remains after Holm's correction.

    A line for each measure if there is one arm, else a block of lines.
    """
    shown = [heading for heading in COLUMNS if any(COLUMNS[heading](row) != "" for row in _rows(comparisons))]
    arms = comparisons["arm"].unique()
    lines: list[str | list[str]] = [[arms[0] if len(arms) == 1 else "", *shown]]
    for (title, _), rows in _by_measure(comparisons):
        cells = [[COLUMNS[one](row) or "-" for one in shown] for row in rows]
        if len(arms) == 1:
            lines += [[title, *row_cells] for row_cells in cells]
        else:
            lines += [title, *([f"  {row['arm']}", *row_cells] for row, row_cells in zip(rows, cells))]
    blocks = [align(lines, width=WIDTH), _explained([*legend(comparisons).items(), *_notes(comparisons)])]
    blocks.append([line for note in (*notes, significant(comparisons)) for line in textwrap.wrap(note, WIDTH)])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def legend(comparisons: pd.DataFrame) -> dict[str, str]:
    """What the headings of the tables mean."""
    rows = _rows(comparisons)
    return {one: LEGEND[one] for one in LEGEND if one == "±" or any(COLUMNS[one](row) != "" for row in rows)}


def show_arms(comparisons: pd.DataFrame, notes: Sequence[str] = ()) -> str:
    """The means for a terminal, with a legend and notes: a line for each arm and a column for each measure."""
    table = by_arm(comparisons)
    wrapped = [line for note in notes for line in textwrap.wrap(note, WIDTH)]
    return "\n".join([*align([table.header, *table.rows], width=WIDTH), "", *_explained(_notes(comparisons)), *wrapped])


def tables(comparisons: pd.DataFrame) -> Iterator[Table]:
    """A table for a page for each measure: the mean of each arm, and its difference, also as a line."""
    for (title, measure), rows in _by_measure(comparisons):
        shown = [heading for heading in COLUMNS if any(COLUMNS[heading](row) != "" for row in rows)]
        better = {1: ", more is better", -1: ", less is better", 0: ""}[measure.better]
        body = [
            [row["arm"], *(_marked(row, measure, COLUMNS[one](row), one == "difference") or "-" for one in shown)]
            for row in rows
        ]
        drawn = _intervals(rows)
        body = [line + ([one] if drawn else []) for line, one in zip(body, drawn or body)]
        header = ["", *shown, *(["differences" if "difference" in shown else "values"] if drawn else [])]
        yield Table(header, body, sentence(title) + better, measure.note)


def _intervals(rows: Sequence[Row]) -> list[Markup]:
    """A picture for each row of its interval on a scale that all share; empty if there is none."""
    what, low, high = ("difference", "difference_low", "difference_high")
    if all(math.isnan(row[low]) for row in rows):
        what, low, high = ("value", "low", "high")
    ends = [row[end] for row in rows for end in (low, high) if not math.isnan(row[end])]
    if not ends:
        return []
    least, most = min([0, *ends] if what == "difference" else ends), max([0, *ends] if what == "difference" else ends)

    def x(value: float) -> str:
        return f"{3 + 154 * (value - least) / ((most - least) or 1):.0f}"

    zero = f'<path class="zero" d="M{x(0)} 0v16"/>' if what == "difference" else ""
    pictures = []
    for row in rows:
        line = ""
        if not math.isnan(row[low]):
            line = f'<path d="M{x(row[low])} 8H{x(row[high])}"/><circle cx="{x(row[what])}" cy="8" r="3"/>'
        pictures.append(Markup(f'<svg class="{verdict(row)}" width="160" height="16">{zero}{line}</svg>'))
    return pictures


def wide(comparisons: pd.DataFrame, markdown: bool = False) -> Table:
    """A row for each measure and a column for each arm: the baseline's mean, and differences with half an interval.

    A difference is in bold if its interval excludes zero, and on a page green if it is better and red if it is worse.
    """
    arms = list(dict.fromkeys(comparisons["arm"]))
    body = []
    for (title, measure), rows in _by_measure(comparisons):
        by_arm = {row["arm"]: row for row in rows}
        body.append([title, *(short(by_arm.get(arm), measure, markdown) for arm in arms)])
    return Table(["", *arms], body)


def by_arm(comparisons: pd.DataFrame) -> Table:
    """``wide`` with a row for each arm and a column for each measure."""
    table = wide(comparisons)
    header, *rows = zip(table.header, *table.rows)
    return Table(header, rows, note=" ".join(f"{title}: {note}." for title, note in _notes(comparisons)))


def short(row: Row | None, measure: Measure, markdown: bool = False) -> str:
    """The mean of a baseline, or the difference of another arm with half of its interval."""
    if row is None:
        return "-"
    if math.isnan(row["difference"]):
        return number(row, "value")
    text = COLUMNS["difference"](row)
    if markdown:
        return f"**{text}**" if clear(row) else text
    return _marked(row, measure, text, True)


def markdown(table: Table) -> list[str]:
    """A table as lines of Markdown; the numbers are on the right."""
    head = [f"| {' | '.join(table.header)} |", "| --- " + "| ---: " * (len(table.header) - 1) + "|"]
    return head + [f"| {' | '.join(row)} |" for row in table.rows]


def significant(comparisons: pd.DataFrame) -> str:
    """Which differences remain after Holm's correction; empty if nothing was tested."""
    tested = comparisons[comparisons["holm"].notna()]
    if tested.empty:
        return ""
    named = [f"{row['arm']}, {title_of(row)}" for row in _rows(tested) if row["holm"] < 0.05]
    return (
        f"After Holm's correction for all measures and arms of a group, {len(named)} of {len(tested)} differences are "
        f"significant{': ' if named else ''}{'; '.join(named)}."
    )


def findings(comparisons: pd.DataFrame) -> Iterator[str]:
    """In sentences: what is clear for each arm, how much of it is chance, and what the margins say."""
    tested = comparisons[comparisons["difference_low"].notna()]
    for arm, arm_rows in tested.groupby("arm", sort=False):
        rows = [row for row in _rows(arm_rows) if measure_of(row["measure"]).better]
        parts = [
            f"{word} on {', '.join(names)}"
            for word in ("better", "worse")
            if (names := [title_of(row, unit=False) for row in rows if verdict(row) == word])
        ]
        rest = sum(not verdict(row) for row in rows)
        if rows:
            yield f"{arm}: {'; '.join([*parts, f'no clear difference on {rest} of {len(rows)} measures'])}."
    if len(tested):
        yield (
            f"{sum(map(clear, _rows(tested)))} of {len(tested)} intervals exclude zero. If no arm had any effect, "
            f"about {0.05 * len(tested):.1f} would, because each is a 95% interval. Many measures are related."
        )
    if text := significant(comparisons):
        yield text
    with_margin = comparisons[comparisons["equivalent"].notna()]
    for title, rows in _by_measure(with_margin):
        excluded = ", ".join(row["arm"] for row in rows if row["equivalent"]) or "no arm"
        margin, arms = rows[0]["margin"], ", ".join(row["arm"] for row in rows)
        yield (
            f"{title[0]}: a difference larger than {margin:g} is excluded for {excluded}; tested: {arms} (two "
            "one-sided 5% tests)."
        )


def verdict(row: Row) -> str:
    """``better`` or ``worse`` if a difference is clear and the measure has a good direction, else an empty string."""
    better = measure_of(row["measure"]).better
    if not clear(row) or not better:
        return ""
    return "better" if row["difference"] * better > 0 else "worse"


def title_of(row: Row, unit: bool = True) -> str:
    """What a row is about."""
    return measure_of(row["measure"]).titled(row["data"], row["part"], unit)


def decimals(unit: str, value: float) -> int:
    """Decimal places of a measure of about this size: counts are integers, and losses and small shares need more."""
    if unit not in ("", "%", "bits"):
        return 0
    if unit == "%" and 0 < abs(value) < 0.01:
        return 5
    return 2 if abs(value) >= 1 and unit != "bits" else 3


def number(row: Row, column: str, low: str = "", high: str = "", signed: bool = False) -> str:
    """A number of a row with half the width of its interval; empty if it is unknown."""
    if math.isnan(row[column]):
        return ""
    places = row.get("places", decimals(measure_of(row["measure"]).unit, row["value"]))
    while clear(row) and not round(row["difference"], places):  # a clear difference is not shown as zero
        places += 1
    zero = "z" if signed else ""  # +0.00, not -0.00
    text = f"{row[column]:{'+' if signed else ''}{zero},.{places}f}".replace("-", "\u2212")
    if low and not math.isnan(row[low]):
        text += f" ± {(row[high] - row[low]) / 2:,.{places}f}"
    return text


def _count(column: str) -> Any:
    return lambda row: "" if math.isnan(row[column]) else f"{int(row[column]):,}"


def _p(column: str) -> Any:
    return lambda row: "" if math.isnan(row[column]) else "<0.001" if row[column] < 0.001 else f"{row[column]:.3f}"


# heading -> text of a row, empty if it has no value
COLUMNS: dict[str, Any] = {
    "n": _count("seeds"),
    "items": _count("items"),
    "value": lambda row: number(row, "value", "low", "high"),
    "sd": lambda row: number(row, "sd"),
    "median": lambda row: number(row, "median"),
    "best": lambda row: number(row, "best"),
    "difference": lambda row: number(row, "difference", "difference_low", "difference_high", signed=True),
    "p": _p("p"),
    "Holm": _p("holm"),
    "could see": lambda row: number(row, "detectable"),
    "seeds for 1.0": _count("seeds_needed"),
}


def _marked(row: Row, measure: Measure, text: str, is_difference: bool) -> str:
    if not (is_difference and text and clear(row)):
        return text
    return Markup('<b class="{}">{}</b>').format(verdict(row), escape(text))


def _rows(comparisons: pd.DataFrame) -> list[Row]:
    return comparisons.to_dict("records")


def _notes(comparisons: pd.DataFrame) -> list[list[str]]:
    """The title and the note of each measure that has one."""
    titles = {measure.note: title for (title, measure), _ in _by_measure(comparisons) if measure.note}
    return [[title, note] for note, title in titles.items()]


def _explained(terms: Sequence[Sequence[str]]) -> list[str]:
    """Terms with what they mean, in lines of a terminal."""
    width = max((len(term) for term, _ in terms), default=0)
    lines = []
    for term, meaning in terms:
        first, *rest = textwrap.wrap(meaning, WIDTH - width - 2)
        lines += [f"{term:{width}}  {first}", *(" " * (width + 2) + line for line in rest)]
    return lines


def _by_measure(comparisons: pd.DataFrame) -> Iterator[tuple[tuple[str, Measure], list[Row]]]:
    """The title of each measure with its unit, the measure, and the rows of its arms, in the order of the groups."""
    names = list(GROUPS)
    order = comparisons["measure"].map(lambda name: names.index(measure_of(name).group))
    ordered = comparisons.loc[order.sort_values(kind="stable").index]
    for (_, data, name, part), rows in ordered.groupby(KEY, sort=False):
        measure = measure_of(name)
        # the same for all arms: as many as the smallest value needs, if they fit
        sizes = [abs(value) for value in rows["value"] if value] or [0.0]
        places = min(decimals(measure.unit, min(sizes)), 3 if max(sizes) >= 1 else 5)
        yield (measure.titled(data, part), measure), _rows(rows.assign(places=places))


def sentence(text: str) -> str:
    """The text with a capital."""
    return text[:1].upper() + text[1:]
