"""What the figures of a study say, in sentences and in numbers."""

from collections.abc import Sequence
from typing import Any

from ..reporting.comparison import decimals
from .figures import (
    COST,
    DETECTION,
    FALSE_NEGATIVES,
    FINE_TUNING,
    HELD_OUT,
    IN_TRAINING,
    OTHER_TEXT,
    RECOVERED,
    WORDS,
)
from .plan import Start

GROUPS = (RECOVERED, HELD_OUT, OTHER_TEXT, IN_TRAINING, FALSE_NEGATIVES, DETECTION, WORDS, FINE_TUNING, COST)
NOTES = {
    RECOVERED: "The oracle shows what can be gained at most: it trains on text without synonyms. 0% is the baseline, "
    "and 100% is the oracle with the same seed. Synonyms of the masked word count as right.",
    HELD_OUT: "Text that no run was trained on, masked several times; the same masks for all runs. The loss is that of "
    "plain masked LM.",
    OTHER_TEXT: "The same figures for text of another source than the training text, or for a part of the training "
    "text if the name says so.",
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
    COST: "Short training runs of all arms in turns, one at a time.",
}
Row = dict[str, Any]


def clear(row: Row) -> bool:
    """Whether the interval of a difference excludes zero."""
    return row["low"] is not None and (row["low"] > 0 or row["high"] < 0)


def verdict(row: Row) -> str:
    """``better`` or ``worse`` if the difference is clear and the measure has a good direction, else an empty string."""
    if not clear(row) or not row["better"]:
        return ""
    return "better" if row["difference"] * row["better"] > 0 else "worse"


def findings(start: Start, start_results: dict[str, Any]) -> list[str]:
    """A sentence for each arm: on which measures it is clearly better or worse than the baseline, or neither."""
    lines = []
    for arm, settings in start.arms.items():
        rows = [
            row
            for row in start_results["comparisons"]
            if row["arm"] == arm and row["low"] is not None and row["better"]
        ]
        if arm == start.baseline or not rows:
            continue
        parts = []
        for word in ("better", "worse"):
            clear_rows = [row for row in rows if verdict(row) == word]
            if clear_rows:
                parts.append(f"{word} on " + ", ".join(row["measure"] for row in clear_rows))
        rest = sum(not verdict(row) for row in rows)
        parts.append(f"no clear difference on {rest} of {len(rows)} measures")
        lines.append(f"{arm} ({settings.about}): {'; '.join(parts)}.")
    return lines


def statements(start: Start, start_results: dict[str, Any]) -> list[str]:
    """What is clear in a start, and what is not."""
    return [
        *findings(start, start_results),
        *chance(start_results),
        *corrected(start_results),
        *unused_margins(start, start_results),
    ]


def chance(start_results: dict[str, Any]) -> list[str]:
    """How many intervals exclude zero, and how many would if no arm had any effect."""
    rows = [row for row in start_results["comparisons"] if row["low"] is not None and row["group"] != COST]
    if not rows:
        return []
    return [
        f"{sum(map(clear, rows))} of {len(rows)} intervals exclude zero. If no arm had any effect, about "
        f"{0.05 * len(rows):.1f} would, because each is a 95% interval. Many measures are related."
    ]


def corrected(start_results: dict[str, Any]) -> list[str]:
    """Which differences remain after Holm's correction, and which are shown to be within their margin."""
    lines = []
    # a share of the oracle's gain is a held-out figure on another scale
    rows = [row for row in start_results["comparisons"] if row.get("holm") is not None and row["better"]]
    rows = [row for row in rows if row["group"] != RECOVERED]
    if rows:
        significant = [row for row in rows if row["holm"] < 0.05]
        phrases = [
            f"{arm} on " + ", ".join(row["measure"] for row in significant if row["arm"] == arm)
            for arm in _in_order(significant, "arm")
        ]
        lines.append(
            f"After Holm's correction for all arms and measures of a group, {len(significant)} of {len(rows)} "
            f"differences are significant{': ' if significant else ''}{'; '.join(phrases)}."
        )
    tested = [row for row in start_results["comparisons"] if row.get("equivalent") is not None]
    same: dict[tuple[str, str, str], list[str]] = {}  # measures with the same result
    for measure in _in_order(tested, "measure"):
        measure_rows = [row for row in tested if row["measure"] == measure]
        excluded = ", ".join(row["arm"] for row in measure_rows if row["equivalent"])
        arms = ", ".join(row["arm"] for row in measure_rows)
        same.setdefault((f"{measure_rows[0]['margin']:g}", excluded or "no arm", arms), []).append(measure)
    for (margin, excluded, arms), measures in same.items():
        what = f"a difference larger than {margin} is excluded for {excluded}; tested: {arms}"
        lines.append(f"{'; '.join(measures)}: {what} (two one-sided 5% tests).")
    return lines


def unused_margins(start: Start, start_results: dict[str, Any]) -> list[str]:
    """The plan's margins that nothing was tested against, for example because the name has a mistake."""
    rows = [row for row in start_results["comparisons"] if row.get("equivalent") is not None]
    used = {name for row in rows for name in (row["measure"], row["group"])}
    unused = [name for name in start.margins if start_results["comparisons"] and name not in used]
    return [f"No difference was tested against the margin of {name}." for name in unused]


def _in_order(rows: Sequence[Row], key: str) -> list[str]:
    return list(dict.fromkeys(row[key] for row in rows))


def number(row: Row, key: str, signed: bool = False) -> str:
    value = row[key]
    if value is None:
        return "-"
    zero = "z" if key == "difference" else ""  # +0.00, not -0.00, but the end of an interval keeps its sign
    return f"{value:{'+' if signed else ''}{zero},.{places(row)}f}".replace("-", "\u2212")


def places(row: Row) -> int:
    """Decimal places of a measure, and more if a clear difference would be zero with them."""
    count = decimals(row["unit"], row["value"])
    while row.get("difference") and clear(row) and not round(row["difference"], count):
        count += 1
    return count


def titled(measure: str, unit: str) -> str:
    """A measure with its unit, unless the unit is a word of its name."""
    return measure if unit in measure else f"{measure} ({unit})"


def by_measure(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """The rows of each measure by arm, in the order of the rows."""
    measures: dict[str, dict[str, Row]] = {}
    for row in rows:
        measures.setdefault(row["measure"], {})[row["arm"]] = row
    return measures


def hours(results: dict[str, Any]) -> str:
    training = sum(run["hours"] for start in results["starts"].values() for run in start["runs"])
    return f"{training:.1f} hours of training and {results['other_hours']:.1f} hours of preparation and measuring"


def progress(start_results: dict[str, Any]) -> str:
    states = [run["state"] for run in start_results["runs"]]
    text = f"{states.count('finished')} of {len(states)} runs are finished"
    return text + (f", and {states.count('failed')} failed" if "failed" in states else "")


def begun(start_results: dict[str, Any]) -> bool:
    """Whether a run is finished or failed, so that there is something to report."""
    return any(run["state"] in ("finished", "failed") for run in start_results["runs"])


def planned(results: dict[str, Any]) -> str:
    """A line with the starts that have nothing to report yet, or an empty one."""
    names = [name for name, start_results in results["starts"].items() if not begun(start_results)]
    return f"Planned, without a finished run: {', '.join(names)}." if names else ""


def lengths(start: Start) -> str:
    """The updates of each run, and of the arms that differ."""
    others = [f"{arm}: {settings.updates:,}" for arm, settings in start.arms.items() if settings.updates]
    return f"{start.updates:,} updates each" + (f" ({', '.join(others)})" if others else "")


def failures(start_results: dict[str, Any]) -> list[str]:
    return [
        f"{run['arm']}, seed {run['seed']}: {run['error']}" for run in start_results["runs"] if run["state"] == "failed"
    ]


def power(start_results: dict[str, Any]) -> list[str]:
    """For each measure, the smallest difference that the study would have found with a probability of 80%."""
    rows_by_measure: dict[str, list[Row]] = {}
    for row in start_results["comparisons"]:
        if row["detectable"] is not None and row["group"] != COST:
            rows_by_measure.setdefault(row["measure"], []).append(row)
    lines = []
    for measure, rows in rows_by_measure.items():
        least, most = (end(rows, key=lambda row: row["detectable"]) for end in (min, max))
        ends = dict.fromkeys(number(row, "detectable") for row in (least, most))
        unit = {"%": " points", "": ""}.get(least["unit"], f" {least['unit']}")
        lines.append(f"{measure}: {' to '.join(ends)}{unit}")
    return lines


def short(row: Row | None) -> str:
    """The mean of the baseline, or the difference with half of its interval, in bold if the interval excludes zero."""
    if row is None:
        return "-"
    if row["difference"] is None:
        return number(row, "value")
    text = number(row, "difference", signed=True)
    if row["low"] is not None:
        text += f" ± {(row['high'] - row['low']) / 2:,.{places(row)}f}"
    return f"**{text}**" if clear(row) else text


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
