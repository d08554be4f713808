"""Fine-tuning on GLUE: every checkpoint, task and seed, and the rows of the table."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from ...core.errors import InputError
from ...core.files import write_text
from ...data.data_bin import load_sentences
from ..formats.glue_tsv import HIGHEST_SCORE, TASKS, GlueTask, choose_tasks
from ..jobs import Job
from ..results.table import column_table
from .finetune_options import GlueOptions
from .finetuning import evaluate, fine_tuning_jobs, read_checkpoints, rows_of
from .predictor import Predictor

HEAD = "sentence_classification_head"
# file names of test splits that gluebenchmark.com requires
SUBMISSIONS = {("MNLI", "test"): "MNLI-m.tsv", ("MNLI", "test1"): "MNLI-mm.tsv"}
Values = np.ndarray | Sequence[float]
METRICS: dict[str, Callable[[Values, Values], float]] = {  # of targets and predictions
    "accuracy": accuracy_score,
    "f1": partial(f1_score, zero_division=0),  # of class 1
}
CORRELATIONS: dict[str, Callable[[Values, Values], float]] = {
    "matthews": matthews_corrcoef,
    "spearman": lambda targets, predictions: stats.spearmanr(predictions, targets).statistic,
    "pearson": lambda targets, predictions: stats.pearsonr(predictions, targets).statistic,
}


def evaluate_glue(options: GlueOptions) -> str:
    """Finish all runs on some tasks, write a report, and return the text to print.

    Raises InputError for invalid checkpoints, tasks, data and flags, and for an output that cannot be written.
    """
    return evaluate("GLUE", options, glue_jobs(options), glue_rows)


def glue_jobs(options: GlueOptions) -> list[Job]:
    """The jobs of all tasks; raises InputError if any split is damaged."""
    models = read_checkpoints(options.checkpoints, options.baseline)
    there = {name for name in TASKS if (options.data / name / "input0" / "dict.txt").exists()}
    remedy = "create it with tn-fairseq data glue"
    jobs = []
    for task in choose_tasks(options.tasks.split(","), there, f"--data {options.data}", remedy):
        folder = options.data / task.name
        flags = ["--task", "sentence_prediction", "--init-token", "0", "--num-classes", str(len(task.labels) or 1)]
        flags += ["--criterion", "sentence_prediction", *([] if task.labels else ["--regression-target"])]
        examples = _check_splits(folder, task)
        score = partial(score_task, task, folder)
        jobs += fine_tuning_jobs(options, models, task.name, folder, flags, examples, task.epochs, score)
    return jobs


def _check_splits(folder: Path, task: GlueTask) -> int:
    """The number of training examples; raises InputError if any split is damaged, because training reads only one."""
    for split in task.splits:
        is_test = split.startswith("test")
        if is_test and not (folder / "input0" / f"{split}.bin").exists():
            continue
        scores = folder / "label" / f"{split}.label"
        if not task.labels and not is_test and not scores.is_file():
            raise InputError(f"there is no {scores}; write it with tn-fairseq data glue")
        labels = ["label"] if task.labels and not is_test else []
        for part in ("input0", "input1")[: len(task.sentences)] + tuple(labels):
            load_sentences(folder / part / split, "glue")
    return len(load_sentences(folder / "input0" / "train", "glue"))


def score_task(task: GlueTask, data: Path, checkpoint: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """The metrics of the labeled splits; writes predictions for all splits except the training data.

    The usual metric of the split valid has the name of the task, and others also their own name and that of the split.
    """
    predictor = Predictor(checkpoint)
    for split in task.splits:
        if split == "train" or not (data / "input0" / f"{split}.bin").exists():
            continue
        logits, targets = map(np.array, predictor.predict(split, HEAD, data))
        values = logits.argmax(axis=1) if task.labels else logits[:, 0]
        write_predictions(folder, task, split, values)
        for number, name in enumerate(task.metrics if len(targets) else ()):
            words = [task.name, *[name] * (number > 0), *[split] * (split != "valid")]
            yield {"data": "glue", "measure": " ".join(words), "value": metric(name, values, targets[:, 0])}


def metric(name: str, predictions: Values, targets: Values) -> float:
    """A metric by name, in percent; predictions and targets are class ids or scores, (examples,).

    A correlation is 0 if it is undefined, because one side is constant or holds NaN.
    """
    if name in METRICS:
        return 100 * float(METRICS[name](targets, predictions))
    if np.ptp(predictions) == 0 or np.ptp(targets) == 0:
        return 0.0
    correlation = 100 * float(CORRELATIONS[name](targets, predictions))
    return 0.0 if math.isnan(correlation) else correlation


def write_predictions(folder: Path, task: GlueTask, split: str, values: np.ndarray) -> None:
    """Write one file per split, in the format of GLUE submissions: index and prediction."""
    name = SUBMISSIONS.get((task.name, split), f"{task.name}.tsv")
    path = folder / (name if split.startswith("test") else f"{split}.tsv")
    if task.labels:
        texts = [task.labels[value] for value in values]
    else:
        texts = [f"{score:.3f}" for score in HIGHEST_SCORE * values.clip(0, 1)]
    lines = ["index\tprediction", *(f"{index}\t{text}" for index, text in enumerate(texts))]
    write_text(path, "\n".join(lines) + "\n")


def glue_rows(jobs: Sequence[Job]) -> pd.DataFrame:
    """The rows of finished jobs, in the order of the tasks, and the averages over tasks."""
    rows = rows_of(jobs)
    order = rows["measure"].map(lambda name: list(TASKS).index(name.split()[0]))
    rows = rows.loc[order.sort_values(kind="stable").index]
    return pd.concat([rows, *averages(rows)], ignore_index=True)


def averages(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The average over the tasks of each checkpoint, for all checkpoints and seeds that have the same tasks."""
    rows = rows[rows["measure"].isin(list(TASKS))]
    for tasks in dict.fromkeys(tuple(found.unique()) for _, found in rows.groupby("arm", sort=False)["measure"]):
        found = rows[rows["measure"].isin(tasks)].groupby(["arm", "seed"], sort=False)["value"].agg(["mean", "size"])
        found = found[found["size"] == len(tasks)].reset_index()
        part = f"of {', '.join(tasks)}"
        yield column_table(
            {"arm": found["arm"], "seed": found["seed"], "data": "glue", "measure": "average", "part": part}
            | {"value": found["mean"]}
        )
