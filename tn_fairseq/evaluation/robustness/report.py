"""The report: reads runs and attacked data, predicts what is missing, and writes all files together at the end."""

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from ...errors import InputError
from ...files import publish, write_folder
from ...reporting.layout import write_csv
from .attacks import ATTACK, Attack, read_attacks
from .plot import draw_robustness
from .predictions import predict
from .results import Row, attack_rows, scores, text, values
from .runs import SQUAD, find_runs

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


def write_report(
    arguments: Sequence[str],
    original: Path | None,
    attacked: Sequence[Path],
    baseline: str | None,
    show_paper: bool,
    output: Path,
) -> str:
    """Score the checkpoints on all data, write FILES to ``output``, and return the text to print.

    ``arguments`` are those of ``find_runs``. Predictions are kept in ``output``, so that the same command resumes after
    an interruption, and with more data or checkpoints predicts only what is missing. Raises InputError before anything
    is predicted for invalid runs and data, and for an output that cannot be written.
    """
    attacks = read_attacks(original, attacked)
    tasks = list(dict.fromkeys(attack.task for attack in attacks))
    if show_paper and SQUAD not in tasks:
        raise InputError("--paper: the paper attacks only SQuAD; omit it")
    runs = find_runs(arguments, tasks, baseline)
    attacks = [attack for attack in attacks if any(run.task == attack.task for run in runs)]
    wanted = {task: {example.texts for attack in attacks for example in _examples(attack, task)} for task in tasks}

    with write_folder(output, "--output") as folder:
        kept = predict(runs, wanted, output / PREDICTIONS)
        rows: list[Row] = []
        for attack in attacks:
            groups: dict[str, list] = {}
            for run, found in zip(runs, kept):
                if run.task == attack.task:
                    groups.setdefault(run.name, []).append(found)
            for name, score in scores(attack.task).items():
                sides = [
                    examples and {group: values(score, examples, seeds) for group, seeds in groups.items()}
                    for examples in (attack.originals, attack.attacked)
                ]
                rows += attack_rows(attack, name, *sides, baseline)
        printed = text(rows, show_paper)
        content = {"scores": rows, "attacks": [_description(attack) for attack in attacks]}
        (folder / JSON).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        (folder / TEXT).write_text(printed + "\n", encoding="utf-8")
        write_csv(rows, folder / CSV)
        try:
            draw_robustness(rows, *(folder / name for name in PLOTS))
        except InputError as error:  # no matplotlib
            print(f"{' and '.join(PLOTS)} are not written: {error}", file=sys.stderr)
        # delete the files of an earlier report, so that two reports do not mix
        publish(folder, output, last=TEXT, old=[output / name for name in FILES])
    files = [f"  {output / name}  {what}" for name, what in FILES.items() if (output / name).exists()]
    return "\n".join([printed, "", *files])


def _examples(attack: Attack, task: str) -> list:
    return [*(attack.originals or ()), *attack.attacked] if attack.task == task else []


def _description(attack: Attack) -> dict:
    file = attack.path / ATTACK if attack.path.is_dir() else attack.path
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return {
        "attack": attack.name,
        "data": attack.data,
        "file": str(file),
        "sha256": digest,
        "settings": attack.settings,
    }
