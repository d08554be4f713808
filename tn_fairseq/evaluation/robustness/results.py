"""The rows of the report, and their layout for a terminal."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...reporting.layout import WIDTH, align, shorten
from ...reporting.paper import HEADING, ROBUSTNESS_NOTE, TABLE_5
from ..bootstrap import estimate, mean
from ..squad_score import best_score, exact_match, f1
from .attacks import Attack, Example
from .runs import SQUAD

Row = dict[str, Any]
Groups = dict[str, np.ndarray]  # the values of each checkpoint by name, (seeds, examples)

# what is measured in each example, in percent
SCORES = {SQUAD: {"EM": exact_match, "F1": f1}}
ACCURACY = {"accuracy": operator.eq}
MEASURES = ("original", "attacked", "drop")
NAME_WIDTH = 30
LEGEND = """\
drop       original minus attacked, on the same examples
±          half the width of the 95% bootstrap interval over examples; drops and differences are paired
sd         standard deviation over the seeds of fine-tuning, which the intervals cover too if there are several
The intervals do not cover other seeds of pre-training, and examples with the same text are taken as independent."""


def scores(task: str) -> Mapping[str, Callable[[str, str], float]]:
    """The scores of a prediction and a correct answer, between 0 and 1, by name."""
    return SCORES.get(task, ACCURACY)


def values(
    score: Callable[[str, str], float], examples: Sequence[Example], seeds: Sequence[Mapping[tuple[str, ...], str]]
) -> np.ndarray:
    """The score of each example in percent for each seed, given its predictions: (seeds, examples)."""
    return np.array(
        [[100.0 * best_score(score, found[example.texts], example.golds) for example in examples] for found in seeds]
    )


def attack_rows(
    attack: Attack, score: str, originals: Groups | None, attacked: Groups, baseline: str | None = None
) -> list[Row]:
    """A row for each checkpoint: ``score`` on the original and the attacked examples, the drop, and their differences.

    Each with its 95% interval. What is undefined is None: intervals of a single example, the original and the drop of
    data without, and differences without a ``baseline`` or if the baseline has no run on the task.
    """
    measures = {"attacked": attacked}
    if originals is not None:
        drops = {name: originals[name] - found for name, found in attacked.items()}
        measures = {"original": originals, "attacked": attacked, "drop": drops}
    names = list(attacked)
    of_baseline = names.index(baseline) if baseline in names else None
    # all with the same resamples, so that differences of drops are those of the scores
    found = {key: estimate(list(groups.values()), mean, of_baseline) for key, groups in measures.items()}
    rows = []
    for number, name in enumerate(names):
        is_compared = of_baseline not in (None, number)
        row: Row = {"attack": attack.name, "data": attack.data, "checkpoint": name, "seeds": len(attacked[name])}
        row |= {"score": score, "examples": len(attack.attacked), "total": attack.total}
        row["baseline"] = baseline if is_compared else None
        for key in MEASURES:
            estimates, differences = found.get(key, ([], []))
            one = estimates[number] if estimates else (None,) * 4
            row |= dict(zip((key, f"{key}_low", f"{key}_high", f"{key}_seed_sd"), one, strict=True))
            other = differences[number] if estimates and is_compared else (None,) * 3
            row |= dict(zip((f"{key}_{part}" for part in ("difference", "difference_low", "difference_high")), other))
        if len(attack.attacked) == 1:
            row |= {key: None for key in row if key.endswith(("_low", "_high"))}
        rows.append({key: None if value != value else value for key, value in row.items()})
    return rows


def text(rows: Sequence[Row], show_paper: bool = False) -> str:
    """The rows for a terminal of 120 columns: a block for each attack and its data."""
    blocks = []
    for attack, data in dict.fromkeys((row["attack"], row["data"]) for row in rows):
        of_block = [row for row in rows if (row["attack"], row["data"]) == (attack, data)]
        examples, total = of_block[0]["examples"], of_block[0]["total"]
        count = f"{examples:,} of {total:,}" if of_block[0]["original"] is not None else f"{examples:,}"
        kind = "questions" if data == SQUAD else "examples"
        blocks.append("\n".join([f"{attack}: {data}, {count} {kind}", *_block(of_block)]))
    blocks.append(LEGEND)
    if show_paper:
        blocks.append("\n".join([f"{HEADING}: SQuAD", *_paper(), *ROBUSTNESS_NOTE.splitlines()]))
    return "\n\n".join(blocks)


def _block(rows: Sequence[Row]) -> list[str]:
    """A line for each checkpoint, one for its spread over seeds, and one for the difference from the baseline."""
    names = list(dict.fromkeys(row["score"] for row in rows))
    measures = [key for key in MEASURES if rows[0][key] is not None]
    lines: list[list[str]] = [["", "seeds", *(f"{name} {key}" for name in names for key in measures)]]
    for checkpoint in dict.fromkeys(row["checkpoint"] for row in rows):
        of_checkpoint = [row for row in rows if row["checkpoint"] == checkpoint]
        seeds, baseline = of_checkpoint[0]["seeds"], of_checkpoint[0]["baseline"]
        cells = [(row, key) for row in of_checkpoint for key in measures]
        line = [shorten(checkpoint, NAME_WIDTH), str(seeds)]
        lines.append(line + [_with_spread(row, key, f"{key}_low", f"{key}_high", ".2f") for row, key in cells])
        if seeds > 1:
            lines.append(["  sd", ""] + [f"{row[f'{key}_seed_sd']:.2f}" for row, key in cells])
        if baseline is not None:
            line = [shorten(f"  minus {baseline}", NAME_WIDTH), ""]
            parts = ("difference", "difference_low", "difference_high")
            lines.append(line + [_with_spread(row, *(f"{key}_{part}" for part in parts), "+.2f") for row, key in cells])
    return align(lines, width=WIDTH)


def _with_spread(row: Row, value: str, low: str, high: str, form: str) -> str:
    half = "" if row[low] is None else f" ± {(row[high] - row[low]) / 2:.2f}"
    return f"{row[value]:{form}}{half}"


def _paper() -> list[str]:
    lines: list[list[str]] = [["", "questions", *(f"{name} {key}" for name in ("EM", "F1") for key in MEASURES)]]
    for row in TABLE_5:
        numbers = row[3:]  # of EM and F1
        lines.append([f"{row.attack}, {row.model}", str(row.questions), *(f"{number:.2f}" for number in numbers)])
    return align(lines, width=WIDTH)
