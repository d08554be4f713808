"""Fine-tune with ``fairseq-train``: a job for each checkpoint, task and seed, whose result is rows of the table."""

import hashlib
import math
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY

from ...core import PLUGIN
from ...core.checkpoints import load_checkpoint
from ...core.configuration import as_argument, training_config
from ...core.errors import InputError, exits_as_errors, naming
from ...core.files import sha256, write_atomically
from ...models.base import EncoderModel
from ..jobs import Job, is_done, run
from ..results.compare import compare
from ..results.report import check_output, report
from ..results.table import read_table, table_of, write_table
from .finetune_options import FineTuningOptions

# in the folder of a run
RESULTS, MARKER, CHECKPOINT = "results.parquet", "results.parquet.job.json", "checkpoints/checkpoint_last.pt"
LONGEST_NAME = 255  # bytes in a component of a path
SAVE_EVERY = 500  # updates
# reads a fine-tuned checkpoint, writes predictions to a folder, and yields rows of the table
Score = Callable[[Path, Path], Iterable[Mapping[str, Any]]]
NOTE = (
    "The intervals cover the seeds of fine-tuning only: other seeds of pre-training would add to them. They are "
    "missing if the spread is unknown: one side has a single seed, or the seeds agree on both sides (sd 0)."
)

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


def fine_tuning_jobs(
    options: FineTuningOptions,
    models: Sequence[Pretrained],
    task: str,
    data: Path,
    task_flags: Sequence[str],
    examples: int,
    epochs: int,
    score: Score,
) -> list[Job]:
    """A job for each checkpoint and seed on a task with this number of training examples and, by default, epochs.

    The other flags for fairseq-train are those of Clark et al. (2020, table 7, and their released code). Raises
    InputError for flags of the user that would break a run, and for finished runs without the checkpoint to keep.
    """
    updates = math.ceil(examples / options.batch_size) * (options.epochs or epochs)
    updates = min(updates, options.max_update or updates)
    digest, jobs = digest_of(data), []
    for model in models:
        words: list[object] = [*task_flags, *model.model_flags]
        words += ["--optimizer", "electra_adamw", "--lr", options.lr or model.lr]
        words += ["--layerwise-lr-decay", 0.9 if model.layers >= 24 else 0.8]
        words += ["--lr-scheduler", "polynomial_decay", "--warmup-updates", updates // 10]
        words += ["--total-num-update", updates, "--max-update", updates, "--clip-norm", 1.0]
        words += ["--batch-size", options.batch_size, "--required-batch-size-multiple", 1]
        check_flags([as_argument(data), *words], options.more_flags)
        for seed in options.seeds:
            flags = by_flag([*words, *options.more_flags, "--seed", seed])
            folder = options.output / model.name / task / f"seed{seed}"
            checkpoint = folder / CHECKPOINT
            command: list[object] = ["fairseq-train", as_argument(data)]
            # an epoch of SQuAD can take hours
            command += ["--save-interval-updates", SAVE_EVERY, "--keep-interval-updates", 1, "--no-epoch-checkpoints"]
            command += [word for flag, values in flags.items() for word in (flag, *values)]
            command += ["--finetune-from-model", as_argument(model.path), "--save-dir", as_argument(checkpoint.parent)]
            command += ["--user-dir", PLUGIN, "--disable-validation", "--log-format", "json", "--log-interval", 10]
            command += [] if torch.cuda.is_available() else ["--cpu", "--num-workers", 0]
            fingerprint = {"checkpoint": model.digest, "data": digest}
            fingerprint |= {flag: " ".join(values) for flag, values in flags.items()}
            about = {"arm": model.name, "checkpoint": str(model.path), "seed": seed}
            job = Job(
                f"{model.name} {task} seed {seed}",
                list(map(str, command)),
                folder / RESULTS,
                fingerprint,
                log=folder / "train.log",
                weight=updates,
                finish=partial(_finish, folder, score, about, options.keep_checkpoints),
            )
            if options.keep_checkpoints and is_done(job) and not checkpoint.exists():
                raise InputError(
                    f"{folder}: finished without --keep-checkpoints; delete the folder to fine-tune again, or omit the "
                    "flag"
                )
            jobs.append(job)
    return jobs


def _finish(folder: Path, score: Score, about: Mapping[str, Any], keep: bool) -> None:
    """Score a run, and delete its checkpoints, or all but the last."""
    checkpoint = folder / CHECKPOINT
    if checkpoint.exists():  # otherwise, an earlier call was killed after it had deleted it
        rows = table_of(score(checkpoint, folder), **about)
        with write_atomically(folder / RESULTS) as temporary:
            write_table(rows, temporary)
    if not keep:
        shutil.rmtree(checkpoint.parent, ignore_errors=True)
    for earlier in checkpoint.parent.glob("checkpoint_*_*.pt"):
        earlier.unlink()


def by_flag(words: Sequence[object]) -> dict[str, list[str]]:
    """The values of each flag in a command line; the last ones if it is there several times."""
    flags: dict[str, list[str]] = {}
    for word in map(str, words):
        if re.match("--?[a-z]", word):
            flag, sign, value = word.partition("=")
            flags[flag] = values = [value] if sign else []
        else:
            values.append(word)
    return flags


def rows_of(jobs: Sequence[Job]) -> pd.DataFrame:
    """The rows of the table that jobs have written."""
    return pd.concat([read_table(job.output)[0] for job in jobs], ignore_index=True)


def evaluate(
    title: str, options: FineTuningOptions, jobs: Sequence[Job], rows: Callable[[Sequence[Job]], pd.DataFrame]
) -> str:
    """Finish all jobs, write the report about their ``rows``, and return the text to print.

    Raises InputError with the first job that failed.
    """
    check_output(options.output, title)
    if failed := run(jobs, options.output, options.parallel):
        more = f"; {len(failed) - 1} more failed, too" * (len(failed) > 1)
        raise InputError(f"{failed[0]}{more}")
    table = rows(jobs)
    about = {job.name: job.fingerprint for job in jobs}
    notes = [*options.notes(), NOTE]
    return report(options.output, title, table, compare(table, options.baseline, "welch"), notes, about)


def check_flags(flags: Sequence[object], more_flags: Sequence[str]) -> None:
    """Raises InputError if any of the user's flags for fairseq-train would break a run with these flags."""
    for word in more_flags:
        if word.partition("=")[0] in _FIXED or word.startswith("-a"):  # -a is --arch
            raise InputError(
                f'{word} after "--": set by the evaluation itself; remove it, or give --batch-size, --max-update or '
                '--seeds before "--"'
            )
    if more_flags:  # parsing takes half a second
        with naming('flags after "--":'), exits_as_errors():
            training_config([*flags, *more_flags])


def digest_of(folder: Path) -> str:
    """A digest of all files in a folder of data, except logs."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".log")
    lines = [f"{path.relative_to(folder)} {sha256(path)}" for path in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


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
