"""Fine-tuning on SQuAD, whose answers are spans of a text: ``--task squad``."""

import logging
import os
from argparse import ArgumentParser
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fairseq.data import (
    Dictionary,
    IdDataset,
    NestedDictionaryDataset,
    NumelDataset,
    NumSamplesDataset,
    PrependTokenDataset,
    RawLabelDataset,
    RightPadDataset,
    SortDataset,
    data_utils,
)
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II, MISSING, OmegaConf
from safetensors import SafetensorError
from safetensors.torch import load_file

from ..core.dictionary import load_dictionary
from ..core.errors import InputError, one_line_errors
from ..data.data_bin import load_sentences

logger = logging.getLogger(__name__)

HEAD = "squad"


@dataclass
class SquadTaskConfig(FairseqDataclass):
    data: str = field(default=MISSING, metadata={"help": "folder that tn-fairseq data squad wrote"})
    max_positions: int = field(default=512, metadata={"help": "longest sequence in tokens, <s> and </s> included"})
    seed: int = II("common.seed")


@register_task("squad", dataclass=SquadTaskConfig)
class SquadTask(FairseqTask):
    """Windows of a question and a part of its text; the target is the answer's first and last position, or 0 and 0."""

    cfg: SquadTaskConfig

    def __init__(self, cfg: SquadTaskConfig, dictionary: Dictionary):
        super().__init__(cfg)
        self.dictionary = dictionary

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        super().add_args(parser)
        parser.set_defaults(required_batch_size_multiple=1)  # fairseq's 8 rounds --batch-size down

    @classmethod
    @one_line_errors()
    def setup_task(cls, cfg: SquadTaskConfig, **kwargs: Any) -> "SquadTask":
        """Raises InputError (as a one-line exit) if the folder has no dict.txt."""
        if OmegaConf.is_missing(cfg, "data"):
            raise InputError("task.data is not given; name the folder that tn-fairseq data squad wrote")
        return cls(cfg, load_dictionary(os.path.join(cfg.data, "dict.txt")))

    @one_line_errors()
    def load_dataset(self, split: str, combine: bool = False, **kwargs: Any) -> None:
        """Load one split as batches of windows, shuffled with the seed.

        Raises InputError (as a one-line exit) if the split is missing or its files do not belong together.
        """
        path = os.path.join(self.cfg.data, split)
        rows = load_sentences(path, "squad", self.dictionary)
        try:
            answers = load_file(f"{path}.safetensors")["answer"]
        except (OSError, SafetensorError, KeyError) as error:
            raise InputError(
                f"{path}.safetensors: holds no answers ({error}); run tn-fairseq data squad again"
            ) from None
        if len(answers) != len(rows):
            raise InputError(
                f"{path}.safetensors holds {len(answers):,} answers for {len(rows):,} windows; run "
                f"tn-fairseq data squad again"
            )
        tokens = PrependTokenDataset(rows, self.dictionary.bos())
        longest = int(tokens.sizes.max(initial=0))
        if longest > self.cfg.max_positions:
            raise InputError(
                f"{path}.bin holds windows of {longest} tokens, but --max-positions is {self.cfg.max_positions}; run "
                f"tn-fairseq data squad with --max-length {self.cfg.max_positions}"
            )
        windows = NestedDictionaryDataset(
            {
                "id": IdDataset(),
                "net_input": {
                    "src_tokens": RightPadDataset(tokens, pad_idx=self.dictionary.pad()),
                    "src_lengths": NumelDataset(tokens),
                },
                "target": RawLabelDataset(answers.tolist()),
                "nsentences": NumSamplesDataset(),
                "ntokens": NumelDataset(tokens, reduce=True),
            },
            sizes=[tokens.sizes],
        )
        with data_utils.numpy_seed(self.cfg.seed):
            order = np.random.permutation(len(windows))
        self.datasets[split] = SortDataset(windows, sort_order=[order])
        logger.info(f"{split}: {len(windows):,} windows of at most {longest} tokens from {path}")

    @one_line_errors()
    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """One of our models with a head that finds answers."""
        model = super().build_model(cfg, from_checkpoint)
        if not hasattr(model, "register_answer_head"):
            raise InputError(f"--task squad needs one of our electra_* and bert_* models, not {cfg._name}")
        model.register_answer_head(HEAD)
        return model

    def max_positions(self) -> int:
        return self.cfg.max_positions

    @property
    def source_dictionary(self) -> Dictionary:
        return self.dictionary
