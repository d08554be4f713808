"""The checkpoints to analyse: found by name or pattern, checked before anything runs, and loaded one at a time."""

import filecmp
import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq import tasks
from fairseq.data import Dictionary
from fairseq.models import ARCH_MODEL_REGISTRY, BaseFairseqModel
from fairseq.models.roberta import RobertaModel
from fairseq.tasks.masked_lm import MaskedLMTask
from omegaconf import DictConfig, OmegaConf, open_dict

from ..checkpoints import check_dictionary, load_checkpoint
from ..errors import InputError
from ..models.base import EncoderModel


class Checkpoint(NamedTuple):
    """A file that holds a masked language model of the data's dictionary, and how long that was trained, if known."""

    path: Path
    updates: int | None


class Loaded(NamedTuple):
    """A masked language model, ready to predict, its task on the data at hand, and the sizes of its batches."""

    model: BaseFairseqModel
    task: MaskedLMTask
    batching: DictConfig  # fairseq's options of the group ``dataset``


def find_checkpoints(patterns: Sequence[str], dictionary: Dictionary) -> list[Checkpoint]:
    """The checkpoints that the names and patterns match, folder by folder in the order of their updates, each once.

    fairseq-train keeps its newest checkpoint twice, as ``checkpoint_last.pt`` as well. Raises InputError for a pattern
    without a match, and for a file that holds no masked language model or one of another dictionary.
    """
    paths: dict[Path, Path] = {}
    for pattern in patterns:
        matches = _matches(pattern)
        if not matches:
            raise InputError(f"--path {pattern}: no such checkpoint; name files of fairseq-train or a quoted pattern")
        for path in matches:
            if path.is_dir():
                raise InputError(
                    f"--path {path}: a folder; name the checkpoints in it, such as '{path}/checkpoint*.pt'"
                )
            paths.setdefault(path.resolve(), path)
    found: list[Checkpoint] = []
    for path in paths.values():
        checkpoint = _check(path, dictionary)
        if not any(checkpoint.updates == other.updates and filecmp.cmp(path, other.path, False) for other in found):
            found.append(checkpoint)
    folders = list(dict.fromkeys(checkpoint.path.parent for checkpoint in found))
    return sorted(found, key=lambda checkpoint: (folders.index(checkpoint.path.parent), checkpoint.updates or 0))


def load(checkpoint: Checkpoint, data_bin: Path) -> Loaded:
    """Build the model as it was trained, on a GPU where there is one; raises InputError where its parameters differ."""
    state = load_checkpoint(checkpoint.path)
    cfg = OmegaConf.create(state["cfg"], flags={"allow_objects": True})
    with open_dict(cfg):
        cfg.task.data = str(data_bin)
    task = tasks.setup_task(cfg.task, from_checkpoint=True)
    model = task.build_model(cfg.model, from_checkpoint=True)
    try:
        model.load_state_dict(state["model"], strict=True, model_cfg=cfg.model)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(f"{checkpoint.path}: does not hold the model it describes ({reason})") from None
    model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    return Loaded(model, task, cfg.dataset)


def _matches(pattern: str) -> list[Path]:
    """The file of this name or, in the deepest folder of it that is there, those that the rest of it matches."""
    folder = Path(pattern)
    while not folder.exists():
        folder = folder.parent
    rest = Path(pattern).relative_to(folder)
    return sorted(map(Path, glob.glob(str(Path(glob.escape(str(folder)), rest)), recursive=True)))


def _check(path: Path, dictionary: Dictionary) -> Checkpoint:
    """Raises InputError where the file holds no masked language model, or one of another dictionary."""
    state = load_checkpoint(path)
    arch, task = _name(state["cfg"]["model"], "arch"), _name(state["cfg"]["task"], "task")
    model, task_class = ARCH_MODEL_REGISTRY.get(arch, object), tasks.TASK_REGISTRY.get(task, object)
    if not issubclass(model, (EncoderModel, RobertaModel)) or not issubclass(task_class, MaskedLMTask):
        raise InputError(
            f"{path}: holds {arch} of the task {task}; the analysis takes ELECTRA, BERT and RoBERTa, pre-trained with "
            "--task electra or masked_lm"
        )
    check_dictionary(path, state, dictionary)
    history = state.get("optimizer_history") or [{}]
    return Checkpoint(path, history[-1].get("num_updates"))


def _name(cfg: Any, older: str) -> str | None:
    """What a model or task is called in its configuration, a dict or, for fairseq's older ones, a namespace."""
    fields = cfg if isinstance(cfg, (dict, DictConfig)) else vars(cfg)
    return fields.get("_name") or fields.get(older)
