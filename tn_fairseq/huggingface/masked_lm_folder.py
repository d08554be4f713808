"""Masked language models of ``transformers`` as fairseq's tools call them, with the ids of a data-bin."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq import tasks
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from omegaconf import OmegaConf
from torch import Tensor, nn

from ..core.configuration import as_argument, training_config
from ..core.errors import InputError
from ..models.loading import Checkpoint, Loaded, matching
from .masked_logits import has_token_types, masked_logits, max_positions
from .model_loading import load_model
from .vocabulary_files import check_tokenizer, read_data_bin

TOKENS_PER_SAMPLE = 128  # as in data for an imported model
UNLIMITED = 1 << 20  # tokens


class MaskedLM(BaseFairseqModel):
    """A ``ForMaskedLM`` model of ``transformers`` that reads and predicts symbols of a dictionary.

    ``token_ids``, (V), are the model's ids of the symbols, -1 for a symbol that it lacks, which it never predicts.
    """

    def __init__(self, core: Any, token_ids: Tensor, unknown: int, padding: int):
        super().__init__()
        self.core, self.padding = core, padding
        self.register_buffer("token_ids", token_ids)
        self.register_buffer("input_ids", token_ids.where(token_ids >= 0, token_ids[unknown]))

    def forward(
        self, src_tokens: Tensor, masked_tokens: Tensor, token_types: Tensor | None = None, **others: Any
    ) -> tuple[Tensor, None]:
        """The logits of the masked tokens: (B, T) -> (N, V)."""
        inputs = {"input_ids": self.input_ids[src_tokens], "attention_mask": src_tokens.ne(self.padding).long()}
        if token_types is not None and has_token_types(self.core):
            inputs["token_type_ids"] = token_types
        logits = masked_logits(self.core, masked_tokens, **inputs)
        return logits[:, self.input_ids].masked_fill(self.token_ids < 0, -torch.inf), None

    def get_input_embeddings(self) -> nn.Embedding:
        """A copy of the word embeddings in the order of the dictionary, (V, E)."""
        return nn.Embedding.from_pretrained(self.core.get_input_embeddings().weight.detach()[self.input_ids])

    def max_positions(self) -> int:
        return max_positions(self.core) or UNLIMITED


def find_folders(patterns: Sequence[str], dictionary: Dictionary, data_bin: Path) -> list[Checkpoint]:
    """The folders that match names and patterns, by the Trainer's number of updates.

    Raises InputError for a pattern without a match, a folder that is not that of a masked language model, and one with
    another tokenizer than the data-bin's.
    """
    if not patterns:
        return []  # without importing transformers, which takes a second
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    checkpoints = []
    for path in matching(patterns, "model", "folders of save_pretrained"):
        try:
            config = json.loads((path / "config.json").read_text(encoding="utf-8"))
            (architecture,) = config["architectures"]
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{path}: not a folder of save_pretrained, because it has no valid config.json") from None
        if architecture not in MODEL_FOR_MASKED_LM_MAPPING_NAMES.values():
            raise InputError(f"{path}: holds {architecture}; give a masked language model, such as BertForMaskedLM")
        check_tokenizer(path, dictionary, read_data_bin(data_bin)[1], data_bin)
        checkpoints.append(Checkpoint(path, _updates(path / "trainer_state.json")))
    return sorted(checkpoints, key=lambda model: model.updates or 0)


def _updates(state: Path) -> int | None:
    if not state.exists():
        return None
    try:
        return int(json.loads(state.read_text(encoding="utf-8"))["global_step"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{state}: has no valid global_step; remove the file, or save the model again") from None


def load_folder(folder: Path, data_bin: Path) -> Loaded:
    """Load the model, on a GPU if there is one; raises InputError if it is damaged or has no masked-LM head."""
    dictionary, tokenizer = read_data_bin(data_bin)
    core = load_model(folder, "AutoModelForMaskedLM")
    token_ids = torch.from_numpy(tokenizer.token_ids(dictionary))
    token_ids[token_ids >= core.get_input_embeddings().num_embeddings] = -1
    model = MaskedLM(core, token_ids, dictionary.unk(), dictionary.pad())
    model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    length = min(TOKENS_PER_SAMPLE, model.max_positions())
    # of the task; the arch is not used
    flags = ["--task", "electra", "--arch", "bert_base", "--tokens-per-sample", length]
    cfg = training_config([as_argument(data_bin), *flags])
    return Loaded(model, tasks.setup_task(cfg.task), cfg.dataset, OmegaConf.create())
