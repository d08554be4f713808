"""Fine-tuning on GLUE: every checkpoint, task and seed, and the table of results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...core.configuration import training_config
from ...core.errors import InputError
from ...core.files import write_text
from ...data.files import load_sentences
from ..formats.glue import HIGHEST_SCORE, TASKS, GlueTask, choose_tasks
from ..reporting.paper import AVERAGE, GLUE_NOTE, GLUE_ROWS, GLUE_TASKS
from .finetuning import FineTuningOptions, Pretrained, Run, plan, read_checkpoints, run_all, scores_of, write_scores
from .metrics import metric
from .predictor import Predictor
from .score_tables import score_rows, scores_text

HEAD = "sentence_classification_head"
# file names of test splits that gluebenchmark.com requires
SUBMISSIONS = {("MNLI", "test"): "MNLI-m.tsv", ("MNLI", "test1"): "MNLI-mm.tsv"}


def evaluate_glue(options: FineTuningOptions, tasks: str = "all") -> str:
    """Finish all runs on some tasks, such as ``RTE,MRPC``, write a report, and return the text to print.

    Raises InputError for invalid checkpoints, tasks, data and flags, and for an output that cannot be written.
    """
    models = read_checkpoints(options.checkpoints, options.baseline)
    there = {name for name in TASKS if (options.data / name / "input0" / "dict.txt").exists()}
    remedy = "create it with tn-fairseq data glue"
    chosen = choose_tasks(tasks.split(","), there, f"--data {options.data}", remedy)
    runs = [run for task in chosen for run in glue_runs(options, models, task)]
    results = run_all(options, runs, score)
    order = [(task, TASKS[task].metrics[0]) for task in GLUE_TASKS]
    rows = score_rows(scores_of(runs, results, order), order, options.baseline, averages=True)
    columns = [task for task in GLUE_TASKS if any(task == run.task for run in runs)]
    if len(columns) == len(GLUE_TASKS):  # the paper averages over all tasks
        columns.append(AVERAGE)
    text = scores_text(rows, columns, GLUE_ROWS if options.paper else None, GLUE_NOTE)
    return write_scores(options.output, "glue", rows, text, runs, results)


def glue_runs(options: FineTuningOptions, models: Sequence[Pretrained], task: GlueTask) -> list[Run]:
    """The runs on a task, with fairseq's task and criterion; raises InputError if any split is damaged."""
    folder = options.data / task.name
    flags = ["--task", "sentence_prediction", "--init-token", "0"]
    flags += ["--num-classes", str(len(task.labels) or 1), "--criterion", "sentence_prediction"]
    flags += [] if task.labels else ["--regression-target"]
    rows = len(load_sentences(folder / "input0" / "train", "glue"))
    for split in task.splits:  # training reads only the split train
        is_test = split.startswith("test")
        if is_test and not (folder / "input0" / f"{split}.bin").exists():
            continue
        scores = folder / "label" / f"{split}.label"
        if not task.labels and not is_test and not scores.is_file():
            raise InputError(f"there is no {scores}; write it with tn-fairseq data glue")
        labels = ["label"] if task.labels and not is_test else []
        for part in ("input0", "input1")[: len(task.sentences)] + tuple(labels):
            load_sentences(folder / part / split, "glue")
    return plan(options, models, task.name, folder, flags, rows, task.epochs)


def score(run: Run) -> dict[str, Any]:
    """The metrics of the labeled splits; writes predictions for all splits except the training data."""
    task = TASKS[run.task]
    predictor = Predictor(run.checkpoint, training_config(run.flags))
    result: dict[str, Any] = {"updates": run.updates}
    for split in task.splits:
        if split == "train" or not (Path(run.flags[0]) / "input0" / f"{split}.bin").exists():
            continue
        logits, targets = map(np.array, predictor.predict(split, HEAD))
        values = logits.argmax(axis=1) if task.labels else logits[:, 0]
        write_predictions(run, task, split, values)
        if len(targets):
            result[split] = {name: metric(name, values, targets[:, 0]) for name in task.metrics}
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
