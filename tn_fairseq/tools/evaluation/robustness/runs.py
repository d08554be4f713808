"""The fine-tuned checkpoints to measure: the finished runs of the commands glue and squad, and single files."""

import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from ....core.checkpoints import load_checkpoint, registered_name
from ....core.configuration import check_data_folder
from ....core.errors import InputError
from ....core.files import read_json_object
from ...formats.glue import TASKS
from ...preprocessing.writers import LENGTHS
from ..finetuning import CHECKPOINTS, LAST, RESULT, SETTINGS, check_baseline, name_and_path, read_settings
from ..squad import SQUAD


@dataclass(frozen=True)
class Data:
    """The folder of a task's data."""

    task: str
    folder: Path

    @property
    def dictionary(self) -> Path:
        """The dict.txt of the data."""
        return self.folder / ("dict.txt" if self.task == SQUAD else "input0/dict.txt")

    @property
    def tokenizer(self) -> Path:
        """The folder of the data's tokenizer."""
        return (self.folder if self.task == SQUAD else self.folder.parent) / "tokenizer"

    def lengths(self) -> dict[str, int]:
        """The options that decided the lengths of the data; empty, for the defaults, if it does not say."""
        path = self.folder / LENGTHS
        if not path.exists():
            return {}
        again = f"run tn-fairseq data {'squad' if self.task == SQUAD else 'glue'} again"
        lengths = read_json_object(path, again)
        if not all(type(value) is int for value in lengths.values()):
            raise InputError(f"{path}: must hold numbers; {again}")
        return lengths


@dataclass(frozen=True)
class FineTuned:
    """A fine-tuned checkpoint: the name of the pre-trained one, its data and seed, and fairseq's configuration."""

    name: str
    data: Data
    seed: int
    path: Path
    cfg: DictConfig

    @property
    def task(self) -> str:
        return self.data.task

    def __str__(self) -> str:
        return f"{self.name} {self.task} seed {self.seed}"


def find_runs(arguments: Sequence[str], tasks: Collection[str], baseline: str | None = None) -> list[FineTuned]:
    """The runs on any of ``tasks``: in folders of runs, and files ``CHECKPOINT.pt`` or ``NAME=CHECKPOINT.pt``.

    They are sorted by name, with the ``baseline`` first, and by seed. Says on standard error which finished runs have
    no checkpoint. Raises InputError if there is nothing to measure, a run is not finished, two have the same name, task
    and seed, seeds differ in more than the seed, the data is missing, or the baseline is not among the names.
    """
    runs: list[FineTuned] = []
    for argument in arguments:
        places = _in_folder(Path(argument), tasks) if Path(argument).is_dir() else [name_and_path(argument)]
        runs += [_read(name, path, tasks) for name, path in places]
    names = sorted({run.name for run in runs}, key=lambda name: (name != baseline, name))
    check_baseline(baseline, names)
    runs.sort(key=lambda run: (names.index(run.name), run.task, run.seed))
    for one, other in zip(runs, runs[1:]):
        if str(one) == str(other):
            raise InputError(
                f"{one.path} and {other.path} are both named {one}; give different names: NAME=CHECKPOINT.pt"
            )
    return runs


def _in_folder(folder: Path, tasks: Collection[str]) -> Iterator[tuple[str, Path]]:
    """The names and the checkpoints of finished runs."""
    runs = [path.parent for path in sorted(folder.glob(f"*/*/seed*/{SETTINGS}")) if path.parent.parent.name in tasks]
    if not runs:
        raise InputError(
            f"{folder}: contains no runs on {', '.join(tasks)}, whose data is attacked; give the --output of "
            "tn-fairseq evaluate glue or squad"
        )
    without = []
    recipes: dict[Path, tuple[Path, object]] = {}
    for run in runs:
        digest, flags, data = read_settings(run)
        if not (run / RESULT).exists():
            raise InputError(f"{run}: not finished; run the command that fine-tunes again, or delete the folder")
        path = run / CHECKPOINTS / LAST
        if not path.exists():
            without.append(str(run))
            continue
        recipe = digest, flags[:-1], data  # the last flag is the seed
        other, other_recipe = recipes.setdefault(run.parent, (run, recipe))
        if recipe != other_recipe:
            raise InputError(f"{other} and {run} differ in more than the seed; move one of them to another folder")
        yield run.parent.parent.name, path
    if not recipes:
        raise InputError(f"{folder}: has no checkpoints of finished runs; delete it, and use --keep-checkpoints")
    if without:
        print(f"without a checkpoint, and left out: {', '.join(without)}", file=sys.stderr)


def _read(name: str, path: Path, tasks: Collection[str]) -> FineTuned:
    cfg = OmegaConf.create(load_checkpoint(path)["cfg"], flags={"allow_objects": True})
    kind, folder = registered_name(cfg.task, "task"), Path(cfg.task.get("data") or "")
    task = SQUAD if kind == "squad" else folder.name
    if kind not in ("squad", "sentence_prediction") or task not in (SQUAD, *TASKS):
        raise InputError(f"{path}: was trained with --task {kind}; give a checkpoint fine-tuned on SQuAD or GLUE")
    if task not in tasks:
        raise InputError(
            f"{path}: fine-tuned on {task}, but the attacked data is for {', '.join(tasks)}; give a checkpoint of "
            "one of these tasks"
        )
    data = Data(task, folder)
    check_data_folder(folder)
    for needed in (data.dictionary, data.tokenizer):
        if not needed.exists():
            raise InputError(
                f"{needed}: no such file or folder, but {path} was fine-tuned with it; restore it, or run the command "
                "in the folder in which you fine-tuned"
            )
    return FineTuned(name, data, cfg.common.seed, path, cfg)
