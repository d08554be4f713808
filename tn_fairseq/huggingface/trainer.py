"""The objectives in a ``Trainer`` of ``transformers``."""

import inspect
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import ElectraForPreTraining, PreTrainedTokenizerBase, Trainer, TrainerCallback
from transformers.trainer_utils import EvalLoopOutput

from ..core import corruption
from ..core.errors import InputError, naming
from ..core.masked_prediction import ElectraOutput
from ..core.options import check
from ..objectives import OBJECTIVES, Objective
from ..objectives.base import add_up, divisor
from ..objectives.mlm_distillation import EMA
from .joint_electra import JointElectra
from .masked_logits import has_token_types, masked_logits, max_positions
from .model_loading import load_model, load_tokenizer, masked_lm, unwrapped
from .synonyms import SynonymTable

IGNORED = -100  # the label of a token that is not masked
DRAWS = ("draw_words", "draw_counts")  # of a teacher that has read the batch


class TrueNegativeTrainer(Trainer):
    """A ``Trainer`` of masked language models with an objective of this package.

    Besides the arguments of ``Trainer``, it takes the name of an objective or a class that extends ``Objective``, its
    options, and a table for the model's tokenizer. Logs, and metrics of evaluations, have the objective's values:
    losses in bits (but ``loss`` in nats, as in every ``Trainer``), and shares in percent. Raises InputError before
    training for anything that does not fit, and for a first batch that is not one of masked language modeling.
    """

    def __init__(
        self,
        *args: Any,
        objective: str | type[Objective] = "mlm",
        objective_kwargs: Mapping[str, Any] | None = None,
        synonyms: SynonymTable | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.processing_class = self._find_tokenizer()
        model = self.accelerator.unwrap_model(self.model, keep_torch_compile=False)
        kind = _find_objective(objective)
        with naming(f"objective {kind.name}:"):
            self.objective = build_objective(
                kind, objective_kwargs or {}, model, self.processing_class, synonyms, self.accelerator.autocast
            )
        self.objective.to(self.args.device)
        self.label_names: list[str] = self.label_names or ["labels"]
        # the Trainer counts the masked tokens of all accumulated batches, by which compute_loss divides
        self.model_accepts_loss_kwargs = self.loss_is_scaled_for_ga = True
        # what the objective logged since the last log, and in the current evaluation
        self._sums: dict[str, dict[str, Any]] = {"train": {}, "eval": {}}
        self._drops_positions = type(self.objective).masked_lm_weights is not Objective.masked_lm_weights
        if self.label_smoother is not None or self.compute_loss_func is not None:
            raise InputError("label_smoothing_factor and compute_loss_func change the loss; omit them")
        if self._drops_positions and self.is_deepspeed_enabled:
            raise InputError(f"objective {kind.name}: does not work with DeepSpeed, which hides the gradients; omit it")
        if self.compute_metrics is not None and isinstance(model, JointElectra):
            raise InputError("compute_metrics needs the logits of all positions, which JointElectra omits; omit it")
        # what the model, a teacher or a judge reads, and what the model does not
        readers = (*getattr(self.objective, "teacher", ()), *(getattr(self.objective, "judge", None) or ()))
        self._read = _inputs(model, *(reader.core for reader in readers if reader is not None))
        self._for_readers = self._read - _inputs(model) - {"attention_mask"}
        # of the batches of an update: masked tokens and sample sizes, (2) each, and losses
        self._sizes: list[Tensor] = []
        self._losses: list[Tensor] = []
        self._checked_labels = False
        self.add_callback(_ForgetsInterruptedUpdate(self))

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """As in every ``Trainer``; raises InputError for weights in half precision, as ``bf16_full_eval`` leaves."""
        for name, parameter in self.model.named_parameters():
            # DeepSpeed keeps the weights in float32 too
            if parameter.requires_grad and parameter.dtype.itemsize < 4 and not self.is_deepspeed_enabled:
                raise InputError(
                    f"{name} is {str(parameter.dtype)[6:]}, in which small updates are lost; load the model with "
                    "dtype=torch.float32, or call model.float(), and for mixed precision give TrainingArguments "
                    "fp16=True or bf16=True, without fp16_full_eval or bf16_full_eval"
                )
        return super().train(*args, **kwargs)

    def _find_tokenizer(self) -> PreTrainedTokenizerBase:
        tokenizer = self.processing_class or getattr(self.data_collator, "tokenizer", None)
        if tokenizer is None:
            raise InputError("no tokenizer; give processing_class=tokenizer, or a data collator that has one")
        if tokenizer.mask_token is None:
            raise InputError("the tokenizer has no mask token; use that of a masked language model, such as BERT")
        if getattr(self.data_collator, "mlm", True) is False:
            raise InputError("the data collator masks nothing; give DataCollatorForLanguageModeling(tokenizer)")
        return tokenizer

    def _set_signature_columns_if_needed(self) -> None:
        """Also keep the columns that a teacher or judge reads, or a model that is wrapped."""
        super()._set_signature_columns_if_needed()
        self._signature_columns += sorted({*self._read, *DRAWS} - {*self._signature_columns})

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """The loss of a batch, divided by the masked tokens of all accumulated batches in training."""
        core = self.accelerator.unwrap_model(model, keep_torch_compile=False)
        encoder = Encoder(core, model, self.accelerator.autocast, self._for_readers)
        loss, sample_size, logs = self.objective(encoder, self._sample(inputs))
        self._add_up("train" if core.training else "eval", logs)
        if core.training:
            if self._drops_positions:
                sizes = (torch.as_tensor(size, device=loss.device) for size in (logs["masked"], sample_size))
                self._sizes.append(torch.stack([*sizes]))
            if self.args.average_tokens_across_devices:
                loss = loss * self.accelerator.num_processes  # because processes average their gradients
            elif self.args.n_gpu > 1:
                loss = loss / self.args.n_gpu  # the Trainer divided the masked tokens by it
            loss = loss / torch.as_tensor(num_items_in_batch).clamp(min=1)  # an update may have no masked token
        else:
            loss = loss / divisor(sample_size)
        outputs = {"loss": loss} if encoder.logits is None else {"loss": loss, "logits": encoder.logits}
        return (loss, outputs) if return_outputs else loss

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        """Also write the two models of a ``JointElectra``, which others can read."""
        super()._save(output_dir, state_dict)
        model = self.accelerator.unwrap_model(self.model, keep_torch_compile=False)
        # with a state, the parameters are divided among processes
        if isinstance(model, JointElectra) and self.args.should_save and state_dict is None:
            folder = Path(output_dir or self.args.output_dir)
            model.save_pretrained(folder)
            for part in ("generator", "discriminator"):
                self.processing_class.save_pretrained(folder / part)

    def training_step(self, model: nn.Module, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Tensor:
        """Divide an update by its sample size instead of its masked tokens, if the objective drops some of them."""
        loss = super().training_step(model, inputs, num_items_in_batch)
        if not self._drops_positions:
            return loss
        self._losses.append(loss)
        if not self.accelerator.sync_gradients:
            return loss
        masked, sample_size = self.accelerator.reduce(torch.stack(self._sizes).sum(dim=0), "sum")
        scale = masked / divisor(sample_size)
        torch._foreach_mul_([parameter.grad for parameter in model.parameters() if parameter.grad is not None], scale)
        loss = loss + (scale - 1) * sum(self._losses)  # the Trainer adds up the losses of the update
        self._sizes, self._losses = [], []
        return loss

    def _sample(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """A batch as objectives read it."""
        if "labels" not in inputs:
            raise InputError(
                "a batch has no labels; give a data collator that masks, such as "
                "DataCollatorForLanguageModeling(tokenizer)"
            )
        labels = inputs["labels"]
        masked_tokens = labels.ne(IGNORED)
        if not self._checked_labels:
            if masked_tokens.all():
                raise InputError(
                    f"no label is {IGNORED}, so every token would be masked; give a data collator that masks, such as "
                    "DataCollatorForLanguageModeling(tokenizer)"
                )
            self._checked_labels = True
        others = {name: value for name, value in inputs.items() if name not in ("input_ids", "labels", *DRAWS)}
        attention = others.get("attention_mask")
        draws = {}
        if "draw_counts" in inputs:
            words, counts = (inputs[name] for name in DRAWS)
            is_drawn = counts.sum(dim=2) > 0
            draws["draws"] = words[is_drawn], counts[is_drawn]
        return {
            **draws,
            "net_input": {"src_tokens": inputs["input_ids"], **others},
            "target": labels.where(masked_tokens, self.objective.padding),
            "masked_tokens": masked_tokens,
            "is_token": torch.ones_like(masked_tokens) if attention is None else attention.bool(),
            "ntokens": labels.numel(),
            "nsentences": len(labels),
        }

    def _add_up(self, split: str, logs: dict[str, Any]) -> None:
        names = list(logs)
        device = self.args.device
        dtype = torch.float32 if device.type == "mps" else torch.float64  # Apple's GPUs have no float64
        values = torch.stack([torch.as_tensor(logs[name], device=device).to(dtype) for name in names])
        before = self._sums[split].get("values")
        self._sums[split] = {"names": names, "values": values if before is None else before + values}

    def _metrics(self, split: str) -> dict[str, float]:
        """The objective's metrics of what was logged since the last call, over all processes."""
        sums, self._sums[split] = self._sums[split], {}
        if not sums:
            return {}
        totals = add_up([dict(zip(sums["names"], self.accelerator.reduce(sums["values"], "sum").tolist()))])
        # the Trainer has a loss of its own
        metrics = [metric for metric in self.objective.displayed() if metric.name != "loss"]
        return {metric.name: metric.of(totals) for metric in metrics if metric.numerator in totals}

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Add the objective's values to what the Trainer logs about training."""
        if "loss" in logs:
            logs.update(self._metrics("train"))
        super().log(logs, *args, **kwargs)

    def evaluation_loop(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> EvalLoopOutput:
        """Add the objective's values to the metrics of an evaluation."""
        self._sums["eval"] = {}  # an earlier evaluation may have been interrupted
        output = super().evaluation_loop(*args, metric_key_prefix=metric_key_prefix, **kwargs)
        output.metrics.update({f"{metric_key_prefix}_{name}": value for name, value in self._metrics("eval").items()})
        return output


def build_objective(
    kind: type[Objective],
    options: Mapping[str, Any],
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    synonyms: SynonymTable | None,
    autocast: Callable[[], AbstractContextManager] = nullcontext,
) -> Objective:
    """An objective for a model of ``transformers``; raises InputError if anything does not fit the model.

    A teacher runs in the context of ``autocast``.
    """
    is_electra = isinstance(model, JointElectra)
    if not is_electra:
        model = masked_lm(model)
    if kind.needs_discriminator and not is_electra:
        raise InputError(f"{type(model).__name__} has no discriminator; give JointElectra")
    _check_size(model, tokenizer, "the model's tokenizer, or call model.resize_token_embeddings(len(tokenizer))")
    cfg = _configure(kind, options)
    tables: tuple[Tensor | None, Tensor | None] = None, None
    if synonyms is not None:
        if not isinstance(synonyms, SynonymTable):
            raise InputError(f"synonyms: must be a SynonymTable, not a {type(synonyms).__name__}")
        synonyms.check_tokenizer(tokenizer)
        padded = synonyms.padded(len(model.get_input_embeddings().weight))  # an adapter has no num_embeddings
        tables = padded.synonyms, padded.continues_word
    elif kind.needs_table(cfg):
        raise InputError("needs synonyms, such as synonyms=SynonymTable.from_wordnet(tokenizer)")
    padding = tokenizer.pad_token_id
    if padding is None:
        raise InputError("the tokenizer has no padding token; set tokenizer.pad_token to one of its special tokens")
    objective = kind(
        cfg,
        padding,
        *tables,
        load_judge=lambda folder: load_judge(folder, tokenizer),
        load_teacher=lambda teacher: load_teacher(teacher, model, tokenizer, autocast),
        say=str,
    )
    objective.check_options(has_discriminator=is_electra)
    objective.sums_all_positions = True
    return objective


def _find_objective(objective: str | type[Objective]) -> type[Objective]:
    if isinstance(objective, type) and issubclass(objective, Objective):
        return objective
    if objective not in OBJECTIVES:
        raise InputError(
            f"there is no objective {objective}; give one of {', '.join(OBJECTIVES)}, or an Objective class"
        )
    return OBJECTIVES[objective]


def _configure(kind: type[Objective], options: Mapping[str, Any]) -> Any:
    names = [entry.name for entry in fields(kind.config)]
    if unknown := [name for name in options if name not in names]:
        raise InputError(f"has no option {unknown[0]!r}; it has {', '.join(names)}")
    cfg = kind.config(**options)
    check(cfg, say=str)
    return cfg


class Encoder(nn.Module):
    """A model of ``transformers``, called as objectives do."""

    core: Any

    def __init__(
        self,
        core: Any,
        wrapped: nn.Module | None = None,
        autocast: Callable[[], AbstractContextManager] = nullcontext,
        others: Collection[str] = (),
    ) -> None:
        """``wrapped`` is the model in what trains it (DistributedDataParallel), which enters ``autocast`` itself.

        The model does not get the inputs ``others``.
        """
        super().__init__()
        self.core = unwrapped(core)
        self.training = core.training
        self._wrapped = [core if wrapped is None else wrapped]  # a list, so that it is not registered as a submodule
        self._autocast, self._others = autocast, others
        self.logits: Tensor | None = None  # of all positions, (B, T, V)
        if isinstance(core, ElectraForPreTraining):
            self.discriminator_head = core.discriminator_predictions

    def forward(
        self,
        src_tokens: Tensor,
        masked_tokens: Any = None,
        masked_indices: Tensor | None = None,
        target_tokens: Tensor | None = None,
        uniform_draws: Tensor | None = None,
        temperature: float = 1.0,
        features_only: bool = False,
        encoder: str = "discriminator",
        **inputs: Tensor,
    ) -> tuple[Tensor, None] | ElectraOutput:
        """The logits at the masked positions, or with ``features_only`` the last hidden states, (B, T, H)."""
        inputs = {name: value for name, value in inputs.items() if name not in self._others}
        if features_only:
            core = getattr(self.core, encoder) if isinstance(self.core, JointElectra) else self.core
            with self._autocast():
                return core.base_model(input_ids=src_tokens, **inputs)[0], None
        (model,) = self._wrapped
        if isinstance(self.core, JointElectra):
            return model(
                input_ids=src_tokens,
                masked_tokens=masked_tokens,
                target_tokens=target_tokens,
                temperature=temperature,
                **inputs,
            )
        self.logits = model(input_ids=src_tokens, **inputs).logits
        return corruption.take_masked(self.logits, masked_tokens), None

    def get_input_embeddings(self) -> nn.Embedding:
        return self.core.get_input_embeddings()


class _ForgetsInterruptedUpdate(TrainerCallback):
    """Begins without what is left of an update that was interrupted: in a notebook, or by a batch that was too large.

    With ``auto_find_batch_size``, the ``Trainer`` begins again within one call of ``train``.
    """

    def __init__(self, trainer: TrueNegativeTrainer) -> None:
        self.trainer = trainer

    def on_train_begin(self, *args: Any, **options: Any) -> None:
        self.trainer._sizes, self.trainer._losses, self.trainer._sums["train"] = [], [], {}


class Judge(Encoder):
    """A model that accepts or rejects corrections."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self.max_positions = max_positions(core)

    def forward(  # type: ignore[override]
        self, src_tokens: Tensor, *, features_only: bool, encoder: str, **inputs: Any
    ) -> Any:
        """As ``Encoder``; raises InputError for a text that is too long."""
        _check_length("correction_judge", self.max_positions, src_tokens)
        inputs = _known(self.core, inputs)
        return super().forward(src_tokens, features_only=features_only, encoder=encoder, **inputs)


def _inputs(*cores: Any) -> set[str]:
    """The names of what models read."""
    return {name for core in cores for name in inspect.signature(unwrapped(core).forward).parameters}


def _known(core: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that the model reads; without token types, if it has only one type."""
    names = _inputs(core) - set(() if has_token_types(core) else ("token_type_ids",))
    return {name: value for name, value in inputs.items() if name in names}


def _check_size(model: Any, tokenizer: PreTrainedTokenizerBase, remedy: str) -> None:
    """Raises InputError if a model has fewer embeddings than the tokenizer has tokens."""
    size = len(model.get_input_embeddings().weight)
    if 0 < size < len(tokenizer):  # 0 if DeepSpeed has divided the parameters
        has = f"has {size:,} embeddings, but the tokenizer {len(tokenizer):,} tokens"
        raise InputError(f"{type(model).__name__} {has}; give {remedy}")


def check_vocabulary(name: str | Path, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raises InputError if the model in a folder, or of a name, has another vocabulary."""
    if load_tokenizer(name).get_vocab() != tokenizer.get_vocab():
        raise InputError(f"{name}: has another vocabulary than the model; give a model with the same tokenizer")


def _check_length(option: str, limit: int | None, tokens: Tensor) -> None:
    length = tokens.size(1)
    if limit is not None and length > limit:
        raise InputError(
            f"{option}: has {limit} positions, but a text has {length} tokens; truncate the texts, or give another "
            "model"
        )


def load_judge(name: str, tokenizer: PreTrainedTokenizerBase) -> Judge:
    """A judge of corrections: an encoder or ELECTRA's discriminator, with the same vocabulary; raises InputError."""
    with naming("correction_judge"):
        if not isinstance(name, (str, Path)):
            raise InputError(f"{type(name).__name__}: must be the folder or name of a model, not a model")
        check_vocabulary(name, tokenizer)
        judge = load_model(name)
        if "ElectraForPreTraining" in (judge.config.architectures or ()):
            judge = load_model(name, "ElectraForPreTraining")
        return Judge(judge.eval())


class Teacher(nn.Module):
    """A masked language model of ``transformers``, called as objectives do, that scores only the masked positions."""

    def __init__(
        self,
        core: Any,
        tokens: int = 0,
        rows: int = 0,
        autocast: Callable[[], AbstractContextManager] = nullcontext,
    ) -> None:
        """It scores as many ``rows`` as the student; those after the tokenizer's ``tokens`` only pad the vocabulary."""
        super().__init__()
        self.core, self.tokens, self.rows, self._autocast = core, tokens, rows, autocast
        self.max_positions = max_positions(core)

    def forward(self, src_tokens: Tensor, masked_tokens: Tensor, **inputs: Any) -> tuple[Tensor, None]:
        """The logits at the masked positions, (N, V); raises InputError for a text that is too long."""
        _check_length("distillation_teacher", self.max_positions, src_tokens)
        inputs.pop("masked_indices", None)
        if self.core.training:  # in a Trainer of its own
            self.core.eval()
        with self._autocast():
            logits = masked_logits(self.core, masked_tokens, input_ids=src_tokens, **_known(self.core, inputs))
        if self.rows and not self.rows == self.tokens == logits.size(1):  # 0 if DeepSpeed has divided the parameters
            logits = F.pad(logits[:, : self.tokens], (0, self.rows - self.tokens), value=-torch.inf)
        return logits, None


def open_teacher(teacher: Any, tokenizer: PreTrainedTokenizerBase) -> tuple[Any, int]:
    """A masked language model, or that of a folder or name, and its rows that are tokens; raises InputError."""
    if isinstance(teacher, (str, Path)):
        check_vocabulary(teacher, tokenizer)
        teacher = load_model(teacher, "AutoModelForMaskedLM")
    core = masked_lm(teacher)
    _check_size(core, tokenizer, "a teacher with the same vocabulary")
    return core, max(tokenizer.get_vocab().values()) + 1


def load_teacher(
    teacher: Any,
    student: Any,
    tokenizer: PreTrainedTokenizerBase,
    autocast: Callable[[], AbstractContextManager] = nullcontext,
) -> Teacher:
    """A teacher with the same vocabulary: another model, or its folder or name; raises InputError."""
    with naming("distillation_teacher"):
        if teacher == EMA:
            raise InputError("ema: works only with fairseq; give a model or a folder")
        core, tokens = open_teacher(teacher, tokenizer)
        own = {parameter.untyped_storage().data_ptr() for parameter in student.parameters()} - {0}
        for name, parameter in core.named_parameters():
            if parameter.untyped_storage().data_ptr() in own:
                raise InputError(
                    f"{type(core).__name__}: shares {name} with the model, which trains it; give a model of its own, "
                    "such as copy.deepcopy(teacher)"
                )
        head = getattr(student, "generator", student).get_output_embeddings()
        return Teacher(core, tokens, len(head.weight), autocast)
