"""Fine-tuning on SQuAD: every checkpoint and seed, and the rows of the table."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from ...core.files import write_text
from ...data.data_bin import load_sentences
from ...tasks.squad import HEAD
from ..formats.squad_json import SPLITS, SquadExample, read_labeled_squad, read_squad
from ..jobs import Job
from .answers import best_answers
from .finetune_options import FineTuningOptions
from .finetuning import evaluate, fine_tuning_jobs, read_checkpoints, rows_of
from .predictor import Predictor
from .squad_score import squad_score

SQUAD = "SQuAD"  # the name of the runs and their folders
EPOCHS = 2
squad_rows = rows_of


def evaluate_squad(options: FineTuningOptions) -> str:
    """Finish all runs, write a report, and return the text to print.

    Raises InputError for invalid checkpoints, data and flags, and for an output that cannot be written.
    """
    return evaluate(SQUAD, options, squad_jobs(options), squad_rows)


def squad_jobs(options: FineTuningOptions) -> list[Job]:
    """The jobs, with our task and criterion; raises InputError if a split is damaged, or valid lacks an answer."""
    data = options.data
    read_labeled_squad(data / "valid.json")  # before hours of training
    splits = [split for split in SPLITS if split != "test" or (data / "test.bin").exists()]
    windows = {split: len(load_sentences(data / split, "squad")) for split in splits}
    models = read_checkpoints(options.checkpoints, options.baseline)
    flags = ["--task", "squad", "--criterion", "squad"]
    return fine_tuning_jobs(options, models, SQUAD, data, flags, windows["train"], EPOCHS, partial(score_squad, data))


def score_squad(data: Path, checkpoint: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """Exact match and F1; writes predictions for the splits valid and test if they exist."""
    predictor = Predictor(checkpoint)
    for split in ("valid", "test"):
        if not (data / f"{split}.bin").exists():
            continue
        examples = read_squad(data / f"{split}.json")
        texts = predict_answers(predictor, data, split, examples)
        predictions = {example.id: text for example, text in zip(examples, texts)}
        text = json.dumps(predictions, ensure_ascii=False) + "\n"
        write_text(folder / f"{split}.predictions.json", text)
        answers = {example.id: [text for text, _ in example.answers] for example in examples}
        if all(answers.values()):
            scores = squad_score(answers, predictions)
            for name, value in (("EM", scores.exact_match), ("F1", scores.f1)):
                yield {"data": "squad", "measure": name if split == "valid" else f"{name} {split}", "value": value}


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
