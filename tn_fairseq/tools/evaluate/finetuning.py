"""Fine-tune with ``fairseq-train``: a run for each checkpoint, task and seed; finished runs are not repeated."""

import hashlib
import json
import math
import os
import shutil
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from tqdm import tqdm

from ...core import PLUGIN
from ...core.checkpoints import load_checkpoint
from ...core.configuration import as_argument, training_config
from ...core.errors import InputError, exits_as_errors, naming
from ...core.files import read_json_object, sha256, write_text
from ...models.base import EncoderModel
from ..launching import Launcher, launching
from ..reporting.comparison import Comparison, report_files, write_report
from ..reporting.report_folder import list_files, report_folder
from .score_tables import Results, Score

LOCK = ".fine-tuning-lock"
RESULT, SETTINGS, LOG = "result.json", "settings.json", "train.log"
CHECKPOINTS, LAST = "checkpoints", "checkpoint_last.pt"
_RESTART = "delete its folder to start over"
LONGEST_NAME = 255  # bytes in a component of a path
SAVE_EVERY = 500  # updates

# flags that decide what is trained, for how long and with which seed, and where the checkpoint is
_FIXED = {
    *("--task", "--arch", "--criterion", "--classification-head-name", "--num-classes", "--regression-target"),
    *("--finetune-from-model", "--restore-file", "--continue-once", "--user-dir"),
    *("--reset-optimizer", "--reset-lr-scheduler", "--reset-meters", "--reset-dataloader"),
    *("--save-dir", "--no-save", "--no-last-checkpoints", "--checkpoint-suffix"),
    *("--batch-size", "--max-sentences", "--update-freq", "--max-update", "--max-epoch", "--stop-time-hours", "--seed"),
    *("--stop-min-lr", "--train-subset", "--distributed-world-size"),
}


@dataclass(frozen=True)
class FineTuningOptions:
    """Which checkpoints to fine-tune on which data, how, and the folder of the runs and the report."""

    checkpoints: Sequence[str]  # CHECKPOINT.pt or NAME=CHECKPOINT.pt
    data: Path
    output: Path
    baseline: str | None = None
    paper: bool = False  # show the paper's numbers, too
    seeds: Sequence[int] = (1, 2, 3)
    epochs: int | None = None  # by default, the task's
    max_update: int | None = None
    batch_size: int = 32
    lr: float | None = None  # by default, the model's
    keep_checkpoints: bool = False
    parallel: int = 1  # runs at the same time
    more_flags: tuple[str, ...] = ()  # for fairseq-train


@dataclass(frozen=True)
class Pretrained:
    """A checkpoint to fine-tune: its name in results, and the flags that build its model."""

    name: str
    path: Path
    digest: str
    model_flags: tuple[str, ...]
    layers: int
    hidden_size: int

    @property
    def lr(self) -> float:
        """3e-4 for small models, 1e-4 for base, 5e-5 for large (Clark et al. 2020, table 7)."""
        if self.hidden_size < 768:
            return 3e-4
        return 1e-4 if self.layers < 24 else 5e-5


@dataclass(frozen=True)
class Run:
    """One fine-tuning run in its own folder: a checkpoint, a task and a seed."""

    model: Pretrained
    task: str
    seed: int
    folder: Path
    updates: int
    flags: tuple[str, ...]
    data: str = ""  # the digest of the data

    def __str__(self) -> str:
        return f"{self.model.name} {self.task} seed {self.seed}"

    def result(self) -> dict[str, Any] | None:
        """The result, or None if the run is not finished; raises InputError if the folder has other settings."""
        path = self.folder / RESULT
        if not path.exists():
            return None
        self.check_settings()
        return read_json_object(path, _RESTART)

    def check_settings(self) -> None:
        """Raises InputError if the folder has another checkpoint, other data or other flags."""
        digest, flags, data = read_settings(self.folder)
        if digest != self.model.digest:
            raise InputError(
                f"{self.folder} belongs to another checkpoint named {self.model.name}; "
                "give NAME=CHECKPOINT.pt or another --output"
            )
        if data not in (None, self.data):  # older versions did not record it
            raise InputError(
                f"{self.folder} was fine-tuned on other data in {self.flags[0]}; give another --output, or delete the "
                "folder to fine-tune again"
            )
        if flags != self.flags:
            there, here = _with_values(flags), _with_values(self.flags)
            was = " ".join(one for one in there if one not in here) or "nothing else"
            now = " ".join(one for one in here if one not in there) or "nothing else"
            raise InputError(
                f"{self.folder} was fine-tuned with different settings: with {was}, and now there is {now}; keep the "
                "flags and their order, or give another --output"
            )

    @property
    def checkpoint(self) -> Path:
        """The fine-tuned checkpoint."""
        return self.folder / CHECKPOINTS / LAST

    def train(self, launcher: Launcher, threads: int | None) -> Iterator[tuple[int, str] | None]:
        """Fine-tune or resume an interrupted run; yield the number of updates so far and the loss, or None for no news.

        Raises InputError if the folder has other settings or if fairseq-train fails.
        """
        if (self.folder / SETTINGS).exists():
            self.check_settings()
        else:
            self.write(SETTINGS, {"checkpoint": self.model.digest, "data": self.data, "flags": self.flags})
        # an epoch of SQuAD can take hours
        saving = ["--save-interval-updates", SAVE_EVERY, "--keep-interval-updates", 1]
        command: list[object] = ["fairseq-train", *saving, *self.flags]
        command += ["--finetune-from-model", as_argument(self.model.path)]
        command += ["--save-dir", as_argument(self.checkpoint.parent), "--user-dir", PLUGIN]
        command += ["--no-epoch-checkpoints", "--disable-validation", "--log-format", "json", "--log-interval", 10]
        command += [] if torch.cuda.is_available() else ["--cpu", "--num-workers", 0]
        for record in launcher.train(command, self.folder / LOG, threads):
            yield (int(record["num_updates"]), record["loss"]) if record else None

    def finish(self, result: dict[str, Any], keep_checkpoints: bool) -> None:
        """Write the result, which marks the run as finished, and delete the checkpoints, or all but the last."""
        self.write(RESULT, result)
        if keep_checkpoints:
            for earlier in self.checkpoint.parent.glob("checkpoint_*_*.pt"):
                earlier.unlink()
        else:
            shutil.rmtree(self.checkpoint.parent, ignore_errors=True)

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Write a JSON file to the folder."""
        write_text(self.folder / name, json.dumps(content, indent=2) + "\n")


def read_settings(folder: Path) -> tuple[Any, tuple[str, ...], Any]:
    """The digest of the checkpoint, the flags, and the digest of the data in the folder of a run.

    Raises InputError if the file is damaged.
    """
    content = read_json_object(folder / SETTINGS, _RESTART)
    if not isinstance(content.get("flags"), list):
        raise InputError(f"{folder / SETTINGS}: not the settings of a run; {_RESTART}")
    return content.get("checkpoint"), tuple(map(str, content["flags"])), content.get("data")


def digest_of(folder: Path) -> str:
    """A digest of all files in a folder of data, except logs."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".log")
    lines = [f"{path.relative_to(folder)} {sha256(path)}" for path in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _with_values(flags: Sequence[str]) -> list[str]:
    """Each flag with its values in one string; the first words are the data."""
    return [f"--{words}" for words in " ".join(["--data", *flags]).removeprefix("--").split(" --")]


def plan(
    options: FineTuningOptions,
    models: Sequence[Pretrained],
    task: str,
    data: Path,
    task_flags: Sequence[str],
    examples: int,
    epochs: int,
) -> list[Run]:
    """A run for each checkpoint and seed on a task with this number of training examples and, by default, epochs.

    The other flags for fairseq-train are those of Clark et al. (2020, table 7, and their released code).
    """
    updates = math.ceil(examples / options.batch_size) * (options.epochs or epochs)
    updates = min(updates, options.max_update or updates)
    runs, digest = [], digest_of(data)
    for model in models:
        decay = 0.9 if model.layers >= 24 else 0.8
        flags: list[object] = [as_argument(data), *task_flags, *model.model_flags]
        flags += ["--optimizer", "electra_adamw", "--lr", options.lr or model.lr, "--layerwise-lr-decay", decay]
        flags += ["--lr-scheduler", "polynomial_decay", "--warmup-updates", updates // 10]
        flags += ["--total-num-update", updates, "--max-update", updates, "--clip-norm", 1.0]
        flags += ["--batch-size", options.batch_size, "--required-batch-size-multiple", 1, *options.more_flags]
        for seed in options.seeds:
            folder = options.output / model.name / task / f"seed{seed}"
            runs.append(Run(model, task, seed, folder, updates, tuple(map(str, [*flags, "--seed", seed])), digest))
    return runs


def check_flags(runs: Sequence[Run], more_flags: Sequence[str]) -> None:
    """Raises InputError if any of the user's flags for fairseq-train would break a run."""
    for word in more_flags:
        if word.partition("=")[0] in _FIXED or word.startswith("-a"):  # -a is --arch
            raise InputError(
                f'{word} after "--": set by the evaluation itself; remove it, or give --batch-size, --max-update or '
                '--seeds before "--"'
            )
    if not more_flags:  # parsing takes half a second
        return
    for flags in {run.model: run.flags for run in runs}.values():
        with naming('flags after "--":'), exits_as_errors():
            training_config(flags)


def read_pretrained(argument: str) -> Pretrained:
    """Read ``CHECKPOINT.pt`` or ``NAME=CHECKPOINT.pt``; the default name is made from the file and its folder.

    Raises InputError for a file that is not one of our models, and for a name that cannot be a folder name.
    """
    name, path = name_and_path(argument)
    model = load_checkpoint(path)["cfg"]["model"]
    arch = model.get("_name") if isinstance(model, Mapping) else None
    if arch not in ARCH_MODEL_REGISTRY or not issubclass(ARCH_MODEL_REGISTRY[arch], EncoderModel):
        raise InputError(f"{path}: not one of our electra_* and bert_* models; only these can be fine-tuned")
    defaults = MODEL_DATACLASS_REGISTRY[arch]()
    flags = ["--arch", str(arch)]
    for key, value in model.items():
        if type(value) is int and value != getattr(defaults, key, value):
            flags += [f"--{key.replace('_', '-')}", str(value)]
    flags += ["--freeze-generator"] * bool(model.get("freeze_generator"))  # its embeddings may have another size
    return Pretrained(name, path, sha256(path), tuple(flags), model["encoder_layers"], model["encoder_embed_dim"])


def split_name(argument: str) -> tuple[str | None, str]:
    """The name, None if there is none, and the path in ``NAME=PATH`` or ``PATH``; an existing path may contain "="."""
    name, sign, path = argument.partition("=")
    return (name, path) if sign and path and not os.path.exists(argument) else (None, argument)


def name_and_path(argument: str) -> tuple[str, Path]:
    """As ``split_name``, with a default name; raises InputError if the name cannot be that of a folder."""
    given, path = split_name(argument)
    name = default_name(Path(path)) if given is None else given
    if "/" in name or name in ("", os.curdir, os.pardir) or len(os.fsencode(name)) > LONGEST_NAME:
        raise InputError(f"{name}={path}: the name is also a folder name; give another: NAME=CHECKPOINT.pt")
    return name, Path(path)


def default_name(path: Path) -> str:
    """A checkpoint's name, made from its file and its folder."""
    return "-".join(part for part in (Path(os.path.abspath(path)).parent.name, path.stem) if part)


def read_checkpoints(arguments: Sequence[str], baseline: str | None) -> list[Pretrained]:
    """Read all checkpoints; raises InputError if two have the same name, or if the baseline is not among them."""
    models = [read_pretrained(argument) for argument in arguments]
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two checkpoints are named {name}; give them different names: NAME=CHECKPOINT.pt")
    check_baseline(baseline, names)
    return models


def check_baseline(baseline: str | None, names: Sequence[str]) -> None:
    """Raises InputError if the baseline is not among the names."""
    if baseline is not None and baseline not in names:
        raise InputError(f"--baseline {baseline}: not among the checkpoints, which are named {', '.join(names)}")


def run_all(
    options: FineTuningOptions, runs: Sequence[Run], score: Callable[[Run], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Train and score the runs that are not finished; return the results of all runs in order.

    Shows a progress bar over all updates on a terminal; otherwise prints a line to standard error per finished run.
    Raises InputError if the user's flags, an earlier run with other settings or another command are in the way.
    """
    check_flags(runs, options.more_flags)
    results = {run: result for run in runs if (result := run.result()) is not None}
    for run in results:
        if options.keep_checkpoints and not run.checkpoint.exists():
            raise InputError(
                f"{run.folder}: finished without --keep-checkpoints; delete the folder to fine-tune again, or omit the "
                "flag"
            )
    left = [run for run in runs if run not in results]
    if left:
        refusal = f"{options.output}: another command is fine-tuning there; wait for it to end"
        with launching(options.output / LOCK, refusal) as launcher:
            _finish_all(options, left, results, launcher, score)
    return [results[run] for run in runs]


def _finish_all(
    options: FineTuningOptions,
    left: Sequence[Run],
    results: dict[Run, dict[str, Any]],
    launcher: Launcher,
    score: Callable[[Run], dict[str, Any]],
) -> None:
    """Train and score the runs that are left, several at a time, and add their results."""
    done = {run: run.updates for run in results}  # updates
    count, total = len(results) + len(left), sum(run.updates for run in [*results, *left])
    parallel = min(options.parallel, len(left))
    shares_cores = parallel > 1 and "OMP_NUM_THREADS" not in os.environ
    threads = max(1, (os.cpu_count() or 1) // parallel) if shares_cores else None
    waiting, training = deque(left), deque[tuple[Run, Iterator]]()
    with tqdm(total=total, unit="update", disable=None, initial=sum(done.values())) as bar:
        while waiting or training:
            while waiting and len(training) < parallel:
                run = waiting.popleft()
                training.append((run, run.train(launcher, threads)))
            run, progress = training.popleft()
            try:
                news = next(progress)
            except StopIteration:
                results[run] = score(run)
                run.finish(results[run], options.keep_checkpoints)
                done[run] = run.updates
                if bar.disable:  # standard error is not a terminal
                    scores = ", ".join(f"{name} {value:.2f}" for name, value in results[run]["valid"].items())
                    print(f"[{len(results)}/{count}] {run}: {scores}", file=sys.stderr)
            else:
                training.append((run, progress))
                if news:
                    done[run], loss = news
                    bar.set_postfix_str(f"{run}, loss {loss}")
            bar.update(sum(done.values()) - bar.n)


def scores_of(runs: Sequence[Run], results: Sequence[dict[str, Any]], order: Sequence[Score]) -> Results:
    """The scores of the validation data by checkpoint, those in the ``order``, with one value for each seed."""
    scores: dict[str, dict[Score, list[float]]] = {}
    for run, result in zip(runs, results):
        for task, metric in order:
            if task == run.task:
                scores.setdefault(run.model.name, {}).setdefault((task, metric), []).append(result["valid"][metric])
    return scores


def write_scores(
    output: Path,
    name: str,
    rows: Sequence[Comparison],
    text: str,
    runs: Sequence[Run],
    results: Sequence[dict[str, Any]],
) -> str:
    """Write the files of a report, with the result of each run; returns the text to print, which lists them."""
    records = [
        {"checkpoint": run.model.name, "task": run.task, "seed": run.seed, **result}
        for run, result in zip(runs, results)
    ]
    files = report_files(name)
    with report_folder(output, files) as folder:
        write_report(folder, name, rows, text, runs=records)
    return "\n".join([text, "", *list_files(output, files)])
