"""The report: reads runs and attacked questions, predicts what is missing, and writes all files at the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ....core.files import sha256
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
from .attacked_predictions import predict
from .attacks import Attack, read_attacks
from .runs import find_runs
from .scores import Predictions, attack_rows

NAME = "robustness"
PREDICTIONS = "predictions"  # the folder that keeps them
FILES = report_files(NAME)
LEGEND = """\
drop: original minus attacked, on the same questions. ±: half the width of the 95% bootstrap interval over questions,
and over the seeds of fine-tuning if there are several; drops and differences are paired. The questions on a paragraph
are resampled together. The intervals do not cover other seeds of pre-training."""


@dataclass(frozen=True)
class RobustnessOptions:
    """Which fine-tuned checkpoints to score on which attacked questions, and the folder of the report."""

    runs: Sequence[str]  # folders of runs, and files CHECKPOINT.pt or NAME=CHECKPOINT.pt
    original: Path
    attacked: Sequence[Path]
    output: Path
    baseline: str | None = None
    paper: bool = False  # show the paper's numbers, too


def evaluate_robustness(options: RobustnessOptions) -> str:
    """Score the checkpoints on all files, write FILES to the output, and return the text to print.

    Predictions are kept in the output, so that the same command resumes after an interruption, and with more files or
    checkpoints predicts only what is missing. Raises InputError before anything is predicted for invalid runs and
    files, and for an output that cannot be written.
    """
    attacks = read_attacks(options.original, options.attacked)
    runs = find_runs(options.runs, options.baseline)
    texts = {example.texts for attack in attacks for example in (*attack.originals, *attack.attacked)}
    with report_folder(options.output, FILES) as folder:
        by_name: dict[str, list[Predictions]] = {}
        for run, predictions in zip(runs, predict(runs, texts, options.output / PREDICTIONS)):
            by_name.setdefault(run.name, []).append(predictions)
        rows = corrected([row for attack in attacks for row in attack_rows(attack, by_name, options.baseline)])
        text = robustness_text(attacks, rows, options.paper)
        descriptions = [
            {
                "attack": attack.name,
                "data": SQUAD,
                "examples": len(attack.attacked),
                "total": attack.total,
                "file": str(attack.path),
                "sha256": sha256(attack.path),
                "settings": attack.settings,
            }
            for attack in attacks
        ]
        write_report(folder, NAME, rows, text, attacks=descriptions)
    return "\n".join([text, "", *list_files(options.output, FILES)])


def robustness_text(attacks: Sequence[Attack], rows: Sequence[Comparison], show_paper: bool = False) -> str:
    """The rows for a terminal of 120 columns, and how many of the questions each attack changed."""
    notes = [
        f"{SQUAD}{UNDER}{attack.name}: {len(attack.attacked):,} of {attack.total:,} questions" for attack in attacks
    ]
    blocks = [comparison_lines(rows), [*notes, *LEGEND.splitlines(), *significant(rows)]]
    if show_paper:
        measures = (f"{name} {kind}" for name in SQUAD_METRICS for kind in (ORIGINAL, ATTACKED, DROP))
        lines = [["", "questions", *measures]]
        for paper in TABLE_5:
            numbers = (f"{number:.2f}" for number in paper[3:])
            lines.append([f"{paper.attack}, {paper.model}", str(paper.questions), *numbers])
        blocks.append([f"{HEADING}: {SQUAD}", *align(lines, width=WIDTH), *ROBUSTNESS_NOTE.splitlines()])
    return "\n\n".join(map("\n".join, blocks))
