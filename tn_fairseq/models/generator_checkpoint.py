"""ELECTRA with an existing generator: ``--generator-checkpoint``."""

from pathlib import Path

from fairseq.data import Dictionary

from ..checkpoints import check_dictionary
from ..errors import InputError
from .base import SIZES
from .electra import ElectraModel
from .loading import load_ours

_POSITIONS = "position_embeddings.weight"


def load_generator(model: ElectraModel, path: str | Path, dictionary: Dictionary) -> None:
    """Copy the weights of ELECTRA's generator, or of BERT, from a checkpoint to the generator and its embeddings.

    If the checkpoint has more positions than the model, the first ones are copied. Raises InputError for a checkpoint
    of another kind of model, without a masked-LM head, with another dictionary, or with sizes that do not fit.
    """
    path = Path(path)
    state, model_class = load_ours(path)
    theirs, is_electra = state["cfg"]["model"], issubclass(model_class, ElectraModel)
    parts = ["embeddings", *(("generator", "generator_head") if is_electra else ("encoder", "masked_lm_head"))]
    if is_electra and theirs.get("freeze_generator"):
        parts[0] = "generator_embeddings"
    found = []
    for part in parts:
        prefix = f"{part}."
        found.append({k.removeprefix(prefix): v for k, v in state["model"].items() if k.startswith(prefix)})
        if not found[-1]:
            raise InputError(f"{path}: has no {part}; give a checkpoint of pre-training")
    check_dictionary(path, state, dictionary)

    embeddings, cfg = found[0], model.cfg
    wanted = {f"generator_{size}": theirs[f"{parts[1]}_{size}"] for size in SIZES}
    own = {name: getattr(cfg, name) for name in wanted}
    embedding_size = "generator_embedding_size" if cfg.freeze_generator else "embedding_size"
    wanted[embedding_size] = embeddings["word_embeddings.weight"].size(1)
    own[embedding_size] = cfg.generator_embedding_size or cfg.embedding_size
    wanted["max_positions"] = min(embeddings[_POSITIONS].size(0), cfg.max_positions)
    own["max_positions"] = cfg.max_positions
    fitting = [f"--{name.replace('_', '-')} {size}" for name, size in wanted.items() if size != own[name]]
    if fitting:
        raise InputError(f"{path}: its generator has other sizes; give {' '.join(fitting)}")

    embeddings[_POSITIONS] = embeddings[_POSITIONS][: cfg.max_positions]
    modules = model.embeddings_of(model.generator), model.generator, model.generator_head
    try:
        for module, parameters in zip(modules, found, strict=True):
            module.load_state_dict(parameters)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(f"{path}: its parameters do not match its configuration ({reason})") from None
