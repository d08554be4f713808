"""The checkpoints of models: found by name or pattern, checked before anything runs, and loaded one at a time.

``load_generator`` is for ``--generator-checkpoint``: ELECTRA with an existing generator.
"""

import filecmp
import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq import tasks, utils
from fairseq.data import Dictionary
from fairseq.models import ARCH_MODEL_REGISTRY, BaseFairseqModel
from fairseq.models.roberta import RobertaModel
from fairseq.tasks.masked_lm import MaskedLMTask
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor, nn

from ..core.checkpoints import check_dictionary, import_first, load_checkpoint, registered_name, updates_of
from ..core.errors import InputError, first_line, naming
from .base import SIZES, EncoderModel
from .electra import ElectraModel


class Checkpoint(NamedTuple):
    """The file of a masked language model with the data's dictionary, and its number of updates if known."""

    path: Path
    updates: int | None


class Loaded(NamedTuple):
    """A masked language model in evaluation mode, its task on the given data, and its batch sizes."""

    model: BaseFairseqModel
    task: MaskedLMTask
    batching: DictConfig  # fairseq's options of the group ``dataset``
    criterion: DictConfig


def find_checkpoints(patterns: Sequence[str], dictionary: Dictionary) -> list[Checkpoint]:
    """The checkpoints that match names and patterns, by folder and updates, without copies (``checkpoint_last.pt``).

    Raises InputError for a pattern without a match, and as ``check_masked_lm``.
    """
    checkpoints: list[Checkpoint] = []
    for path in matching(patterns, "checkpoint", "files of fairseq-train"):
        if path.is_dir():
            remedy = import_first(path) or f"give the checkpoints in it, such as '{path}/checkpoint*.pt'"
            raise InputError(f"{path}: is a folder; {remedy}")
        checkpoint = check_masked_lm(path, dictionary)
        if not any(
            checkpoint.updates == other.updates and filecmp.cmp(path, other.path, False) for other in checkpoints
        ):
            checkpoints.append(checkpoint)
    folders = list(dict.fromkeys(checkpoint.path.parent for checkpoint in checkpoints))
    return sorted(checkpoints, key=lambda checkpoint: (folders.index(checkpoint.path.parent), checkpoint.updates or 0))


def matching(patterns: Sequence[str], kind: str, known_as: str) -> list[Path]:
    """The different paths that match names and patterns; raises InputError for a pattern without a match."""
    paths: dict[Path, Path] = {}
    for pattern in patterns:
        folder = Path(pattern)  # the deepest one of the pattern that exists, whose name may look like a pattern
        while not folder.exists():
            folder = folder.parent
        rest = Path(pattern).relative_to(folder)
        matches = sorted(map(Path, glob.glob(str(Path(glob.escape(str(folder)), rest)), recursive=True)))
        if not matches:
            raise InputError(f"{pattern}: no such {kind}; give {known_as} or a quoted pattern")
        for path in matches:
            paths.setdefault(path.resolve(), path)
    return list(paths.values())


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
    _load_parameters(model, state["model"], checkpoint.path, model_cfg=cfg.model)
    model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    return Loaded(model, task, cfg.dataset, cfg.criterion)


def load_reader(task: Any, flag: str, path: str | Path) -> Any:
    """The model of a checkpoint that reads the masked text of a task, in evaluation mode; ``flag`` names it in errors.

    Raises InputError for another file, another dictionary, and a model with fewer positions than the texts have.
    """
    with naming(flag):
        checkpoint = check_masked_lm(Path(path), task.source_dictionary)
        model = load(checkpoint, Path(utils.split_paths(task.cfg.data)[0])).model
    if getattr(task.cfg, "document_attention", False) and not isinstance(model, EncoderModel):
        raise InputError(
            f"{flag} {path}: a RoBERTa attends across documents, but the model does not with --document-attention; "
            "give one of our electra_* and bert_* models"
        )
    longest, limit = task.max_positions(), model.max_positions()
    if isinstance(longest, int) and longest > limit:
        raise InputError(
            f"{flag} {path}: has {limit} positions, but --tokens-per-sample is {longest}; shorten the text, or "
            "give another model"
        )
    return model


def load_ours(path: str | Path) -> tuple[dict[str, Any], type[EncoderModel]]:
    """A checkpoint of our BERT or ELECTRA, and its class; raises InputError for another kind of model."""
    state = load_checkpoint(path)
    arch = registered_name(state["cfg"]["model"], "arch")
    model = ARCH_MODEL_REGISTRY.get(arch, object)
    if not issubclass(model, EncoderModel):
        raise InputError(f"{path}: holds {arch}; give an electra_* or bert_* model")
    return state, model


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
    return Checkpoint(path, updates_of(state))


def check_attention_heads(path: str | Path, model: EncoderModel) -> None:
    """Raises InputError if a checkpoint's model has other numbers of attention heads, which its tensors do not show."""
    try:
        theirs = load_checkpoint(path)["cfg"]["model"]
    except InputError:
        return  # whoever loads it says what is wrong
    for name in (f"{owner}_attention_heads" for owner in model.owners):
        heads = theirs.get(name) if isinstance(theirs, Mapping) else None
        if heads not in (None, getattr(model.cfg, name)):
            raise InputError(f"{path}: has other sizes; give --{name.replace('_', '-')} {heads}")


def load_generator(model: ElectraModel, path: str | Path, dictionary: Dictionary) -> None:
    """Copy the weights of ELECTRA's generator, or of BERT, from a checkpoint to the generator and its embeddings.

    If the checkpoint has more positions than the model, the first ones are copied. Raises InputError for a checkpoint
    of another kind of model, without a masked-LM head, with another dictionary, or with sizes that do not fit.
    """
    state, model_class = load_ours(path)
    check_dictionary(path, state, dictionary)
    theirs, cfg = state["cfg"]["model"], model.cfg
    owner, head = "encoder", "masked_lm_head"
    if issubclass(model_class, ElectraModel):
        owner, head = "generator", "generator_head"
    embeddings = "generator_embeddings" if theirs.get("freeze_generator") else "embeddings"
    weights: dict[str, dict[str, Tensor]] = {embeddings: {}, owner: {}, head: {}}
    for name, tensor in state["model"].items():
        part, _, parameter = name.partition(".")
        if part in weights:
            weights[part][parameter] = tensor
    for part, parameters in weights.items():
        if not parameters:
            raise InputError(f"{path}: has no {part}; give a checkpoint of pre-training")

    positions, words = (weights[embeddings][f"{kind}_embeddings.weight"] for kind in ("position", "word"))
    own = {f"generator_{size}": getattr(cfg, f"generator_{size}") for size in SIZES}
    wanted = {f"generator_{size}": theirs[f"{owner}_{size}"] for size in SIZES}
    embedding_size = "generator_embedding_size" if cfg.freeze_generator else "embedding_size"
    own |= {embedding_size: cfg.generator_embedding_size or cfg.embedding_size, "max_positions": cfg.max_positions}
    wanted |= {embedding_size: words.size(1), "max_positions": min(len(positions), cfg.max_positions)}
    fitting = [f"--{name.replace('_', '-')} {size}" for name, size in wanted.items() if size != own[name]]
    if fitting:
        raise InputError(f"{path}: its generator has other sizes; give {' '.join(fitting)}")

    weights[embeddings]["position_embeddings.weight"] = positions[: cfg.max_positions]
    modules = model.embeddings_of(model.generator), model.generator, model.generator_head
    for module, parameters in zip(modules, weights.values(), strict=True):
        _load_parameters(module, parameters, path)


def _load_parameters(module: nn.Module, parameters: dict[str, Any], path: str | Path, **options: Any) -> None:
    try:
        module.load_state_dict(parameters, **options)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(
            f"{path}: its parameters do not match its configuration ({reason}); give an "
            "unmodified checkpoint of fairseq-train"
        ) from None
