"""The report: reads runs and attacked data, predicts what is missing, and writes all files together at the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....core.errors import InputError
from ....core.files import sha256
from ...attacks.glue_files import RECORD
from ...reporting.comparison import (
    ATTACKED,
    DROP,
    ORIGINAL,
    UNDER,
    Comparison,
    comparison_lines,
    corrected,
    report_files,
    significant,
    write_report,
)
from ...reporting.layout import WIDTH, align
from ...reporting.paper import HEADING, ROBUSTNESS_NOTE, SQUAD_METRICS, TABLE_5
from ...reporting.report_folder import list_files, report_folder
from ..squad import SQUAD
from .attacked_predictions import Texts, predict
from .attacks import Attack, read_attacks
from .runs import FineTuned, find_runs
from .scores import Predictions, attack_rows

NAME = "robustness"
PREDICTIONS = "predictions"  # the folder that keeps them
FILES = report_files(NAME)
LEGEND = """\
drop: original minus attacked, on the same examples. ±: half the width of the 95% bootstrap interval over examples, and
over the seeds of fine-tuning if there are several; drops and differences are paired. Examples with the same context are
resampled together: the questions on a paragraph, the hypotheses on a premise. The intervals do not cover other seeds of
pre-training."""


@dataclass(frozen=True)
class RobustnessOptions:
    """Which fine-tuned checkpoints to score on which attacked data, and the folder of the report."""

    runs: Sequence[str]  # folders of runs, and files CHECKPOINT.pt or NAME=CHECKPOINT.pt
    attacked: Sequence[Path]
    output: Path
    original: Path | None = None  # what was attacked; None for AdvGLUE
    baseline: str | None = None
    paper: bool = False  # show the paper's numbers, too


def evaluate_robustness(options: RobustnessOptions) -> str:
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
    tuned = {run.task for run in runs}
    without_runs = [attack for attack in attacks if attack.task not in tuned]
    attacks = [attack for attack in attacks if attack.task in tuned]

    with report_folder(options.output, FILES) as folder:
        predictions = predict(runs, texts_of(attacks), options.output / PREDICTIONS)
        rows = corrected(
            [
                row
                for attack in attacks
                for row in attack_rows(attack, by_name(attack.task, runs, predictions), options.baseline)
            ]
        )
        text = robustness_text(attacks, rows, without_runs, options.paper)
        write_report(folder, NAME, rows, text, attacks=list(map(_description, attacks)))
    return "\n".join([text, "", *list_files(options.output, FILES)])


def texts_of(attacks: Sequence[Attack]) -> dict[str, set[Texts]]:
    """The texts to predict for each task."""
    wanted: dict[str, set[Texts]] = {}
    for attack in attacks:
        examples = (*(attack.originals or ()), *attack.attacked)
        wanted.setdefault(attack.task, set()).update(example.texts for example in examples)
    return wanted


def by_name(
    task: str, runs: Sequence[FineTuned], all_predictions: Sequence[Predictions]
) -> dict[str, list[Predictions]]:
    """The predictions of each seed of each checkpoint on a task; ``all_predictions`` are those of the runs."""
    groups: dict[str, list[Predictions]] = {}
    for run, predictions in zip(runs, all_predictions):
        if run.task == task:
            groups.setdefault(run.name, []).append(predictions)
    return groups


def robustness_text(
    attacks: Sequence[Attack],
    rows: Sequence[Comparison],
    without_runs: Sequence[Attack] = (),
    show_paper: bool = False,
) -> str:
    """The rows for a terminal of 120 columns, how much of the data each attack changed, and which have no run."""
    notes = []
    for attack in attacks:
        total = "" if attack.originals is None else f" of {attack.total:,}"
        kind = "questions" if attack.task == SQUAD else "examples"
        notes.append(f"{attack.data}{UNDER}{attack.name}: {len(attack.attacked):,}{total} {kind}")
    notes += [
        f"{attack.data}{UNDER}{attack.name}: left out, because no run is on {attack.task}" for attack in without_runs
    ]
    blocks = [comparison_lines(rows), [*notes, *LEGEND.splitlines(), *significant(rows)]]
    if show_paper:
        measures = (f"{name} {kind}" for name in SQUAD_METRICS for kind in (ORIGINAL, ATTACKED, DROP))
        lines = [["", "questions", *measures]]
        for paper in TABLE_5:
            numbers = (f"{number:.2f}" for number in paper[3:])
            lines.append([f"{paper.attack}, {paper.model}", str(paper.questions), *numbers])
        blocks.append([f"{HEADING}: SQuAD", *align(lines, width=WIDTH), *ROBUSTNESS_NOTE.splitlines()])
    return "\n\n".join(map("\n".join, blocks))


def _description(attack: Attack) -> dict[str, Any]:
    file = attack.path / RECORD if attack.path.is_dir() else attack.path
    examples = {"examples": len(attack.attacked), "total": attack.total}
    description = {"attack": attack.name, "data": attack.data, **examples, "file": str(file), "sha256": sha256(file)}
    return {**description, "settings": attack.settings}
