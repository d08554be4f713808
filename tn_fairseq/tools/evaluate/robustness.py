"""Robustness of checkpoints fine-tuned on SQuAD: scores on attacked questions, and on the same before the attack."""

import hashlib
import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd
from omegaconf import OmegaConf
from tqdm import tqdm

from ...core.checkpoints import load_checkpoint, registered_name
from ...core.configuration import check_data_folder
from ...core.errors import InputError
from ...core.files import read_json, read_json_object, sha256, write_folder, write_text
from ...tokenizers import load_tokenizer
from ..formats.squad_json import SquadExample, read_labeled_squad
from ..preprocessing.squad_data import binarize_squad
from ..preprocessing.writers import LENGTHS
from ..results.compare import compare
from ..results.report import check_output, report
from ..results.table import column_table
from .finetune_options import RobustnessOptions
from .finetune_squad import SQUAD, predict_answers
from .finetuning import CHECKPOINT, MARKER, check_baseline, name_and_path
from .predictor import Predictor
from .squad_score import best_score, exact_match, f1

SCORES = {"EM": exact_match, "F1": f1}
PREDICTIONS = "predictions"  # the folder that keeps them
CHUNK = 1000  # questions that are predicted before they are saved
NOTE = (
    "The intervals are of a bootstrap over questions, and over the seeds of fine-tuning if there are several; drops "
    "and differences are paired. The questions on a paragraph are resampled together. The intervals do not cover other "
    "seeds of pre-training."
)
Texts = tuple[str, str]  # a question and its context


class Example(NamedTuple):
    """What a model reads, a question and its context, and the correct answers."""

    texts: Texts
    golds: tuple[str, ...]


@dataclass(frozen=True)
class Attack:
    """An attacked file: its questions and the original ones, by item of the table, in the same order.

    ``total`` is the number of questions that the attack could have changed. ``settings`` are the attack's own.
    """

    name: str
    path: Path
    originals: Mapping[str, Example]
    attacked: Mapping[str, Example]
    total: int
    settings: Any


@dataclass(frozen=True)
class FineTuned:
    """A fine-tuned checkpoint: the name of the pre-trained one, its data, and the seed."""

    name: str
    data: Path
    seed: int
    path: Path

    def __str__(self) -> str:
        return f"{self.name} {SQUAD} seed {self.seed}"


def evaluate_robustness(options: RobustnessOptions) -> str:
    """Score the checkpoints on all files, write a report, and return the text to print.

    Predictions are kept in the output, so that the same command resumes after an interruption, and with more files or
    checkpoints predicts only what is missing. Raises InputError before anything is predicted for invalid runs and
    files, and for an output that cannot be written.
    """
    attacks = read_attacks(options.original, options.attacked)
    check_output(options.output, "Robustness")
    with write_folder(options.output, "--output"):  # whether it can be written
        pass
    table = robustness_rows(options, attacks)
    counts = [f"{one.name}: {len(one.attacked):,} of {one.total:,} questions." for one in attacks]
    about = {
        one.name: {"file": str(one.path), "sha256": sha256(one.path), "total": one.total, "settings": one.settings}
        for one in attacks
    }
    comparisons = compare(table, options.baseline, "items")
    return report(options.output, "Robustness", table, comparisons, [*options.notes(), *counts, NOTE], about)


def robustness_rows(options: RobustnessOptions, attacks: Sequence[Attack]) -> pd.DataFrame:
    """A row for each checkpoint, attack, measure and question, which is named after the number of its context."""
    runs = find_runs(options.runs, options.baseline)
    texts = {one.texts for attack in attacks for one in (*attack.originals.values(), *attack.attacked.values())}
    predictions = predict(runs, texts, options.output / PREDICTIONS)
    tables = [attack_rows(run, attack, made) for run, made in zip(runs, predictions) for attack in attacks]
    return pd.concat(tables, ignore_index=True)


def attack_rows(run: FineTuned, attack: Attack, predictions: Mapping[Texts, str]) -> pd.DataFrame:
    """The rows of EM and F1 for each question: on the original and the attacked one, and the drop, in percent."""
    tables = []
    for name, score in SCORES.items():
        original, attacked = (
            pd.Series([100.0 * best_score(score, predictions[one.texts], one.golds) for one in side.values()])
            for side in (attack.originals, attack.attacked)
        )
        values = {f"original {name}": original, f"attacked {name}": attacked, f"{name} drop": original - attacked}
        for measure, value in values.items():
            columns = {"arm": run.name, "checkpoint": str(run.path), "seed": run.seed, "data": "squad"}
            columns |= {"measure": measure, "part": attack.name, "item": list(attack.attacked), "value": value}
            tables.append(column_table(columns))
    return pd.concat(tables, ignore_index=True)


# Attacks


def read_attacks(original: Path, attacked: Sequence[Path]) -> list[Attack]:
    """Read attacked files in the format of SQuAD.

    Raises InputError for files of another format, attacked questions that are not in the original, and equal names.
    """
    names = [path.resolve().stem for path in attacked]
    before = _read_examples(original)
    # contexts before the attack, which may change the context of each question in another way
    contexts = {
        context: number for number, context in enumerate(dict.fromkeys(one.texts[1] for one in before.values()))
    }
    items = {id: f"{contexts[one.texts[1]]}/{quote(id, safe='')}" for id, one in before.items()}
    attacks: list[Attack] = []
    for name, path in zip(names, attacked):
        if names.count(name) > 1:
            raise InputError(f"--attacked: two are named {name}; rename one, because results have these names")
        after = _read_examples(path)
        for id in after:
            if id not in before:
                raise InputError(f"{path}: question {id!r} is not in {original}; give what was attacked as --original")
        originals, changed = ({items[id]: side[id] for id in after} for side in (before, after))
        settings = read_json(path, "", "utf-8-sig").get("attack")
        attacks.append(Attack(name, path, originals, changed, len(before), settings))
    return attacks


def _read_examples(path: Path) -> dict[str, Example]:
    return {
        example.id: Example((example.question, example.context), tuple(text for text, _ in example.answers))
        for example in read_labeled_squad(path)
    }


# Fine-tuned checkpoints


def find_runs(arguments: Sequence[str], baseline: str | None = None) -> list[FineTuned]:
    """The runs on SQuAD: in folders of runs, and files ``CHECKPOINT.pt`` or ``NAME=CHECKPOINT.pt``.

    They are sorted by name, with the ``baseline`` first, and by seed. Says on standard error which finished runs have
    no checkpoint. Raises InputError if there is nothing to measure, a run is not finished, two have the same name and
    seed, seeds differ in more than the seed, the data is missing, or the baseline is not among the names.
    """
    runs: list[FineTuned] = []
    for argument in arguments:
        places = _in_folder(Path(argument)) if Path(argument).is_dir() else [name_and_path(argument)]
        runs += [_read_run(name, path) for name, path in places]
    names = sorted({run.name for run in runs}, key=lambda name: (name != baseline, name))
    check_baseline(baseline, names)
    runs.sort(key=lambda run: (names.index(run.name), run.seed))
    for one, other in zip(runs, runs[1:]):
        if str(one) == str(other):
            raise InputError(
                f"{one.path} and {other.path} are both named {one}; give different names: NAME=CHECKPOINT.pt"
            )
    return runs


def _in_folder(folder: Path) -> Iterator[tuple[str, Path]]:
    """The names and the checkpoints of finished runs."""
    runs = [path.parent for path in sorted(folder.glob(f"*/{SQUAD}/seed*/{MARKER}"))]
    if not runs:
        raise InputError(f"{folder}: contains no runs on {SQUAD}; give the --output of tn-fairseq evaluate squad")
    without = []
    recipes: dict[Path, tuple[Path, object]] = {}
    for run in runs:
        marker = read_json_object(run / MARKER, "delete its folder to fine-tune again")
        if marker.get("state") != "done":
            raise InputError(f"{run}: not finished; run the command that fine-tunes again, or delete the folder")
        path = run / CHECKPOINT
        if not path.exists():
            without.append(str(run))
            continue
        recipe = marker["fingerprint"] | {"--seed": None}
        other, other_recipe = recipes.setdefault(run.parent, (run, recipe))
        if recipe != other_recipe:
            raise InputError(f"{other} and {run} differ in more than the seed; move one of them to another folder")
        yield run.parent.parent.name, path
    if not recipes:
        raise InputError(f"{folder}: has no checkpoints of finished runs; delete it, and use --keep-checkpoints")
    if without:
        print(f"without a checkpoint, and left out: {', '.join(without)}", file=sys.stderr)


def _read_run(name: str, path: Path) -> FineTuned:
    cfg = OmegaConf.create(load_checkpoint(path)["cfg"], flags={"allow_objects": True})
    kind, data = registered_name(cfg.task, "task"), Path(cfg.task.get("data") or "")
    if kind != "squad":
        raise InputError(f"{path}: was trained with --task {kind}; give a checkpoint fine-tuned on {SQUAD}")
    check_data_folder(data)
    for needed in (data / "dict.txt", data / "tokenizer"):
        if not needed.exists():
            raise InputError(
                f"{needed}: no such file or folder, but {path} was fine-tuned with it; restore it, or run the command "
                "in the folder in which you fine-tuned"
            )
    return FineTuned(name, data, cfg.common.seed, path)


def lengths_of(data: Path) -> dict[str, int]:
    """The options that decided the lengths of the data; empty, for the defaults, if it does not say."""
    path, again = data / LENGTHS, "run tn-fairseq data squad again"
    lengths = read_json_object(path, again) if path.exists() else {}
    if not all(type(value) is int for value in lengths.values()):
        raise InputError(f"{path}: must hold numbers; {again}")
    return lengths


# Predictions


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
            predictor = Predictor(run.path)
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
