"""Fine-tune with ``fairseq-train``, one checkpoint, task and seed at a time; finished runs are not repeated."""

import hashlib
import io
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from tqdm import tqdm

import tn_fairseq

from ..checkpoints import load_checkpoint
from ..configuration import as_argument, training_config
from ..errors import InputError
from ..files import read_json_object, write_text
from ..models.base import EncoderModel

RESULT, SETTINGS, LOG, CHECKPOINTS = "result.json", "settings.json", "train.log", "checkpoints"
_RESTART = "delete its folder to start over"
LONGEST_NAME = 255  # bytes in a component of a path
SAVE_EVERY = 500  # updates

# flags of fairseq-train that this command has options for; set elsewhere, they would break epochs, seeds and results
_OPTIONS = {"--batch-size": "--batch-size", "--max-update": "--max-update", "--seed": "--seeds"}
# flags that decide what is trained and where the checkpoint is
_FIXED = {
    *("--task", "--arch", "--criterion", "--classification-head-name", "--num-classes", "--regression-target"),
    *("--finetune-from-model", "--restore-file", "--continue-once", "--user-dir"),
    *("--reset-optimizer", "--reset-lr-scheduler", "--reset-meters", "--reset-dataloader"),
    *("--save-dir", "--no-save", "--no-last-checkpoints", "--checkpoint-suffix"),
}


@dataclass(frozen=True)
class Pretrained:
    """A checkpoint to fine-tune: its name in results, and the flags that build its model."""

    name: str
    path: Path
    digest: str
    model_flags: tuple[str, ...]
    layers: int
    hidden_size: int


@dataclass(frozen=True)
class Recipe:
    """How to fine-tune; None means the default for the model's size (``learning_rate``) or the task (``epochs``)."""

    batch_size: int = 32
    learning_rate: float | None = None
    epochs: int | None = None
    max_update: int | None = None
    more_flags: tuple[str, ...] = ()

    def updates(self, examples: int, epochs: int) -> int:
        """The number of updates for a task with this number of examples and this default number of epochs."""
        updates = math.ceil(examples / self.batch_size) * (self.epochs or epochs)
        return min(updates, self.max_update or updates)

    def flags(self, model: Pretrained, updates: int) -> list[str]:
        """The flags for fairseq-train (Clark et al. 2020, table 7, and their released code)."""
        learning_rate = self.learning_rate or default_learning_rate(model)
        decay = 0.9 if model.layers >= 24 else 0.8
        flags = ["--optimizer", "electra_adamw", "--lr", learning_rate, "--layerwise-lr-decay", decay]
        flags += ["--lr-scheduler", "polynomial_decay", "--warmup-updates", updates // 10]
        flags += ["--total-num-update", updates, "--max-update", updates, "--clip-norm", 1.0]
        flags += ["--batch-size", self.batch_size, "--required-batch-size-multiple", 1]
        return [*map(str, flags), *self.more_flags]


@dataclass(frozen=True)
class Evaluation:
    """What to fine-tune, on which data and with which seeds, where to write results, and what to show.

    ``checkpoints`` are arguments of ``read_pretrained``; ``baseline`` is the name of the one to compare with.
    """

    checkpoints: Sequence[str]
    data: Path
    output: Path
    seeds: Sequence[int]
    recipe: Recipe
    baseline: str | None = None
    show_paper: bool = False
    keep_checkpoints: bool = False


@dataclass(frozen=True)
class Run:
    """One fine-tuning run in its own folder: a checkpoint, a task and a seed."""

    model: Pretrained
    task: str
    seed: int
    folder: Path
    updates: int
    flags: tuple[str, ...]

    def result(self) -> dict[str, Any] | None:
        """The result, or None if the run is not finished; raises InputError if the folder has other settings."""
        path = self.folder / RESULT
        if not path.exists():
            return None
        self.check_settings()
        return read_json_object(path, _RESTART)

    def check_settings(self) -> None:
        """Raises InputError if the folder has another checkpoint or other flags."""
        before = read_json_object(self.folder / SETTINGS, _RESTART)
        if before.get("checkpoint") != self.model.digest:
            raise InputError(
                f"{self.folder} belongs to another checkpoint named {self.model.name}; "
                "give NAME=CHECKPOINT.pt or another --output"
            )
        if before.get("flags") != list(self.flags):
            there, here = _values(before.get("flags", ())), _values(self.flags)
            differing = [
                f"{flag} was {there.get(flag, 'absent')}, is now {here.get(flag, 'absent')}"
                for flag in {**there, **here}
                if there.get(flag) != here.get(flag)
            ]
            raise InputError(
                f"{self.folder} was fine-tuned with different settings "
                f"({'; '.join(differing) or 'the order of flags'}); give another --output"
            )

    def train(self, advance: Callable[[int, str], None]) -> Path:
        """Fine-tune or resume an interrupted run; return the checkpoint.

        ``advance`` is called with the number of updates so far and the loss. Raises InputError if the folder has other
        settings or if fairseq-train fails.
        """
        if (self.folder / SETTINGS).exists():
            self.check_settings()
        else:
            self._write(SETTINGS, {"checkpoint": self.model.digest, "flags": self.flags})
        checkpoints = self.folder / CHECKPOINTS
        # an epoch of SQuAD can take hours
        saving = ["--save-interval-updates", SAVE_EVERY, "--keep-interval-updates", 1]
        command = [sys.executable, "-m", "fairseq_cli.train", *saving, *self.flags]
        command += ["--finetune-from-model", as_argument(self.model.path), "--save-dir", as_argument(checkpoints)]
        command += ["--user-dir", Path(tn_fairseq.__file__).parent]
        command += ["--no-epoch-checkpoints", "--disable-validation", "--log-format", "json", "--log-interval", 10]
        command += [] if torch.cuda.is_available() else ["--cpu", "--num-workers", 0]
        last = ""
        with open(self.folder / LOG, "a", encoding="utf-8") as log:
            process = subprocess.Popen(
                list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
            )
            for line in process.stdout:
                log.write(line)
                log.flush()
                last = line.strip() or last
                if " | WARNING | tn_fairseq" in line:
                    tqdm.write(f"{self.folder}: {line.split(' | ', 3)[-1].strip()}", file=sys.stderr)
                _, found, record = line.partition(" | train_inner | ")
                if found:
                    record = json.loads(record)
                    advance(int(record["num_updates"]), record["loss"])
        if process.wait():
            raise InputError(f"{self.folder / LOG}: fairseq-train failed: {last.removeprefix('error: ')}")
        return checkpoints / "checkpoint_last.pt"

    def finish(self, result: dict[str, Any], keep_checkpoints: bool) -> None:
        """Write the result, which marks the run as finished, and delete the checkpoints, or all but the last."""
        self._write(RESULT, result)
        if not keep_checkpoints:
            shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)
            return
        for earlier in (self.folder / CHECKPOINTS).glob("checkpoint_*_*.pt"):
            earlier.unlink()

    def _write(self, name: str, content: dict[str, Any]) -> None:
        write_text(self.folder / name, json.dumps(content, indent=2) + "\n")


def check_flags(runs: Sequence[Run], more_flags: Sequence[str]) -> None:
    """Raises InputError if any of the user's flags for fairseq-train would break a run."""
    for word in more_flags:
        flag, _, _ = word.partition("=")
        if flag in _OPTIONS:
            raise InputError(f'{flag} after "--" would be wrong for some runs; give {_OPTIONS[flag]} before "--"')
        if flag in _FIXED:
            raise InputError(f"{flag}: set by the evaluation itself; remove the flag")
    if not more_flags:  # parsing takes half a second
        return
    for flags in {run.model: run.flags for run in runs}.values():
        errors = io.StringIO()
        try:
            with redirect_stderr(errors):
                common = training_config(flags).common
        except SystemExit as stopped:
            if not stopped.code:  # --help
                raise
            reason = errors.getvalue().rpartition("error: ")[2].strip()
            raise InputError(f'flags after "--": fairseq-train rejects them ({reason})') from None
        if common.tpu and not common.bf16:  # which implies it
            raise InputError("--tpu: fine-tuning needs a GPU or a CPU; remove the flag")
        if common.fp16 and (common.cpu or not torch.cuda.is_available()):
            raise InputError("--fp16 needs a GPU; remove the flag")


def _values(flags: Sequence[str]) -> dict[str, str]:
    """Each flag with its values; the values before the first flag are the data."""
    values: dict[str, list[str]] = {}
    flag = "--data"
    for word in flags:
        if word.startswith("--"):
            flag = word
            values.setdefault(flag, [])
        else:
            values.setdefault(flag, []).append(word)
    return {flag: " ".join(words) or "given" for flag, words in values.items()}


def default_learning_rate(model: Pretrained) -> float:
    """3e-4 for small models, 1e-4 for base, 5e-5 for large (Clark et al. 2020, table 7)."""
    if model.hidden_size < 768:
        return 3e-4
    return 1e-4 if model.layers < 24 else 5e-5


def read_pretrained(argument: str) -> Pretrained:
    """Read ``CHECKPOINT.pt`` or ``NAME=CHECKPOINT.pt``; the default name is made from the file and its folder.

    Raises InputError for a file that is not one of our models, and for a name that cannot be a folder name.
    """
    name, path = split_name(argument)
    path = Path(path)
    name = default_name(path) if name is None else name
    model = load_checkpoint(path)["cfg"]["model"]
    _check_name(name, path)
    arch = model.get("_name") if isinstance(model, Mapping) else None
    if arch not in ARCH_MODEL_REGISTRY or not issubclass(ARCH_MODEL_REGISTRY[arch], EncoderModel):
        raise InputError(f"{path}: not one of our electra_* and bert_* models; only these can be fine-tuned")
    defaults = MODEL_DATACLASS_REGISTRY[arch]()
    flags = ["--arch", arch]
    for key, value in model.items():
        if type(value) is int and value != getattr(defaults, key, value):
            flags += [f"--{key.replace('_', '-')}", str(value)]
    flags += ["--freeze-generator"] * bool(model.get("freeze_generator"))  # its embeddings may have another size
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Pretrained(name, path, digest, tuple(flags), model["encoder_layers"], model["encoder_embed_dim"])


def split_name(argument: str) -> tuple[str | None, str]:
    """The name, None if there is none, and the path in ``NAME=PATH`` or ``PATH``; an existing path may contain "="."""
    name, sign, path = argument.partition("=")
    return (name, path) if sign and path and not os.path.exists(argument) else (None, argument)


def default_name(path: Path) -> str:
    """A checkpoint's name, made from its file and its folder."""
    return "-".join(part for part in (Path(os.path.abspath(path)).parent.name, path.stem) if part)


def _check_name(name: str, path: Path) -> None:
    """Raises InputError if the name is not a single path component, because results go to a folder with that name."""
    if "/" in name:
        advice = "remove the slash"
    elif name in ("", os.curdir, os.pardir):
        advice = "give a name that is not empty, . or .."
    elif len(os.fsencode(name)) > LONGEST_NAME:
        advice = f"give one of at most {LONGEST_NAME} bytes"
    else:
        return
    raise InputError(f"{name}={path}: the name is also a folder name; {advice}: NAME=CHECKPOINT.pt")


def read_checkpoints(arguments: Sequence[str], baseline: str | None) -> list[Pretrained]:
    """Read all checkpoints; raises InputError if two have the same name, or if the baseline is not among them."""
    models = [read_pretrained(argument) for argument in arguments]
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two checkpoints are named {name}; give them different names: NAME=CHECKPOINT.pt")
    if baseline is not None and baseline not in names:
        raise InputError(f"--baseline {baseline}: not among the checkpoints, which are named {', '.join(names)}")
    return models


def run_all(
    runs: Sequence[Run], score: Callable[[Run, Path], dict[str, Any]], keep_checkpoints: bool
) -> list[dict[str, Any]]:
    """Train and score the runs that are not finished; return the results of all runs in order.

    Shows a progress bar over all updates on a terminal; otherwise prints a line to standard error per finished run.
    """
    results = [run.result() for run in runs]
    finished = sum(run.updates for run, result in zip(runs, results) if result is not None)
    with tqdm(total=sum(run.updates for run in runs), unit="update", disable=None, initial=finished) as bar:
        for index, run in enumerate(runs):
            if results[index] is not None:
                continue
            before = bar.n

            def advance(updates: int, loss: str, run: Run = run, before: int = before) -> None:
                bar.set_postfix_str(f"{run.model.name} {run.task} seed {run.seed}, loss {loss}")
                bar.update(before + updates - bar.n)

            checkpoint = run.train(advance)
            results[index] = score(run, checkpoint)
            run.finish(results[index], keep_checkpoints)
            bar.update(before + run.updates - bar.n)
            if bar.disable:  # standard error is not a terminal
                scores = ", ".join(f"{name} {value:.2f}" for name, value in results[index]["valid"].items())
                count = sum(result is not None for result in results)
                name = f"{run.model.name} {run.task} seed {run.seed}"
                print(f"[{count}/{len(runs)}] {name}: {scores}", file=sys.stderr)
    return results


def write_report(path: Path, runs: Sequence[Run], results: Sequence[dict[str, Any]], table: str) -> None:
    """Write all runs with their results to ``path``.json, and the table to ``path``.txt."""
    everything = [
        {"checkpoint": run.model.name, "task": run.task, "seed": run.seed, **result}
        for run, result in zip(runs, results)
    ]
    write_text(path.with_suffix(".json"), json.dumps(everything, indent=2) + "\n")
    write_text(path.with_suffix(".txt"), table + "\n")
