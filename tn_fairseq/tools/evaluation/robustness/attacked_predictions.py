"""Predictions of fine-tuned checkpoints for any questions; kept in files, so that nothing is predicted twice."""

import hashlib
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from tqdm import tqdm

from ....core.files import read_json_object, sha256, write_text
from ....tokenizers import load_tokenizer
from ...formats.squad import SquadExample
from ...preprocessing.squad_data import binarize_squad
from ...preprocessing.writers import LENGTHS
from ..predictor import Predictor
from ..squad import SQUAD, predict_answers
from .runs import FineTuned, lengths_of

Texts = tuple[str, str]  # a question and its context
CHUNK = 1000  # questions that are predicted before they are saved


def predict(runs: Sequence[FineTuned], wanted: Collection[Texts], folder: Path) -> list[dict[Texts, str]]:
    """The predictions of each run for the questions, of which only those that are missing are predicted.

    ``folder`` keeps them. Says on standard error which data does not record its lengths. Shows a progress bar over all
    missing questions on a terminal; otherwise prints a line to standard error for each run with missing ones.
    """
    for data in dict.fromkeys(run.data for run in runs if not (run.data / LENGTHS).exists()):
        print(f"{data}: has no {LENGTHS}, so the default lengths are used", file=sys.stderr)
    paths = [folder / run.name / SQUAD / f"seed{run.seed}.json" for run in runs]
    made_with = [{"checkpoint": sha256(run.path), **lengths_of(run.data)} for run in runs]
    kept = list(map(read_kept, paths, made_with))
    # in order of the contexts, so that each is tokenized once
    in_order = sorted(wanted, key=lambda texts: texts[::-1])
    missing = [[texts for texts in in_order if digest(texts) not in by_digest] for by_digest in kept]
    total = sum(map(len, missing))
    with tqdm(total=total, unit=" questions", disable=None) as bar, TemporaryDirectory() as temporary:

        @cache  # runs on the same data share the folder
        def binarized(data: Path, texts: tuple[Texts, ...]) -> Path:
            output = Path(mkdtemp(dir=temporary))
            split = {"valid": _examples(texts)}
            tokenizer = load_tokenizer(data / "tokenizer")
            binarize_squad(split, tokenizer, output, dict_path=data / "dict.txt", **lengths_of(data))
            return output

        for number, (run, by_digest, texts) in enumerate(zip(runs, kept, missing)):
            if not texts:
                continue
            bar.set_postfix_str(str(run))
            predictor = Predictor(run.path, run.cfg)
            for start in range(0, len(texts), CHUNK):
                chunk = tuple(texts[start : start + CHUNK])
                predictions = predict_answers(predictor, binarized(run.data, chunk), "valid", _examples(chunk))
                by_digest |= zip(map(digest, chunk), predictions, strict=True)
                content = {"made_with": made_with[number], "predictions": by_digest}
                write_text(paths[number], json.dumps(content, ensure_ascii=False) + "\n")
                bar.update(len(chunk))
            if bar.disable:  # standard error is not a terminal
                print(f"{run}: {len(texts):,} predicted", file=sys.stderr)
    return [{texts: by_digest[digest(texts)] for texts in wanted} for by_digest in kept]


def read_kept(path: Path, made_with: Mapping[str, object]) -> dict[str, str]:
    """The predictions in a file by the digests of their texts; empty if they were made with something else."""
    content = read_json_object(path, "delete it") if path.exists() else {}
    predictions = content.get("predictions") if content.get("made_with") == made_with else None
    return predictions if isinstance(predictions, dict) else {}


def digest(texts: Texts) -> str:
    """What stands for the texts in files."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def _examples(texts: Sequence[Texts]) -> list[SquadExample]:
    return [SquadExample(str(number), question, context, ()) for number, (question, context) in enumerate(texts)]
