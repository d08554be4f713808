"""The checkpoints of models: found by name or pattern, checked before anything runs, and loaded one at a time."""

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
from omegaconf.errors import OmegaConfBaseException

from ..checkpoints import check_dictionary, load_checkpoint, registered_name
from ..errors import InputError, first_line
from .base import EncoderModel


class Checkpoint(NamedTuple):
    """The file of a masked language model with the data's dictionary, and its number of updates if known."""

    path: Path
    updates: int | None


class Loaded(NamedTuple):
    """A masked language model in evaluation mode, its task on the given data, and its batch sizes."""

    model: BaseFairseqModel
    task: MaskedLMTask
    batching: DictConfig  # fairseq's options of the group ``dataset``


def find_checkpoints(patterns: Sequence[str], dictionary: Dictionary) -> list[Checkpoint]:
    """The checkpoints that match names and patterns, by folder and updates, without copies (``checkpoint_last.pt``).

    Raises InputError for a pattern without a match, and as ``check_masked_lm``.
    """
    paths: dict[Path, Path] = {}
    for pattern in patterns:
        matches = _matches(pattern)
        if not matches:
            raise InputError(f"{pattern}: no such checkpoint; give files of fairseq-train or a quoted pattern")
        for path in matches:
            if path.is_dir():
                raise InputError(f"{path}: is a folder; give the checkpoints in it, such as '{path}/checkpoint*.pt'")
            paths.setdefault(path.resolve(), path)
    found: list[Checkpoint] = []
    for path in paths.values():
        checkpoint = check_masked_lm(path, dictionary)
        if not any(checkpoint.updates == other.updates and filecmp.cmp(path, other.path, False) for other in found):
            found.append(checkpoint)
    folders = list(dict.fromkeys(checkpoint.path.parent for checkpoint in found))
    return sorted(found, key=lambda checkpoint: (folders.index(checkpoint.path.parent), checkpoint.updates or 0))


def load(checkpoint: Checkpoint, data_bin: Path) -> Loaded:
    """Load the model, on a GPU if there is one; raises InputError if its parameters do not match its configuration."""
    state = load_checkpoint(checkpoint.path)
    cfg = OmegaConf.create(state["cfg"], flags={"allow_objects": True})
    with open_dict(cfg):
        cfg.task.data = str(data_bin)
    try:
        task = tasks.setup_task(cfg.task, from_checkpoint=True)
        model = task.build_model(cfg.model, from_checkpoint=True)
    except OmegaConfBaseException as error:
        raise InputError(
            f"{checkpoint.path}: was trained with an option that this tn_fairseq does not have ({first_line(error)}); "
            "use the version that trained it"
        ) from None
    try:
        model.load_state_dict(state["model"], strict=True, model_cfg=cfg.model)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(f"{checkpoint.path}: its parameters do not match its configuration ({reason})") from None
    model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    return Loaded(model, task, cfg.dataset)


def load_ours(path: Path) -> tuple[dict[str, Any], type[EncoderModel]]:
    """Read a checkpoint of BERT or ELECTRA, and say which; raises InputError for another kind of model."""
    state = load_checkpoint(path)
    arch = registered_name(state["cfg"]["model"], "arch")
    model = ARCH_MODEL_REGISTRY.get(arch, object)
    if not issubclass(model, EncoderModel):
        raise InputError(f"{path}: holds {arch}; give an electra_* or bert_* model")
    return state, model


def _matches(pattern: str) -> list[Path]:
    """The file of this name, or the files that match the pattern below the deepest folder of it that exists."""
    folder = Path(pattern)
    while not folder.exists():
        folder = folder.parent
    rest = Path(pattern).relative_to(folder)
    return sorted(map(Path, glob.glob(str(Path(glob.escape(str(folder)), rest)), recursive=True)))


def check_masked_lm(path: Path, dictionary: Dictionary) -> Checkpoint:
    """Raises InputError if the file is not a masked language model's checkpoint, or has another dictionary."""
    state = load_checkpoint(path)
    arch, task = registered_name(state["cfg"]["model"], "arch"), registered_name(state["cfg"]["task"], "task")
    model, task_class = ARCH_MODEL_REGISTRY.get(arch, object), tasks.TASK_REGISTRY.get(task, object)
    if not issubclass(model, (EncoderModel, RobertaModel)) or not issubclass(task_class, MaskedLMTask):
        raise InputError(
            f"{path}: holds {arch} trained with --task {task}; give ELECTRA, BERT or RoBERTa, "
            "pre-trained with --task electra or masked_lm"
        )
    check_dictionary(path, state, dictionary)
    history = state.get("optimizer_history") or [{}]
    return Checkpoint(path, history[-1].get("num_updates"))
