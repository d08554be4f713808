"""Fine-tuning by ``fairseq-train``, one checkpoint, task and seed at a time; what is finished is not done again."""

import hashlib
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from tqdm import tqdm

import tn_fairseq

from ..checkpoints import load_checkpoint
from ..configuration import as_argument
from ..errors import InputError
from ..files import write_whole
from ..models.base import EncoderModel

RESULT, SETTINGS, LOG, CHECKPOINTS = "result.json", "settings.json", "train.log", "checkpoints"


@dataclass(frozen=True)
class Pretrained:
    """A checkpoint to fine-tune: the name it goes by, and the flags that make its model."""

    name: str
    path: Path
    digest: str
    model_flags: tuple[str, ...]
    layers: int
    hidden_size: int


@dataclass(frozen=True)
class Recipe:
    """How to fine-tune; what is None follows the model's size (``learning_rate``) or the task (``epochs``)."""

    batch_size: int = 32
    learning_rate: float | None = None
    epochs: int | None = None
    max_update: int | None = None
    more_flags: tuple[str, ...] = ()

    def updates(self, examples: int, epochs: int) -> int:
        """The number of updates for a task of so many examples, usually seen so many times."""
        updates = math.ceil(examples / self.batch_size) * (self.epochs or epochs)
        return min(updates, self.max_update or updates)

    def flags(self, model: Pretrained, updates: int) -> list[str]:
        """fairseq-train's flags (Clark et al. 2020, table 7, and as released)."""
        learning_rate = self.learning_rate or default_learning_rate(model)
        decay = 0.9 if model.layers >= 24 else 0.8
        flags = ["--optimizer", "electra_adamw", "--lr", learning_rate, "--layerwise-lr-decay", decay]
        flags += ["--lr-scheduler", "polynomial_decay", "--warmup-updates", updates // 10]
        flags += ["--total-num-update", updates, "--max-update", updates, "--clip-norm", 1.0]
        flags += ["--batch-size", self.batch_size, "--required-batch-size-multiple", 1]
        return [*map(str, flags), *self.more_flags]


@dataclass(frozen=True)
class Run:
    """One fine-tuning, in a folder of its own: a checkpoint, a task and a seed."""

    model: Pretrained
    task: str
    seed: int
    folder: Path
    updates: int
    flags: tuple[str, ...]

    def result(self) -> dict[str, Any] | None:
        """What came out, if it is finished; raises InputError where the folder belongs to other settings."""
        path = self.folder / RESULT
        if not path.exists():
            return None
        self.check_settings()
        return _read_json(path)

    def check_settings(self) -> None:
        """Raises InputError where the folder belongs to another checkpoint or to other flags."""
        before = _read_json(self.folder / SETTINGS)
        if before.get("checkpoint") != self.model.digest:
            raise InputError(
                f"{self.folder} belongs to another checkpoint named {self.model.name}; give NAME=CHECKPOINT or --output"
            )
        if before.get("flags") != list(self.flags):
            there, here = _values(before.get("flags", ())), _values(self.flags)
            differing = [
                f"{flag} {there.get(flag, 'absent')} there, {here.get(flag, 'absent')} here"
                for flag in {**there, **here}
                if there.get(flag) != here.get(flag)
            ]
            raise InputError(
                f"{self.folder} was fine-tuned with other settings ({'; '.join(differing) or 'the order of flags'}); "
                "give another --output"
            )

    def train(self, advance: Callable[[int, str], None]) -> Path:
        """Fine-tune, going on from where it was interrupted; the checkpoint made.

        ``advance`` is told the number of updates done so far, and the loss. Raises InputError where the folder belongs
        to other settings, and where fairseq-train fails.
        """
        if (self.folder / SETTINGS).exists():
            self.check_settings()
        else:
            self._write(SETTINGS, {"checkpoint": self.model.digest, "flags": self.flags})
        checkpoints = self.folder / CHECKPOINTS
        command = [sys.executable, "-m", "fairseq_cli.train", *self.flags]
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
                _, found, record = line.partition(" | train_inner | ")
                if found:
                    record = json.loads(record)
                    advance(int(record["num_updates"]), record["loss"])
        if process.wait():
            raise InputError(f"{self.folder / LOG}: fairseq-train failed: {last.removeprefix('error: ')}")
        return checkpoints / "checkpoint_last.pt"

    def finish(self, result: dict[str, Any], keep_checkpoints: bool) -> None:
        """Write the result, after which this is not run again, and let go of the checkpoints."""
        self._write(RESULT, result)
        if not keep_checkpoints:
            shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)

    def _write(self, name: str, content: dict[str, Any]) -> None:
        with write_whole(self.folder / name) as temporary:
            temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _values(flags: Sequence[str]) -> dict[str, str]:
    """Of each flag the words behind it; the first words of all are the data."""
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
    """Read ``CHECKPOINT.pt`` or ``NAME=CHECKPOINT.pt``; the name is otherwise that of the file and its folder.

    Raises InputError for a file that holds none of our models.
    """
    name, _, path = ("", "", argument) if Path(argument).exists() else argument.partition("=")
    path = Path(path or argument)
    model = load_checkpoint(path)["cfg"]["model"]
    arch = model.get("_name") if isinstance(model, Mapping) else None
    if arch not in ARCH_MODEL_REGISTRY or not issubclass(ARCH_MODEL_REGISTRY[arch], EncoderModel):
        raise InputError(f"{path}: holds none of our electra_* and bert_* models, which alone can be fine-tuned here")
    defaults = MODEL_DATACLASS_REGISTRY[arch]()
    flags = ["--arch", arch]
    for key, value in model.items():
        if type(value) is int and value != getattr(defaults, key, value):
            flags += [f"--{key.replace('_', '-')}", str(value)]
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    name = name or "-".join(part for part in (path.absolute().parent.name, path.stem) if part)
    if "/" in name:
        raise InputError(f"{name}={path}: a name becomes a folder's; leave out the slash")
    return Pretrained(name, path, digest, tuple(flags), model["encoder_layers"], model["encoder_embed_dim"])


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: damaged ({error}); remove its folder to run this again") from None


def read_checkpoints(arguments: Sequence[str], baseline: str | None) -> list[Pretrained]:
    """All that are to be compared; raises InputError for two of one name, and a baseline that is none of them."""
    models = [read_pretrained(argument) for argument in arguments]
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two checkpoints are called {name}; give them names: NAME=CHECKPOINT.pt")
    if baseline is not None and baseline not in names:
        raise InputError(f"--baseline {baseline}: none of the checkpoints, which are called {', '.join(names)}")
    return models


def run_all(
    runs: Sequence[Run], score: Callable[[Run, Path], dict[str, Any]], keep_checkpoints: bool
) -> list[dict[str, Any]]:
    """Train and score what is not finished; the results of all, in their order.

    A terminal shows a bar over the updates of all; otherwise each run that is finished is a line on standard error.
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
            if bar.disable:  # standard error is no terminal
                scores = ", ".join(f"{name} {value:.2f}" for name, value in results[index]["valid"].items())
                count = sum(result is not None for result in results)
                name = f"{run.model.name} {run.task} seed {run.seed}"
                print(f"[{count}/{len(runs)}] {name}: {scores}", file=sys.stderr)
    return results


def write_report(path: Path, runs: Sequence[Run], results: Sequence[dict[str, Any]], table: str) -> None:
    """Write every run with its result to ``path``.json, and the table to ``path``.txt."""
    everything = [
        {"checkpoint": run.model.name, "task": run.task, "seed": run.seed, **result}
        for run, result in zip(runs, results)
    ]
    with write_whole(path.with_suffix(".json")) as temporary:
        temporary.write_text(json.dumps(everything, indent=2) + "\n", encoding="utf-8")
    with write_whole(path.with_suffix(".txt")) as temporary:
        temporary.write_text(table + "\n", encoding="utf-8")
