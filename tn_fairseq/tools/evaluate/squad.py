"""Fine-tuning on SQuAD: every checkpoint and seed, and the table of results."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from ...core.configuration import training_config
from ...core.files import write_text
from ...data.files import load_sentences
from ...tasks.squad import HEAD
from ..formats.squad import SPLITS, SquadExample, read_labeled_squad, read_squad
from ..reporting.paper import SCORES_NOTE, SQUAD_METRICS, SQUAD_ROWS
from .answers import best_answers
from .finetuning import FineTuningOptions, Pretrained, Run, plan, read_checkpoints, run_all, scores_of, write_scores
from .predictor import Predictor
from .score_tables import score_rows, scores_text
from .squad_score import squad_score

SQUAD = "SQuAD"  # the task's name in results
EPOCHS = 2


def evaluate_squad(options: FineTuningOptions) -> str:
    """Finish all runs, write a report, and return the text to print.

    Raises InputError for invalid checkpoints, data and flags, and for an output that cannot be written.
    """
    models = read_checkpoints(options.checkpoints, options.baseline)
    runs = squad_runs(options, models)
    results = run_all(options, runs, score)
    order = [(SQUAD, name) for name in SQUAD_METRICS]
    rows = score_rows(scores_of(runs, results, order), order, options.baseline)
    text = scores_text(rows, SQUAD_METRICS, SQUAD_ROWS if options.paper else None, SCORES_NOTE)
    return write_scores(options.output, "squad", rows, text, runs, results)


def squad_runs(options: FineTuningOptions, models: Sequence[Pretrained]) -> list[Run]:
    """The runs, with our task and criterion; raises InputError if a split is damaged, or valid lacks an answer."""
    data = options.data
    read_labeled_squad(data / "valid.json")  # before hours of training
    splits = [split for split in SPLITS if split != "test" or (data / "test.bin").exists()]
    windows = {split: len(load_sentences(data / split, "squad")) for split in splits}
    flags = ["--task", "squad", "--criterion", "squad"]
    return plan(options, models, SQUAD, data, flags, windows["train"], EPOCHS)


def score(run: Run) -> dict[str, Any]:
    """Exact match and F1; writes predictions for the splits valid and test if they exist."""
    predictor = Predictor(run.checkpoint, training_config(run.flags))
    data = Path(run.flags[0])
    result: dict[str, Any] = {"updates": run.updates}
    for split in ("valid", "test"):
        if not (data / f"{split}.bin").exists():
            continue
        examples = read_squad(data / f"{split}.json")
        texts = predict_answers(predictor, data, split, examples)
        predictions = {example.id: text for example, text in zip(examples, texts)}
        text = json.dumps(predictions, ensure_ascii=False) + "\n"
        write_text(run.folder / f"{split}.predictions.json", text)
        answers = {example.id: [text for text, _ in example.answers] for example in examples}
        if all(answers.values()):
            scores = squad_score(answers, predictions)
            result[split] = {"EM": scores.exact_match, "F1": scores.f1}
    return result


def predict_answers(predictor: Predictor, data: Path, split: str, examples: Sequence[SquadExample]) -> list[str]:
    """The answer to each of the ``examples``, which are those of a split of a data folder."""
    logits, _ = predictor.predict(split, HEAD, data)
    windows = load_file(data / f"{split}.safetensors")
    # a row ends with </s>
    lengths = [len(row) - 1 - start for row, start in zip(logits, windows["context_start"])]
    return best_answers(
        logits,
        windows["example"],
        windows["context_start"],
        lengths,
        windows["offsets"],
        windows["is_max_context"],
        [example.context for example in examples],
    )
