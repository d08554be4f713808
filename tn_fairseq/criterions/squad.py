"""Fine-tuning on SQuAD: ``--criterion squad``, the likelihood of an answer's first and last token."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch.nn.functional as F
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor, nn

from ..tasks.squad import HEAD


@register_criterion("squad", dataclass=FairseqDataclass)
class SquadCriterion(FairseqCriterion):
    """Mean cross-entropy of the answer's start and end over the positions of a window."""

    def forward(
        self, model: nn.Module, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """The summed loss of a batch of windows, the number of windows, and what to log."""
        logits, _ = model(**sample["net_input"], classification_head_name=HEAD)
        padding = sample["net_input"]["src_tokens"].eq(self.task.source_dictionary.pad())
        logits = logits.float().masked_fill(padding.unsqueeze(-1), float("-inf"))
        answers = sample["target"]
        loss = F.cross_entropy(logits, answers, reduction="none").mean(dim=-1).sum()
        windows = len(answers)
        logging_output = {
            "loss": loss.detach(),
            "ntokens": sample["ntokens"],
            "nsentences": windows,
            "sample_size": windows,
            "correct": logits.detach().argmax(dim=1).eq(answers).all(dim=-1).sum(),
        }
        return loss, windows, logging_output

    @staticmethod
    def reduce_metrics(logging_outputs: Sequence[Mapping[str, Any]]) -> None:
        """Log the loss in bits, and the percentage of windows with correct start and end."""
        loss, correct, windows = (
            float(sum(log.get(key, 0) for log in logging_outputs)) for key in ("loss", "correct", "sample_size")
        )
        metrics.log_scalar("loss", loss / windows / math.log(2), windows, round=3)
        metrics.log_scalar("accuracy", 100.0 * correct / windows, windows, round=1)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True
