"""The report: reads runs and attacked data, predicts what is missing, and writes all files together at the end."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ....core.errors import InputError
from ....core.files import sha256
from ...reporting.layout import WIDTH, align, cell, shorten, write_csv, write_json
from ...reporting.paper import HEADING, ROBUSTNESS_NOTE, SQUAD_METRICS, TABLE_5
from ...reporting.plot import Point, draw_panels
from ...reporting.report_folder import draw_if_possible, list_files, report_folder
from ..bootstrap import Estimate, significant
from ..squad_scores import SQUAD
from .attacked_predictions import predict
from .attacks import ATTACK, Attack, read_attacks
from .runs import find_runs
from .scores import MEASURES, Predictions, score_estimates

PREDICTIONS = "predictions"  # the folder that keeps them
CSV, JSON, TEXT = "robustness.csv", "robustness.json", "robustness.txt"
PLOTS = ("robustness.png", "robustness.svg")
FILES = {
    CSV: "each score of each checkpoint, with intervals and differences",
    JSON: "the same scores, and the settings of the attacks",
    PLOTS[0]: "the scores with their intervals",
    PLOTS[1]: "the scores with their intervals",
    TEXT: "what the command prints",
}
Row = dict[str, Any]
NAME_WIDTH = 30
LEGEND = """\
drop       original minus attacked, on the same examples
±          half the width of the 95% bootstrap interval over examples; drops and differences are paired
sd         standard deviation over the seeds of fine-tuning, which the intervals cover too if there are several
Examples with the same context are resampled together: the questions on a paragraph, the hypotheses on a premise. The
intervals do not cover other seeds of pre-training."""


def write_report(options: argparse.Namespace) -> str:
    """Score the checkpoints on all data, write FILES to the output, and return the text to print.

    Predictions are kept in the output, so that the same command resumes after an interruption, and with more data or
    checkpoints predicts only what is missing. Raises InputError before anything is predicted for invalid runs and data,
    and for an output that cannot be written.
    """
    attacks = read_attacks(options.original, options.attacked)
    tasks = list(dict.fromkeys(attack.task for attack in attacks))
    if options.paper and SQUAD not in tasks:
        raise InputError("--paper: the paper attacks only SQuAD; omit it")
    runs = find_runs(options.runs, tasks, options.baseline)
    attacks = [attack for attack in attacks if any(run.task == attack.task for run in runs)]
    wanted: dict[str, set[tuple[str, ...]]] = {task: set() for task in tasks}
    for attack in attacks:
        wanted[attack.task] |= {example.texts for example in (*(attack.originals or ()), *attack.attacked)}

    with report_folder(options.output, FILES) as folder:
        predictions = predict(runs, wanted, options.output / PREDICTIONS)
        rows: list[Row] = []
        for attack in attacks:
            groups: dict[str, list[Predictions]] = {}
            for run, found in zip(runs, predictions):
                if run.task == attack.task:
                    groups.setdefault(run.name, []).append(found)
            rows += attack_rows(attack, groups, options.baseline)
        printed = text(rows, options.paper)
        write_json({"scores": rows, "attacks": list(map(_description, attacks))}, folder / JSON)
        (folder / TEXT).write_text(printed + "\n", encoding="utf-8")
        write_csv(rows, folder / CSV)
        draw_if_possible(draw_robustness, rows, [folder / name for name in PLOTS])
    return "\n".join([printed, "", *list_files(options.output, FILES)])


def _description(attack: Attack) -> dict[str, Any]:
    file = attack.path / ATTACK if attack.path.is_dir() else attack.path
    found = {"attack": attack.name, "data": attack.data, "file": str(file), "sha256": sha256(file)}
    return {**found, "settings": attack.settings}


def attack_rows(attack: Attack, groups: Mapping[str, Sequence[Predictions]], baseline: str | None = None) -> list[Row]:
    """A row for each score and checkpoint: on the original and the attacked examples, the drop, and the differences.

    ``groups`` has the predictions of each seed of each checkpoint. All are in percent, each with its 95% interval. What
    is undefined is None: intervals of a single context, the original and the drop of data without, and differences
    without a ``baseline`` or if the baseline has no run on the task.
    """
    names = list(groups)
    of_baseline = names.index(baseline) if baseline in names else None
    rows = []
    for score, found in score_estimates(attack, list(groups.values()), of_baseline).items():
        for number, name in enumerate(names):
            row: Row = {"attack": attack.name, "data": attack.data, "checkpoint": name, "seeds": len(groups[name])}
            row |= {"score": score, "examples": len(attack.attacked), "total": attack.total}
            row["baseline"] = baseline if of_baseline not in (None, number) else None
            for key in MEASURES:
                columns = [key, *(f"{key}_{part}" for part in Estimate._fields[1:])]
                row |= zip(columns, found[key][number]) if key in found else dict.fromkeys(columns)
            rows.append(row)
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
    p_values = {
        f"{row['checkpoint']}, {row['attack']} of {row['data']}, {row['score']} {key}": row[f"{key}_difference_p"]
        for row in rows
        for key in MEASURES
    }
    blocks.append("\n".join([LEGEND, *filter(None, [significant(p_values)])]))
    if show_paper:
        lines = [["", "questions", *(f"{name} {key}" for name in SQUAD_METRICS for key in MEASURES)]]
        for paper in TABLE_5:
            numbers = (f"{number:.2f}" for number in paper[3:])
            lines.append([f"{paper.attack}, {paper.model}", str(paper.questions), *numbers])
        blocks.append("\n".join([f"{HEADING}: SQuAD", *align(lines, width=WIDTH), *ROBUSTNESS_NOTE.splitlines()]))
    return "\n\n".join(blocks)


def _block(rows: Sequence[Row]) -> list[str]:
    """A line for each checkpoint, one for its spread over seeds, and one for the difference from the baseline."""
    names = list(dict.fromkeys(row["score"] for row in rows))
    measures = [key for key in MEASURES if rows[0][key] is not None]
    lines = [["", "seeds", *(f"{name} {key}" for name in names for key in measures)]]
    for checkpoint in dict.fromkeys(row["checkpoint"] for row in rows):
        of_checkpoint = [row for row in rows if row["checkpoint"] == checkpoint]
        seeds, baseline = of_checkpoint[0]["seeds"], of_checkpoint[0]["baseline"]

        def line(label: str, count: str, part: str, form: str, of_checkpoint: Sequence[Row] = of_checkpoint) -> None:
            cells = [(row, key + part) for row in of_checkpoint for key in measures]
            shown = [cell(row[key], form, row.get(f"{key}_low"), row.get(f"{key}_high")) for row, key in cells]
            lines.append([shorten(label, NAME_WIDTH), count, *shown])

        line(checkpoint, str(seeds), "", ".2f")
        if seeds > 1:
            line("  sd", "", "_seed_sd", ".2f")
        if baseline is not None:
            line(f"  minus {baseline}", "", "_difference", "+.2f")
    return align(lines, width=WIDTH)


def draw_robustness(rows: Sequence[Row], *paths: Path) -> None:
    """Draw a panel for each attack, its data and score, as .png or .svg by suffix; ``rows`` are of ``attack_rows``.

    Each checkpoint has a hollow point for the original data and below it a filled one for the attacked data, with 95%
    intervals. Raises InputError if matplotlib is missing.
    """
    points = []
    for row in rows:
        title = f"{row['attack']}: {row['data']}, {row['score']} (%)"
        for key, shift in (("original", -0.15), ("attacked", 0.15)):
            if row[key] is not None:
                ends = row[f"{key}_low"], row[f"{key}_high"]
                points.append(Point(title, row["checkpoint"], row[key], *ends, shift, key == "original"))
    draw_panels(points, 2, 9, "hollow: original; filled: attacked; lines: 95% intervals", *paths)
