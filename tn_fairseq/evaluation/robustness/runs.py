"""The fine-tuned checkpoints to measure: the finished runs of the commands glue and squad, and single files."""

import hashlib
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from ...checkpoints import load_checkpoint, registered_name
from ...configuration import check_data_folder
from ...errors import InputError
from ...files import read_json_object
from ...formats.glue import TASKS
from ..finetuning import CHECKPOINTS, RESULT, SETTINGS, default_name, split_name

SQUAD = "SQuAD"


@dataclass(frozen=True)
class FineTuned:
    """A fine-tuned checkpoint: the name of the pre-trained one, a task, a seed, and fairseq's configuration."""

    name: str
    task: str
    seed: int
    path: Path
    cfg: DictConfig

    @property
    def data(self) -> Path:
        """The folder of the task's data."""
        return Path(self.cfg.task.data)

    @property
    def dictionary(self) -> Path:
        """The dict.txt of the data."""
        return self.data / ("dict.txt" if self.task == SQUAD else "input0/dict.txt")

    @property
    def tokenizer(self) -> Path:
        """The folder of the data's tokenizer."""
        return (self.data if self.task == SQUAD else self.data.parent) / "tokenizer"

    def digest(self) -> str:
        """The SHA-256 of the file."""
        with open(self.path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def __str__(self) -> str:
        return f"{self.name} {self.task} seed {self.seed}"


def find_runs(arguments: Sequence[str], tasks: Collection[str], baseline: str | None = None) -> list[FineTuned]:
    """The runs on any of ``tasks``: in folders of runs, and files ``CHECKPOINT.pt`` or ``NAME=CHECKPOINT.pt``.

    They are sorted by name, with the ``baseline`` first, and by seed. Says on standard error which finished runs have
    no checkpoint. Raises InputError if there is nothing to measure, a run is not finished, two have the same name, task
    and seed, seeds differ in more than the seed, the data is missing, or the baseline is not among the names.
    """
    found: list[FineTuned] = []
    for argument in arguments:
        if Path(argument).is_dir():
            found += _in_folder(Path(argument), tasks)
        else:
            found.append(_single(argument, tasks))
    names = sorted({run.name for run in found}, key=lambda name: (name != baseline, name))
    found.sort(key=lambda run: (names.index(run.name), run.task, run.seed))
    for one, other in zip(found, found[1:]):
        if str(one) == str(other):
            raise InputError(
                f"{one.path} and {other.path} are both named {one}; give different names: NAME=CHECKPOINT.pt"
            )
    if baseline is not None and baseline not in names:
        raise InputError(f"--baseline {baseline}: not among the checkpoints, which are named {', '.join(names)}")
    for run in found:
        check_data_folder(run.data)
        for path in (run.dictionary, run.tokenizer):
            if not path.exists():
                raise InputError(
                    f"{path}: no such file or folder, but {run} was fine-tuned with it; restore it, or run the command "
                    "in the folder in which you fine-tuned"
                )
    return found


def _in_folder(folder: Path, tasks: Collection[str]) -> list[FineTuned]:
    every = [path.parent for path in sorted(folder.glob(f"*/*/seed*/{SETTINGS}"))]
    if not every:
        raise InputError(
            f"{folder}: contains no runs; give the --output of python -m tn_fairseq.evaluation glue or squad"
        )
    runs = [run for run in every if run.parent.name in tasks]
    if not runs:
        others = ", ".join(dict.fromkeys(run.parent.name for run in every))
        raise InputError(f"{folder}: has runs on {others}, but the attacked data is for {', '.join(tasks)}")
    found, without = [], []
    recipes: dict[Path, tuple[Path, object]] = {}
    for run in runs:
        settings = read_json_object(run / SETTINGS, "delete the folder of the run")
        if not (run / RESULT).exists():
            raise InputError(f"{run}: not finished; run the command that fine-tunes again, or delete the folder")
        path = run / CHECKPOINTS / "checkpoint_last.pt"
        if not path.exists():
            without.append(str(run))
            continue
        seed, recipe = _seed_and_recipe(settings, run)
        other, other_recipe = recipes.setdefault(run.parent, (run, recipe))
        if recipe != other_recipe:
            raise InputError(f"{other} and {run} differ in more than the seed; move one of them to another folder")
        found.append(FineTuned(run.parent.parent.name, run.parent.name, seed, path, _configuration(path)))
    if not found:
        raise InputError(f"{folder}: has no checkpoints of finished runs; fine-tune with --keep-checkpoints")
    if without:
        print(f"without a checkpoint, and left out: {', '.join(without)}", file=sys.stderr)
    return found


def _seed_and_recipe(settings: dict, run: Path) -> tuple[int, object]:
    """The seed, and everything else that identifies a run."""
    flags = list(settings.get("flags", ()))
    try:
        place = flags.index("--seed")
        return int(flags[place + 1]), (settings["checkpoint"], flags[:place] + flags[place + 2 :])
    except (ValueError, IndexError, KeyError):
        raise InputError(f"{run / SETTINGS}: not the settings of a run; delete the folder of the run") from None


def _single(argument: str, tasks: Collection[str]) -> FineTuned:
    name, path = split_name(argument)
    cfg = _configuration(Path(path))
    kind, data = registered_name(cfg.task, "task"), cfg.task.get("data") or ""
    task = {"squad": SQUAD, "sentence_prediction": Path(data).name}.get(kind)
    if task not in (SQUAD, *TASKS):
        raise InputError(f"{path}: was trained with --task {kind}; give a checkpoint fine-tuned on SQuAD or GLUE")
    if task not in tasks:
        raise InputError(f"{path}: fine-tuned on {task}, but the attacked data is for {', '.join(tasks)}")
    return FineTuned(default_name(Path(path)) if name is None else name, task, cfg.common.seed, Path(path), cfg)


def _configuration(path: Path) -> DictConfig:
    return OmegaConf.create(load_checkpoint(path)["cfg"], flags={"allow_objects": True})
