"""Predictions of fine-tuned checkpoints for any texts; kept in files, so that nothing is predicted twice."""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from tqdm import tqdm

from ....core.files import read_json_object, sha256, write_text
from ....tokenizers import load_tokenizer
from ...formats.glue import TASKS, Examples
from ...formats.squad import SquadExample
from ...preprocessing.glue_data import binarize_task
from ...preprocessing.squad_data import binarize_squad
from ...preprocessing.writers import LENGTHS
from ..glue import HEAD
from ..predictor import Predictor
from ..squad import SQUAD, predict_answers
from .runs import Data, FineTuned

Texts = tuple[str, ...]
CHUNK = 1000  # examples that are predicted before they are saved
_load_tokenizer = cache(load_tokenizer)


def predict(runs: Sequence[FineTuned], wanted: Mapping[str, set[Texts]], folder: Path) -> list[dict[Texts, str]]:
    """The predictions of each run for the texts of its task, of which only those that are missing are predicted.

    ``folder`` keeps them. Says on standard error which data does not record its lengths. Shows a progress bar over all
    missing examples on a terminal; otherwise prints a line to standard error for each run with missing ones.
    """
    for data in dict.fromkeys(run.data.folder for run in runs if not (run.data.folder / LENGTHS).exists()):
        print(f"{data}: has no {LENGTHS}, so the default lengths are used", file=sys.stderr)
    paths = [folder / run.name / run.task / f"seed{run.seed}.json" for run in runs]
    made_with = [{"checkpoint": sha256(run.path), **run.data.lengths()} for run in runs]
    kept = list(map(read_kept, paths, made_with))
    # in order of the contexts, so that each is tokenized once
    missing = [
        sorted((texts for texts in wanted[run.task] if digest(texts) not in by_digest), key=lambda texts: texts[::-1])
        for run, by_digest in zip(runs, kept)
    ]
    total = sum(map(len, missing))
    with tqdm(total=total, unit=" examples", disable=None) as bar, TemporaryDirectory() as temporary:

        @cache  # runs on the same data share the folder
        def binarized(data: Data, texts: tuple[Texts, ...]) -> Path:
            return binarize(data, texts, Path(mkdtemp(dir=temporary)))

        for number, (run, by_digest, texts) in enumerate(zip(runs, kept, missing)):
            if not texts:
                continue
            bar.set_postfix_str(str(run))
            predictor = Predictor(run.path, run.cfg)
            for start in range(0, len(texts), CHUNK):
                chunk = tuple(texts[start : start + CHUNK])
                predictions = predict_chunk(run, predictor, chunk, binarized(run.data, chunk))
                by_digest |= zip(map(digest, chunk), predictions, strict=True)
                content = {"made_with": made_with[number], "predictions": by_digest}
                write_text(paths[number], json.dumps(content, ensure_ascii=False) + "\n")
                bar.update(len(chunk))
            if bar.disable:  # standard error is not a terminal
                print(f"{run}: {len(texts):,} predicted", file=sys.stderr)
    return [{texts: by_digest[digest(texts)] for texts in wanted[run.task]} for run, by_digest in zip(runs, kept)]


def read_kept(path: Path, made_with: Mapping[str, object]) -> dict[str, str]:
    """The predictions in a file by the digests of their texts; empty if they were made with something else."""
    content = read_json_object(path, "delete it") if path.exists() else {}
    predictions = content.get("predictions") if content.get("made_with") == made_with else None
    return predictions if isinstance(predictions, dict) else {}


def binarize(data: Data, texts: Sequence[Texts], folder: Path) -> Path:
    """Write the texts as the split valid of a data folder with the dictionary and lengths of ``data``."""
    tokenizer = _load_tokenizer(data.tokenizer)
    if data.task == SQUAD:
        questions: Sequence[SquadExample] = _squad_examples(texts)
        binarize_squad({"valid": questions}, tokenizer, folder, dict_path=data.dictionary, **data.lengths())
        return folder
    sentences = Examples(list(map(list, zip(*texts))), None)
    binarize_task(
        TASKS[data.task], {"valid": sentences}, tokenizer, folder, dict_path=data.dictionary, **data.lengths()
    )
    return folder / data.task


def predict_chunk(run: FineTuned, predictor: Predictor, texts: Sequence[Texts], folder: Path) -> list[str]:
    """The answers, or the labels of sentences, for the texts in a data folder."""
    if run.task == SQUAD:
        return predict_answers(predictor, folder, "valid", _squad_examples(texts))
    logits, _ = predictor.predict("valid", HEAD, folder)
    return [TASKS[run.task].labels[row.argmax()] for row in logits]


def digest(texts: Texts) -> str:
    """What stands for the texts in files."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def _squad_examples(texts: Sequence[Texts]) -> list[SquadExample]:
    return [SquadExample(str(number), question, context, ()) for number, (question, context) in enumerate(texts)]
