"""Fine-tuning on GLUE: every checkpoint, task and seed, and the table of results."""

from pathlib import Path
from typing import Any

import numpy as np

from ..configuration import as_argument, training_config
from ..data import load_sentences
from ..errors import PREPROCESSING
from ..files import write_text
from ..formats.glue import HIGHEST_SCORE, TASKS, GlueTask, choose_tasks
from .finetuning import Evaluation, Pretrained, Run, check_flags, read_checkpoints, run_all, write_report
from .metrics import METRICS
from .prediction import Predictor
from .tables import glue_table

HEAD = "sentence_classification_head"
# file names of test splits that gluebenchmark.com requires
SUBMISSIONS = {("MNLI", "test"): "MNLI-m.tsv", ("MNLI", "test1"): "MNLI-mm.tsv"}


def evaluate_glue(evaluation: Evaluation, tasks: str) -> str:
    """Finish all runs, write ``glue.json`` and ``glue.txt``, and return the table.

    Raises InputError for invalid checkpoints, tasks, data and flags.
    """
    models = read_checkpoints(evaluation.checkpoints, evaluation.baseline)
    there = {name for name in TASKS if (evaluation.data / name / "input0" / "dict.txt").exists()}
    remedy = f"create it with {PREPROCESSING} glue"
    chosen = choose_tasks(tasks.split(","), there, f"--data {evaluation.data}", remedy)
    rows = {task.name: count_training_rows(evaluation.data / task.name) for task in chosen}
    runs = [
        plan(evaluation, model, task, rows[task.name], seed)
        for task in chosen
        for model in models
        for seed in evaluation.seeds
    ]
    check_flags(runs, evaluation.recipe.more_flags)
    results = run_all(runs, score, evaluation.keep_checkpoints)
    scores: dict[str, dict[str, list[float]]] = {}
    for run, result in zip(runs, results):
        main = TASKS[run.task].metrics[0]
        scores.setdefault(run.model.name, {}).setdefault(run.task, []).append(result["valid"][main])
    table = glue_table(scores, evaluation.baseline, evaluation.show_paper)
    write_report(evaluation.output / "glue", runs, results, table)
    return table


def count_training_rows(folder: Path) -> int:
    """The number of training examples; raises InputError if any split is damaged."""
    rows = len(load_sentences(folder / "input0" / "train", "glue"))
    for index in sorted(folder.glob("*/*.idx")):  # training reads only the first split
        load_sentences(index.with_suffix(""), "glue")
    return rows


def plan(evaluation: Evaluation, model: Pretrained, task: GlueTask, rows: int, seed: int) -> Run:
    """One run, with the flags of fairseq's task and criterion for sentence prediction."""
    folder = evaluation.data / task.name
    updates = evaluation.recipe.updates(rows, task.epochs)
    flags = [as_argument(folder), "--task", "sentence_prediction", "--init-token", "0"]
    flags += ["--num-classes", str(len(task.labels) or 1), "--criterion", "sentence_prediction"]
    flags += [] if task.labels else ["--regression-target"]
    flags += [*model.model_flags, *evaluation.recipe.flags(model, updates), "--seed", str(seed)]
    output = evaluation.output
    return Run(model, task.name, seed, output / model.name / task.name / f"seed{seed}", updates, tuple(flags))


def score(run: Run, checkpoint: Path) -> dict[str, Any]:
    """The metrics of the labeled splits; writes predictions for all splits except the training data."""
    task = TASKS[run.task]
    predictor = Predictor(checkpoint, training_config(run.flags))
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
    """Write one file per split, in the format of GLUE submissions: index and prediction."""
    name = SUBMISSIONS.get((task.name, split), f"{task.name}.tsv")
    path = run.folder / (name if split.startswith("test") else f"{split}.tsv")
    if task.labels:
        texts = [task.labels[value] for value in values]
    else:
        texts = [f"{score:.3f}" for score in HIGHEST_SCORE * values.clip(0, 1)]
    lines = ["index\tprediction", *(f"{index}\t{text}" for index, text in enumerate(texts))]
    write_text(path, "\n".join(lines) + "\n")
