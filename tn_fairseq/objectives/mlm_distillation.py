"""Distillation, ``--criterion mlm_distillation``: a teacher says how well each word fits (Hinton et al. 2015)."""

import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal, Optional

import torch
from torch import Tensor, nn

from ..core.errors import InputError
from ..core.masked_prediction import Batch, MaskedPredictions
from ..core.options import option
from ..modules.cross_entropy import log_probabilities
from . import functional
from .base import BITS, PERCENT, Metric, Objective, ObjectiveConfig

logger = logging.getLogger(__name__)

EMA = "ema"
FIRST = 10  # batches, after which the losses of teacher and student are compared


@dataclass
class DistillationConfig(ObjectiveConfig):
    distillation_teacher: Optional[str] = option(
        "a checkpoint with the same dictionary, or ema (the moving average of --store-ema)", default=None
    )
    distillation_draws: Optional[str] = option(
        "a folder of tn-fairseq data teach, instead of a teacher", default=None, not_with="distillation_teacher"
    )
    distillation_weight: float = option(
        "share of the teacher in the target, from 0 (plain masked LM) to 1", default=1.0, at_least=0, at_most=1
    )
    distillation_temperature: float = option(
        "divides the teacher's logits", default=1.0, above=0, needs="distillation_teacher"
    )
    distillation_words: Literal["all", "synonyms", "others"] = option(
        "which words may get probability besides the gold word: by --synonym-table, or all",
        default="all",
        needs="distillation_teacher",
    )
    distillation_control: Literal["none", "shuffled", "unigram"] = option(
        "for experiments: give the wrong words' probabilities to other wrong words, or smooth the labels "
        "with word frequencies and the same entropy",
        default="none",
        needs="distillation_teacher",
    )


class Distillation(Objective):
    """Masked LM toward the distribution of a teacher, which reads the same masked text, or has read it.

    A wrong word is punished as much as the teacher finds it implausible in its context. Hard correction uses a
    thesaurus instead, and drops the loss.
    """

    name = "mlm_distillation"
    config = DistillationConfig
    description = "masked language modeling toward the distribution of a teacher"
    metrics = (
        Metric("teacher_gold_probability", "teacher_gold", "masked", PERCENT),
        Metric("teacher_prediction_probability", "teacher_prediction", "masked", PERCENT),
    )

    def __init__(
        self,
        cfg: Any,
        *table: Any,
        load_teacher: Optional[Callable[[str], Optional[nn.Module]]] = None,
        count_tokens: Optional[Callable[[], Tensor]] = None,
        **options: Any,
    ) -> None:
        super().__init__(cfg, *table, **options)
        self.is_plain = cfg.distillation_weight == 0
        self.computes_nll = not self.is_plain
        self.teacher: list[Optional[nn.Module]] = [None]
        self.first: list[Tensor] = []  # summed losses of the model and the teacher, and the number of positions
        if self.is_plain:
            return
        if cfg.distillation_teacher is None:
            return
        if load_teacher is not None:
            # in a list, so that it is not a part of the objective, which fairseq would train and save
            self.teacher = [load_teacher(cfg.distillation_teacher)]
        if cfg.distillation_teacher == EMA and cfg.distillation_weight == 1:
            raise InputError(
                f"{self.say('distillation_teacher')} ema needs a {self.say('distillation_weight')} below 1, such as "
                "0.5; it begins as the model itself, which would learn nothing"
            )
        if cfg.distillation_control == "unigram":
            if count_tokens is None:
                raise InputError(
                    f"{self.say('distillation_control')} unigram works only with fairseq, which has the training text"
                )
            counts = count_tokens()
            self.frequencies = counts / counts.sum()  # no buffer, which fairseq would round in half precision

    @classmethod
    def needs_table(cls, cfg: Any) -> bool:
        return cfg.distillation_words != "all"

    def masked_lm_losses(
        self, batch: Batch, masked: MaskedPredictions, nll: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        if self.is_plain:
            return nll, {}
        teacher: Any = self.teacher[0]
        draws = batch["draws"]
        if teacher is not None and draws is not None:
            raise InputError("a batch has draws, but there is also a teacher; omit --distillation-teacher")
        if teacher is None:
            teacher = batch["ema_model"]
        own, targets = masked.logits, masked.targets
        if teacher is None and draws is None:
            if not torch.is_grad_enabled():  # in validation, which has no draws, and no moving average
                nll = functional.masked_lm(own, targets)
                return nll, {"nll": nll.sum()}
            if self.cfg.distillation_teacher == EMA:
                raise InputError("--distillation-teacher ema needs --store-ema and --task electra")
            raise InputError(
                f"--criterion {self.name} needs --distillation-teacher CHECKPOINT, of a better model, or "
                "--distillation-draws FOLDER, from tn-fairseq data teach, with --task electra"
            )
        both = torch.stack([targets, masked.predictions], dim=1)
        if draws is not None:
            words, counts = draws
            shares = counts / counts.sum(dim=1, keepdim=True)
            weight: Any = self.cfg.distillation_weight
            losses, log_sums = functional.distillation_from_draws(own, targets, words, shares, weight)
            likely = (words.unsqueeze(2).eq(both.unsqueeze(1)) * shares.unsqueeze(2)).sum(dim=1)
        else:
            temperature, logits = self.cfg.distillation_temperature, self.read(teacher, batch, masked)
            target, weight = self.target(batch, masked, logits)
            losses, log_sums, target_sums = functional.distillation(own, targets, target, weight, temperature)
            if target is logits and temperature == 1:
                lprobs = logits.gather(1, both).float() - target_sums.unsqueeze(1)
            else:
                lprobs = log_probabilities(logits, both)
            likely = lprobs.exp()
        nll = log_sums - own.detach().gather(1, targets.unsqueeze(1)).squeeze(1).float()
        if self.teacher[0] is not None and torch.is_grad_enabled() and len(self.first) < FIRST:
            self.first.append(torch.stack([nll.sum(), -lprobs[:, 0].sum(), nll.new_tensor(len(nll))]))
            if len(self.first) == FIRST:
                self.compare(*torch.stack(self.first).sum(dim=0).tolist())
        gold, prediction = likely.sum(dim=0)
        return losses, {"nll": nll.sum(), "teacher_gold": gold, "teacher_prediction": prediction}

    def compare(self, nll: float, teacher_nll: float, count: float) -> None:
        """Warn of a teacher that is not better than the student, by their summed losses at ``count`` positions."""
        if count and teacher_nll >= nll:
            own, theirs = (f"{BITS * loss / count:.2f} bits" for loss in (nll, teacher_nll))
            logger.warning(
                f"the teacher's loss on the first {FIRST} batches is {theirs}, not below the model's, {own}; only a "
                "better teacher helps, so check its vocabulary, its weights, and how its text was masked"
            )

    @torch.no_grad()
    def read(self, teacher: nn.Module, batch: Batch, masked: MaskedPredictions) -> Tensor:
        """The teacher's logits at the masked positions, in the precision of the student's: (N, V)."""
        device, dtype = masked.logits.device, masked.logits.dtype
        half = dtype in (torch.float16, torch.bfloat16)
        teacher = self.ready(teacher, device)
        with torch.autocast(device.type, dtype) if half else nullcontext():
            logits = teacher(
                **{
                    **batch["net_input"],
                    "masked_tokens": masked.masked_tokens,
                    "masked_indices": batch["masked_indices"],
                }
            )[0]
        if logits.shape != masked.logits.shape:
            raise InputError(
                f"--distillation-teacher: scores {logits.size(-1):,} symbols, but the model "
                f"{masked.logits.size(-1):,}; give a teacher with the same vocabulary"
            )
        return logits

    def ready(self, teacher: nn.Module, device: torch.device) -> nn.Module:
        """The teacher on the device, in evaluation mode."""
        if next(teacher.parameters()).device != device:
            teacher.to(device)
        return teacher.eval() if teacher.training else teacher

    @torch.no_grad()
    def target(self, batch: Batch, masked: MaskedPredictions, logits: Tensor) -> tuple[Tensor, float | Tensor]:
        """The logits whose softmax is mixed into the target, (N, V), and its weight, a number or (N)."""
        weight: float = self.cfg.distillation_weight
        if self.cfg.distillation_words != "all":
            restrict = (
                functional.only_synonyms if self.cfg.distillation_words == "synonyms" else functional.without_synonyms
            )
            logits = restrict(logits, masked.targets, masked.synonyms)
        if self.cfg.distillation_control == "shuffled":
            draws = batch["uniform_draws"]  # which depend only on the seed, the epoch and the position
            if draws is None:
                draws = torch.rand(len(logits), device=logits.device)
            shift = (draws * logits.size(1)).long()
            order = torch.randperm(logits.size(1), generator=torch.Generator().manual_seed(1)).to(logits.device)
            return functional.shuffle_wrong_words(logits, masked.targets, order, shift), weight
        if self.cfg.distillation_control == "unigram":
            entropy = functional.target_entropy(logits, masked.targets, weight, self.cfg.distillation_temperature)
            self.frequencies = self.frequencies.to(logits.device)
            smoothing = functional.smoothing_with_entropy(entropy, self.frequencies, masked.targets)
            # divided by the temperature, these are the logarithms of the frequencies
            scaled = self.frequencies.log() * self.cfg.distillation_temperature
            return scaled.expand(len(masked.targets), -1), smoothing
        return logits, weight
