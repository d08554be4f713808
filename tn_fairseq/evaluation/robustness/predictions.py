"""Predictions of fine-tuned checkpoints for any texts; kept in files, so that nothing is predicted twice."""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tqdm import tqdm

from ...errors import PREPROCESSING, InputError
from ...files import read_json_object, write_text
from ...formats.glue import TASKS, Examples
from ...formats.squad import SquadExample
from ...preprocessing.glue_data import binarize_task
from ...preprocessing.squad_data import binarize_squad
from ...preprocessing.writers import LENGTHS
from ...tokenizers import load_tokenizer
from ..glue import HEAD
from ..prediction import Predictor
from ..squad import predict_answers
from .runs import SQUAD, FineTuned

Texts = tuple[str, ...]
CHUNK = 1000  # examples that are predicted before they are saved


class Kept:
    """The predictions of one checkpoint by the digest of the texts, in a file."""

    def __init__(self, path: Path, checkpoint: str, lengths: Mapping[str, int]):
        self._path = path
        self._made_with = {"checkpoint": checkpoint, **lengths}
        self._predictions: dict[str, str] = {}
        if path.exists():
            content = read_json_object(path, "delete it")
            if content.get("made_with") == self._made_with and isinstance(content.get("predictions"), dict):
                self._predictions = content["predictions"]

    def __contains__(self, texts: Texts) -> bool:
        return _digest(texts) in self._predictions

    def __getitem__(self, texts: Texts) -> str:
        return self._predictions[_digest(texts)]

    def add(self, texts: Sequence[Texts], predictions: Sequence[str]) -> None:
        """Add the prediction for each of the texts and write the file."""
        self._predictions |= zip(map(_digest, texts), predictions, strict=True)
        content = {"made_with": self._made_with, "predictions": self._predictions}
        write_text(self._path, json.dumps(content, ensure_ascii=False) + "\n")


def predict(runs: Sequence[FineTuned], wanted: Mapping[str, set[Texts]], folder: Path) -> list[Kept]:
    """The predictions of each run for the texts of its task, of which only those that are missing are predicted.

    ``folder`` keeps them. Says on standard error which data does not record its lengths. Shows a progress bar over all
    missing examples on a terminal; otherwise prints a line to standard error for each run with missing ones.
    """
    for data in dict.fromkeys(run.data for run in runs if not (run.data / LENGTHS).exists()):
        print(f"{data}: has no {LENGTHS}, so the default lengths of {PREPROCESSING} are used", file=sys.stderr)
    kept = [
        Kept(folder / run.name / run.task / f"seed{run.seed}.json", run.digest(), data_lengths(run)) for run in runs
    ]
    # in order of the contexts, so that each is tokenized once
    missing = [
        sorted((texts for texts in wanted[run.task] if texts not in found), key=lambda texts: texts[::-1])
        for run, found in zip(runs, kept)
    ]
    total = sum(map(len, missing))
    with tqdm(total=total, unit=" examples", disable=None) as bar, TemporaryDirectory() as temporary:
        binarizer = Binarizer(Path(temporary))
        for run, found, texts in zip(runs, kept, missing):
            if not texts:
                continue
            bar.set_postfix_str(str(run))
            predictor = Predictor(run.path, run.cfg)
            for start in range(0, len(texts), CHUNK):
                chunk = tuple(texts[start : start + CHUNK])
                found.add(chunk, predict_chunk(run, predictor, chunk, binarizer.write(run, chunk)))
                bar.update(len(chunk))
            if bar.disable:  # standard error is not a terminal
                print(f"{run}: {len(texts):,} predicted", file=sys.stderr)
    return kept


def data_lengths(run: FineTuned) -> dict[str, int]:
    """The options that decided the lengths of the run's data; empty, for the defaults, if the data does not say."""
    path = run.data / LENGTHS
    if not path.exists():
        return {}
    lengths = read_json_object(path, f"run {PREPROCESSING} again")
    if not all(type(value) is int for value in lengths.values()):
        raise InputError(f"{path}: must hold numbers; run {PREPROCESSING} again")
    return lengths


class Binarizer:
    """Makes data folders of texts like the data of a run, once for all runs with the same data."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._written: dict[tuple[Path, tuple[Texts, ...]], Path] = {}
        self._tokenizer = cache(load_tokenizer)

    def write(self, run: FineTuned, texts: tuple[Texts, ...]) -> Path:
        """Write the texts as the split valid and return the folder, which has the run's dictionary and lengths."""
        folder = self._written.setdefault((run.data, texts), self._folder / str(len(self._written)))
        if not folder.exists():
            common = self._tokenizer(run.tokenizer), folder
            options = {"dict_path": run.dictionary, **data_lengths(run)}
            if run.task == SQUAD:
                binarize_squad({"valid": _squad_examples(texts)}, *common, **options)
            else:
                examples = Examples(list(map(list, zip(*texts))), None)
                binarize_task(TASKS[run.task], {"valid": examples}, *common, **options)
        return folder


def predict_chunk(run: FineTuned, predictor: Predictor, texts: Sequence[Texts], folder: Path) -> list[str]:
    """The answers, or the labels of sentences, for the texts in a folder of ``Binarizer``."""
    if run.task == SQUAD:
        return predict_answers(predictor, folder, "valid", _squad_examples(texts))
    logits, _ = predictor.predict("valid", HEAD, folder / run.task)
    return [TASKS[run.task].labels[row.argmax()] for row in logits]


def _squad_examples(texts: Sequence[Texts]) -> list[SquadExample]:
    return [SquadExample(str(number), question, context, ()) for number, (question, context) in enumerate(texts)]


def _digest(texts: Texts) -> str:
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()
