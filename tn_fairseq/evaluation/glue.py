"""Fine-tuning on GLUE: every checkpoint, task and seed, and the tables of what came out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..configuration import as_argument
from ..data import load_sentences
from ..errors import InputError
from ..files import write_whole
from ..glue import HIGHEST_SCORE, TASKS, GlueTask
from .finetuning import Pretrained, Recipe, Run, read_checkpoints, run_all, write_report
from .metrics import METRICS
from .prediction import Predictor
from .tables import glue_table

HEAD = "sentence_classification_head"
# names that gluebenchmark.com asks for, of the test splits
SUBMISSIONS = {("MNLI", "test"): "MNLI-m.tsv", ("MNLI", "test1"): "MNLI-mm.tsv"}


def evaluate_glue(
    checkpoints: Sequence[str],
    tasks: str,
    data: Path,
    output: Path,
    seeds: Sequence[int],
    recipe: Recipe,
    baseline: str | None,
    paper: bool,
    keep_checkpoints: bool,
) -> str:
    """Run what is not finished, write ``glue.json`` and ``glue.txt``, and return the table.

    Raises InputError for checkpoints, tasks and data that cannot be used.
    """
    models = read_checkpoints(checkpoints, baseline)
    chosen = choose_tasks(tasks, data)
    rows = {task.name: count_training_rows(data / task.name) for task in chosen}
    runs = [
        plan(model, task, data, rows[task.name], seed, output, recipe)
        for task in chosen
        for model in models
        for seed in seeds
    ]
    results = run_all(runs, score, keep_checkpoints)
    scores: dict[str, dict[str, list[float]]] = {}
    for run, result in zip(runs, results):
        main = TASKS[run.task].metrics[0]
        scores.setdefault(run.model.name, {}).setdefault(run.task, []).append(result["valid"][main])
    table = glue_table(scores, baseline, paper)
    write_report(output / "glue", runs, results, table)
    return table


def choose_tasks(names: str, data: Path) -> list[GlueTask]:
    """The tasks named, or all that ``data`` holds; raises InputError for one that is no task or is not there."""
    there = [task for name, task in TASKS.items() if (data / name / "input0" / "dict.txt").exists()]
    if names == "all":
        if not there:
            raise InputError(f"--data {data}: holds no task; write some with preprocess/glue.py")
        return there
    for name in names.split(","):
        if name not in TASKS:
            raise InputError(f"--tasks {name}: no task of GLUE's, which are {', '.join(TASKS)}")
        if TASKS[name] not in there:
            raise InputError(f"--data {data}: does not hold {name}; write it with preprocess/glue.py --task {name}")
    return [TASKS[name] for name in names.split(",")]


def count_training_rows(folder: Path) -> int:
    """The sentences or pairs to train on; raises InputError where any split is damaged."""
    rows = len(load_sentences(folder / "input0" / "train", "preprocess/glue.py"))
    for index in sorted(folder.glob("*/*.idx")):  # training reads but the first split
        load_sentences(index.with_suffix(""), "preprocess/glue.py")
    return rows


def plan(model: Pretrained, task: GlueTask, data: Path, rows: int, seed: int, output: Path, recipe: Recipe) -> Run:
    """One run, with the flags of fairseq's own task and criterion for sentences."""
    folder = data / task.name
    updates = recipe.updates(rows, task.epochs)
    flags = [as_argument(folder), "--task", "sentence_prediction", "--init-token", "0"]
    flags += ["--num-classes", str(len(task.labels) or 1), "--criterion", "sentence_prediction"]
    flags += [] if task.labels else ["--regression-target"]
    flags += [*model.model_flags, *recipe.flags(model, updates), "--seed", str(seed)]
    return Run(model, task.name, seed, output / model.name / task.name / f"seed{seed}", updates, tuple(flags))


def score(run: Run, checkpoint: Path) -> dict[str, Any]:
    """The metrics of the splits with labels; predictions are written for all splits but the training data."""
    task = TASKS[run.task]
    predictor = Predictor(checkpoint, run.flags)
    result: dict[str, Any] = {"updates": run.updates}
    for split in task.splits:
        if split == "train" or not (Path(run.flags[0]) / "input0" / f"{split}.bin").exists():
            continue
        logits, targets = map(np.array, predictor.predict(split, HEAD))
        values = logits.argmax(axis=1) if task.labels else logits[:, 0]
        write_predictions(run, task, split, values)
        if len(targets):
            result[split] = {name: METRICS[name](values, targets[:, 0]) for name in task.metrics}
    return result


def write_predictions(run: Run, task: GlueTask, split: str, values: np.ndarray) -> None:
    """One file a split, in the format of GLUE's submissions: index and prediction."""
    name = SUBMISSIONS.get((task.name, split), f"{task.name}.tsv")
    path = run.folder / (name if split.startswith("test") else f"{split}.tsv")
    if task.labels:
        texts = [task.labels[value] for value in values]
    else:
        texts = [f"{score:.3f}" for score in HIGHEST_SCORE * values.clip(0, 1)]
    lines = ["index\tprediction", *(f"{index}\t{text}" for index, text in enumerate(texts))]
    with write_whole(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
