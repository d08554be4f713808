"""The base class of the objectives: which positions count, what divides the losses, and what is logged."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, Optional, Union, cast

import torch
from torch import Tensor, nn

from ..core import corruption
from ..core.errors import InputError
from ..core.masked_prediction import Batch, ElectraOutput, MaskedPredictions, masked_predictions
from ..core.options import check, flag, option
from . import functional

ELECTRA = "ELECTRA"  # the group of the options that need its discriminator


@dataclass
class ObjectiveConfig:
    """Options of every objective. A choice is a ``Literal``, and the help of each option is in its metadata."""

    prediction_mode: Literal["argmax", "sample"] = option(
        "r_k: the most likely token, or a sample (on ELECTRA, the token that the generator sampled)", default="argmax"
    )
    generator_temperature: float = option("softmax temperature for sampling", default=1.0, above=0)
    generator_loss_weight: float = option(
        "ELECTRA: weight of the generator's loss", default=1.0, at_least=0, group=ELECTRA
    )
    discriminator_loss_weight: float = option(
        "ELECTRA: weight of replaced token detection", default=50.0, at_least=0, group=ELECTRA
    )


BITS, PERCENT = 1 / math.log(2), 100.0


class Metric(NamedTuple):
    """A displayed metric: ``factor`` times the sum of one logged key, divided by the sum of another.

    ``higher_is_better`` is None if neither is.
    """

    name: str
    numerator: str
    denominator: str
    factor: float = 1.0
    higher_is_better: Optional[bool] = None

    def of(self, sums: Mapping[str, float]) -> float:
        """The value, rounded to three decimals; 0 if it would be divided by 0."""
        divisor = float(sums[self.denominator])
        return round(self.factor * float(sums[self.numerator]) / divisor, 3) if divisor else 0.0


_METRICS = (
    Metric("loss", "loss", "sample_size", BITS, False),
    Metric("nll_loss", "nll", "masked", BITS, False),
    Metric("mlm_accuracy", "correct", "masked", PERCENT, True),
    Metric("false_negative_rate", "false_negatives", "mismatched", PERCENT),
    Metric("false_negative_sequences", "false_negative_sequences", "nsentences", PERCENT),
)
_DETECTION_METRICS = (
    Metric("rtd_loss", "rtd_loss", "rtd_tokens", BITS, False),
    Metric("rtd_accuracy", "rtd_correct", "rtd_tokens", PERCENT, True),
    Metric("rtd_precision", "rtd_hits", "rtd_said", PERCENT, True),
    Metric("rtd_recall", "rtd_hits", "rtd_replaced", PERCENT, True),
    Metric("replaced_rate", "rtd_replaced", "rtd_tokens", PERCENT),
)


def add_up(logs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums of what batches logged, and the number of wrong predictions, ``mismatched``."""
    first, *others = logs or [{}]
    # not 0 + the first, which would be an operation of a GPU
    sums: dict[str, Any] = {key: sum((log.get(key, 0) for log in others), value) for key, value in first.items()}
    if sums:
        sums["mismatched"] = sums["masked"] - sums["correct"]
    return sums


# a tensor if it depends on the predictions
SampleSize = Union[int, Tensor]


def divisor(sample_size: SampleSize) -> SampleSize:
    """The sample size, or 1 instead of 0."""
    return torch.where(sample_size > 0, sample_size, 1) if isinstance(sample_size, Tensor) else sample_size or 1


class Objective(nn.Module):
    """Masked LM, plus replaced token detection on ELECTRA; each objective is a subclass in its own file.

    Works with fairseq and ``transformers``. The model is called as ``model(**net_input, masked_tokens=(B, T) boolean,
    masked_indices=..., target_tokens=..., uniform_draws=..., temperature=...)`` and returns the logits at the masked
    positions first, or an ``ElectraOutput``; with ``features_only=True``, it returns its last hidden states first. A
    subclass declares its name, its options and its metrics, and overrides one of the methods below.
    """

    name: str  # the same as that of its file
    description: str  # for model cards
    config: type[ObjectiveConfig] = ObjectiveConfig
    synonyms: Any
    continues_word: Any
    metrics: tuple[Metric, ...] = ()  # in addition to those of all objectives
    needs_synonym_table = False
    needs_discriminator = False  # only ELECTRA has one
    sums_all_positions = False  # whether losses are added up with zeros between them, as transformers does
    computes_nll = False  # whether masked_lm_losses gets None, and logs the sum of the plain losses as "nll"
    # whether "masked_lm" or "detection" learns something else than with plain masked LM; both, if there are both
    changes: tuple[str, ...] = ("masked_lm",)

    def __init__(
        self,
        cfg: Any,
        padding: int,
        synonyms: Optional[Tensor] = None,
        continues_word: Optional[Tensor] = None,
        load_judge: Optional[Callable[[str], nn.Module]] = None,
        load_teacher: Optional[Callable[[str], Optional[nn.Module]]] = None,
        count_tokens: Optional[Callable[[], Tensor]] = None,
        say: Callable[[str], str] = flag,
    ) -> None:
        """``cfg`` has the options of ``config``, and ``padding`` is the id that pads texts and targets.

        The table is ``synonyms``, (V, S), with ``continues_word``, (V) boolean, as ``synonym_table`` describes them.
        ``load_judge`` and ``load_teacher`` open another model by its name, and ``count_tokens`` counts each symbol of
        the training text, (V). ``say`` spells the name of an option in errors. Raises InputError if ``check`` does.
        """
        super().__init__()
        self.cfg, self.padding, self.say = cfg, padding, say
        check(cfg, self.config, say)
        self._of_electra = [
            entry.name
            for entry in fields(self.config)
            if entry.metadata.get("group") == ELECTRA and not self._is_default(entry.name)
        ]
        # they move to the objective's device, and are not saved in checkpoints
        self.register_buffer("synonyms", synonyms, persistent=False)
        self.register_buffer("continues_word", continues_word, persistent=False)

    def _is_default(self, name: str) -> bool:
        return bool(getattr(self.cfg, name) == self.config.__dataclass_fields__[name].default)

    @classmethod
    def needs_table(cls, cfg: Any) -> bool:
        """Whether these options need a synonym table; without one, an objective only does not count synonyms."""
        return cls.needs_synonym_table

    @classmethod
    def displayed(cls) -> tuple[Metric, ...]:
        """All metrics; those of which the sums are not logged do not apply to the model or to the options."""
        return (*_METRICS, *cls.metrics, *_DETECTION_METRICS)

    # Methods that an objective overrides

    def find_false_negatives(self, batch: Batch, output: Any, masked: MaskedPredictions) -> Tensor:
        """Which predictions count as false negatives: (N) boolean. Called only with a synonym table."""
        return masked.are_synonyms(masked.predictions)

    def masked_lm_losses(
        self, batch: Batch, masked: MaskedPredictions, nll: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of each masked position, (N), and what to log; ``nll``, (N), is that of plain masked LM."""
        return nll, {}

    def masked_lm_weights(self, masked: MaskedPredictions) -> tuple[Optional[Tensor], SampleSize]:
        """The weight of each masked position (N), None if all are equal, and the sample size that divides the loss."""
        return None, len(masked.targets)

    def regularization(
        self, model: nn.Module, batch: Batch, masked: MaskedPredictions
    ) -> tuple[Optional[Tensor], dict[str, Tensor]]:
        """A term for the masked-LM loss, summed over the masked positions, and what to log."""
        return None, {}

    def detection_targets(
        self, output: ElectraOutput, masked: MaskedPredictions, is_token: Tensor
    ) -> tuple[Tensor, Tensor]:
        """With which probability the discriminator should call a token replaced, and which tokens count: (B, T) each.

        Both are boolean, or the probabilities are float32.
        """
        return output.is_replaced, is_token

    def detection_losses(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The discriminator's loss for each token, (B, T), from its logits and the targets above."""
        return functional.replaced_token_detection(logits, targets)

    # The training step

    def forward(self, model: nn.Module, sample: Mapping[str, Any]) -> tuple[Tensor, SampleSize, dict[str, Any]]:
        """The summed loss of a batch, the sample size that divides it, and what to log; see ``batch``."""
        batch = self.batch(sample)
        output, masked = self.run(model, batch)
        nll: Any = None if self.computes_nll else functional.masked_lm(masked.logits, masked.targets)
        losses, logs = self.masked_lm_losses(batch, masked, nll)
        if nll is not None:
            logs = {"nll": nll.detach().sum(), **logs}
        weights, sample_size = self.masked_lm_weights(masked)
        losses = losses if weights is None else weights * losses
        loss = functional.total(losses, masked.masked_tokens if self.sums_all_positions else None)
        regularization, more_logs = self.regularization(model, batch, masked)
        logs = {**logs, **more_logs}
        if regularization is not None:
            loss = loss + regularization
        self._check_effect(output, loss)
        masked_count = len(masked.targets)  # a sum of masked_tokens would make fairseq wait for a GPU
        if isinstance(output, ElectraOutput):
            detection, more_logs = self.detect(output, masked, masked.is_token)
            logs = {**logs, **more_logs}
            loss = self.weigh(loss, sample_size, detection, masked_count)
            sample_size = masked_count
        # the same keys in the same order, on every worker and at every step, because fairseq adds up workers by order
        logging_output = {
            "loss": loss.detach(),
            "ntokens": batch["ntokens"],
            "nsentences": batch["nsentences"],
            "sample_size": sample_size,
            "masked": masked_count,
            "correct": masked.predictions.eq(masked.targets).sum(),
            **self.count_false_negatives(masked),
            **logs,
        }
        return loss, sample_size, logging_output

    def batch(self, sample: Mapping[str, Any]) -> Batch:
        """A batch of fairseq's tasks or ours, with all of its keys; the optional ones that it lacks are None.

        A batch in which padding can be a token of the text has ``masked_tokens`` and ``is_token``.
        """
        optional = dict.fromkeys(("masked_indices", "uniform_draws", "draws", "ema_model"))
        masks = {}
        if sample.get("masked_tokens") is None or sample.get("is_token") is None:
            masks["masked_tokens"] = sample["target"].ne(self.padding)
            masks["is_token"] = sample["net_input"]["src_tokens"].ne(self.padding)
        return cast(Batch, {**optional, **sample, **masks})

    def run(self, model: nn.Module, batch: Batch) -> tuple[Any, MaskedPredictions]:
        """The model's output for a batch, and its predictions."""
        masked_indices, uniform_draws = batch["masked_indices"], batch["uniform_draws"]
        output = model(
            **{
                **batch["net_input"],
                "masked_tokens": batch["masked_tokens"],
                "masked_indices": masked_indices,
                "target_tokens": batch["target"],
                "uniform_draws": uniform_draws,
                "temperature": self.cfg.generator_temperature,
            }
        )
        predictions = self.predict(output, uniform_draws)
        texts = batch["net_input"]["src_tokens"], batch["target"], batch["masked_tokens"]
        masked = masked_predictions(*texts, output[0], predictions, self.padding, self.continues_word, masked_indices)
        masked = masked._replace(is_token=batch["is_token"])
        if self.synonyms is not None:
            masked = masked._replace(synonyms=self.synonyms[masked.words])
            masked = masked._replace(false_negative=self.find_false_negatives(batch, output, masked))
        return output, masked

    def check_options(self, has_discriminator: bool) -> None:
        """Raises InputError if the objective or an option needs ELECTRA's discriminator, and the model has none."""
        if has_discriminator:
            return
        if self.needs_discriminator:
            raise InputError(f"--criterion {self.name} needs ELECTRA's discriminator; give --arch electra_base")
        for name in self._of_electra:
            raise InputError(f"{self.say(name)} has an effect on ELECTRA only; omit it")
        if self.cfg.prediction_mode == "argmax" and not self._is_default("generator_temperature"):
            raise InputError(
                f"{self.say('generator_temperature')} has an effect only on ELECTRA or with "
                f"{self.say('prediction_mode')} sample; omit it"
            )

    def _check_effect(self, output: Any, loss: Tensor) -> None:
        """Raises InputError if training would be that of plain masked LM; ``loss`` is the generator's or BERT's."""
        if not torch.is_grad_enabled():  # validation, with the options of the training
            return
        self.check_options(isinstance(output, ElectraOutput))
        if not loss.requires_grad and self.changes == ("masked_lm",):
            raise InputError(
                f"{self.name} changes only what the generator learns, but the generator is frozen; use mlm, or train "
                "the generator"
            )

    def predict(self, output: Any, uniform_draws: Optional[Tensor]) -> Tensor:
        """r_k, the model's prediction at each masked position: (N). Draws use the given random numbers, (N)."""
        if self.cfg.prediction_mode == "argmax":
            return output[0].detach().max(dim=-1).indices  # the same as argmax, but faster in bfloat16
        if isinstance(output, ElectraOutput):
            return output.drawn_tokens
        return corruption.draw_replacements(output[0], self.cfg.generator_temperature, uniform_draws)

    def detect(
        self, output: ElectraOutput, masked: MaskedPredictions, is_token: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The discriminator's mean loss over the tokens that count, a scalar, and what to log."""
        targets, counts = self.detection_targets(output, masked, is_token)
        loss = self.detection_losses(output.discriminator_logits, targets) * counts
        tokens = counts.sum()
        is_replaced = targets > 0.5
        said_replaced = output.discriminator_logits.detach() > 0
        logs = {
            "rtd_loss": loss.detach().sum(),
            "rtd_tokens": tokens,
            "rtd_correct": (said_replaced.eq(is_replaced) & counts).sum(),
            "rtd_hits": (said_replaced & is_replaced & counts).sum(),
            "rtd_said": (said_replaced & counts).sum(),
            "rtd_replaced": (is_replaced & counts).sum(),
        }
        return loss.sum() / tokens.clamp(min=1), logs

    def weigh(self, generator_loss: Tensor, sample_size: SampleSize, detection: Tensor, masked_count: int) -> Tensor:
        """The weighted sum of ELECTRA's two losses, to be divided by the number of masked tokens."""
        # the generator's loss is a mean over its sample size, the discriminator's over the tokens: scale both to
        # the number of masked tokens, so that corrections of the one do not change how much the other learns
        generator_loss = generator_loss * (masked_count / divisor(sample_size))
        return (
            self.cfg.generator_loss_weight * generator_loss
            + self.cfg.discriminator_loss_weight * detection * masked_count
        )

    def drawn_synonyms(self, output: ElectraOutput, masked: MaskedPredictions) -> Tensor:
        """Where the generator drew a synonym of the gold word: (B, T) boolean."""
        return masked.scatter(masked.are_synonyms(output.drawn_tokens))

    def count_false_negatives(self, masked: MaskedPredictions) -> dict[str, Tensor]:
        if masked.false_negative is None:
            return {}
        return {
            "false_negatives": masked.false_negative.sum(),
            "false_negative_sequences": masked.scatter(masked.false_negative).any(dim=1).sum(),
        }
