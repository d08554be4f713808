"""Merged synonyms, ``--criterion mlm_merged_synonyms``: a word and its synonyms are one word, for comparison.

It needs a table of groups, such as that of exact synonyms that examples/study/twins.py writes. With merged targets,
there are no false negatives; with merged inputs as well, the model trains as if the text had no synonyms. Both are
upper bounds on what an objective can gain.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..core.errors import InputError
from ..core.options import option
from .base import Objective, ObjectiveConfig, SampleSize


@dataclass
class MergedSynonymsConfig(ObjectiveConfig):
    merged: Literal["both", "inputs", "targets"] = option(
        "where each word becomes the first symbol of its group of synonyms", default="both"
    )


class MergedSynonyms(Objective):
    """Masked LM on a text in which each word is replaced by the first symbol of its group of synonyms."""

    name = "mlm_merged_synonyms"
    config = MergedSynonymsConfig
    description = "masked language modeling with merged synonyms"
    needs_synonym_table = True
    changes = ("masked_lm", "detection")
    first: Tensor

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.register_buffer("first", first_of_group(self.synonyms), persistent=False)

    def forward(self, model: nn.Module, sample: Mapping[str, Any]) -> tuple[Tensor, SampleSize, dict[str, Any]]:
        if self.cfg.merged != "inputs":
            sample = {**sample, "target": self.first[sample["target"]]}
        if self.cfg.merged != "targets":
            net_input = sample["net_input"]
            sample = {**sample, "net_input": {**net_input, "src_tokens": self.first[net_input["src_tokens"]]}}
        return super().forward(model, sample)


def first_of_group(synonyms: Tensor) -> Tensor:
    """The smallest id of each symbol and its synonyms: (V, S), right-padded with negative numbers -> (V) int64.

    Raises InputError if the table is not one of groups, in which all words are synonyms of each other.
    """
    own = torch.arange(len(synonyms)).unsqueeze(1)
    group = torch.cat([own, torch.where(synonyms < 0, own, synonyms)], dim=1)
    first = group.min(dim=1).values
    if not first[group].eq(first.unsqueeze(1)).all():
        raise InputError(
            "--criterion mlm_merged_synonyms needs a table of groups, such as that of examples/study/twins.py"
        )
    return first
