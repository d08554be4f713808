"""The fine-tuned checkpoints to measure: the finished runs of the command squad, and single files."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from ....core.checkpoints import load_checkpoint, registered_name
from ....core.configuration import check_data_folder
from ....core.errors import InputError
from ....core.files import read_json_object
from ...preprocessing.writers import LENGTHS
from ..finetuning import CHECKPOINTS, LAST, RESULT, SETTINGS, check_baseline, name_and_path, read_settings
from ..squad import SQUAD


@dataclass(frozen=True)
class FineTuned:
    """A fine-tuned checkpoint: the name of the pre-trained one, its data and seed, and fairseq's configuration."""

    name: str
    data: Path
    seed: int
    path: Path
    cfg: DictConfig

    def __str__(self) -> str:
        return f"{self.name} {SQUAD} seed {self.seed}"


def lengths_of(data: Path) -> dict[str, int]:
    """The options that decided the lengths of the data; empty, for the defaults, if it does not say."""
    path, again = data / LENGTHS, "run tn-fairseq data squad again"
    lengths = read_json_object(path, again) if path.exists() else {}
    if not all(type(value) is int for value in lengths.values()):
        raise InputError(f"{path}: must hold numbers; {again}")
    return lengths


def find_runs(arguments: Sequence[str], baseline: str | None = None) -> list[FineTuned]:
    """The runs on SQuAD: in folders of runs, and files ``CHECKPOINT.pt`` or ``NAME=CHECKPOINT.pt``.

    They are sorted by name, with the ``baseline`` first, and by seed. Says on standard error which finished runs have
    no checkpoint. Raises InputError if there is nothing to measure, a run is not finished, two have the same name and
    seed, seeds differ in more than the seed, the data is missing, or the baseline is not among the names.
    """
    runs: list[FineTuned] = []
    for argument in arguments:
        places = _in_folder(Path(argument)) if Path(argument).is_dir() else [name_and_path(argument)]
        runs += [_read(name, path) for name, path in places]
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
    runs = [path.parent for path in sorted(folder.glob(f"*/{SQUAD}/seed*/{SETTINGS}"))]
    if not runs:
        raise InputError(f"{folder}: contains no runs on {SQUAD}; give the --output of tn-fairseq evaluate squad")
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


def _read(name: str, path: Path) -> FineTuned:
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
    return FineTuned(name, data, cfg.common.seed, path, cfg)
