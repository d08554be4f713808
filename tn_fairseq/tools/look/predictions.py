"""The predictions of a checkpoint for the masked words of a split, with the masking of validation during training."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq import utils
from fairseq.data import FairseqDataset
from fairseq.models import BaseFairseqModel
from torch import Tensor

from ...core import corruption
from ...core.errors import InputError
from ...core.masked_prediction import MaskedPredictions, masked_predictions
from ...models.loading import Loaded
from ...modules.cross_entropy import log_probabilities

BATCH_SIZE = 64  # for imported checkpoints, which have no batch size
LIKELY = 0.1  # a teacher finds a prediction likely from this probability on


class Detection(NamedTuple):
    """What ELECTRA's discriminator says about a batch in which the generator replaced the masked tokens."""

    drawn_tokens: Tensor  # (N)
    logits: Tensor  # (B, T), positive if it calls the token replaced
    is_token: Tensor  # (B, T) boolean, not padding


class Teacher(NamedTuple):
    """A model in evaluation mode that reads the same masked text, and says which predictions fit."""

    model: BaseFairseqModel
    first_of_group: Tensor | None = None  # (V), replaces the symbols of its input, as in ``predict``
    name: str = ""


class Judgment(NamedTuple):
    """The teacher's log probabilities of the gold tokens and of the predictions at N masked positions."""

    gold_lprobs: Tensor  # (N)
    prediction_lprobs: Tensor  # (N)

    @property
    def as_likely(self) -> Tensor:
        """Whether it finds the prediction at least as likely as the gold token: (N) boolean."""
        return self.prediction_lprobs >= self.gold_lprobs

    @property
    def likely(self) -> Tensor:
        """Whether it finds the prediction likely, as ``LIKELY`` says: (N) boolean."""
        return self.prediction_lprobs >= math.log(LIKELY)


class Predictions(NamedTuple):
    """The predictions for a batch of B sequences."""

    sequence_ids: list[int]  # (B)
    masked: MaskedPredictions
    detection: Detection | None = None
    judgment: Judgment | None = None


def load_split(loaded: Loaded, data_bin: Path, split: str) -> FairseqDataset:
    """The split as the checkpoint's task masks it; raises InputError if it is missing, damaged or empty."""
    if not (data_bin / f"{split}.idx").exists():
        there = sorted(path.stem for path in data_bin.glob("*.idx"))
        raise InputError(f"--split {split}: not in {data_bin}, which holds {', '.join(there) or 'no split'}")
    try:
        loaded.task.load_dataset(split)
    except (OSError, ValueError, AssertionError) as error:
        raise InputError(
            f"{data_bin / split}.idx: cannot be read ({error}); run tn-fairseq data binarize again"
        ) from None
    return loaded.task.dataset(split)


def batches_of(loaded: Loaded, dataset: FairseqDataset, max_sequences: int | None) -> list[list[int]]:
    """The same batches as in validation during training."""
    limit = utils.resolve_max_positions(loaded.task.max_positions(), loaded.model.max_positions())
    indices = dataset.ordered_indices()
    indices = loaded.task.filter_indices_by_size(indices, dataset, limit, ignore_invalid_inputs=True)
    batch_size, max_tokens = loaded.batching.batch_size_valid, loaded.batching.max_tokens_valid
    return dataset.batch_by_size(
        indices[:max_sequences],
        max_tokens=max_tokens,
        max_sentences=BATCH_SIZE if batch_size is None and max_tokens is None else batch_size,
        required_batch_size_multiple=loaded.batching.required_batch_size_multiple,
    )


def judge(logits: Tensor, targets: Tensor, predictions: Tensor) -> Judgment:
    """The log probabilities of the gold tokens and of the predictions: (N, V), (N), (N) -> 2 x (N)."""
    lprobs = log_probabilities(logits, torch.stack([targets, predictions], dim=1))
    return Judgment(*lprobs.cpu().unbind(dim=1))


def _read(model: BaseFairseqModel, net_input: Mapping[str, Any], first_of_group: Tensor | None) -> Any:
    """The model's output for an input with some symbols replaced, or with none if ``first_of_group`` is None."""
    device = next(model.parameters()).device
    if first_of_group is not None:
        net_input = {**net_input, "src_tokens": first_of_group[net_input["src_tokens"]]}
    return model(**utils.apply_to_sample(lambda tensor: tensor.to(device), net_input))


def masked_batches(dataset: FairseqDataset, batches: Iterable[Sequence[int]], seed: int) -> Iterator[Mapping[str, Any]]:
    """The batches of a split with one masking; 1 is that of validation during training, other seeds give others."""
    dataset.set_epoch(seed)
    utils.set_torch_seed(seed)  # for samples of predictions
    for members in batches:
        yield dataset.collater([dataset[index] for index in members])


@torch.no_grad()
def predict(
    loaded: Loaded,
    batches: Iterable[Mapping[str, Any]],
    sample: bool,
    continues_word: Tensor,
    first_of_group: Tensor | None = None,
    detects: bool = False,
    teacher: Teacher | None = None,
) -> Iterator[Predictions]:
    """Yield the predictions for each of ``masked_batches``: the most likely tokens, or samples from the softmax.

    ``continues_word``, (V) boolean, says which symbols continue a word. ``first_of_group``, (V), replaces the symbols
    of the model's input, as in training with ``mlm_merged_synonyms``. With ``detects``, ELECTRA's discriminator reads
    the text, too. A ``teacher`` judges the predictions.
    """
    temperature = loaded.criterion.get("generator_temperature", 1.0)
    for batch in batches:
        target_tokens = batch["target"]
        padding = loaded.task.source_dictionary.pad()
        masked_tokens = target_tokens.ne(padding)
        net_input = {**batch["net_input"], "masked_tokens": masked_tokens}
        drawing: dict[str, Any] = {}
        if detects:
            drawing = {"target_tokens": target_tokens, "uniform_draws": batch.get("uniform_draws")}
            drawing["temperature"] = temperature
        output = _read(loaded.model, net_input | drawing, first_of_group)
        logits = output[0].float().cpu()
        detection = None
        if detects:
            is_token = net_input["src_tokens"].ne(padding)
            detection = Detection(output.drawn_tokens.cpu(), output.discriminator_logits.float().cpu(), is_token)
        predictions = logits.argmax(-1)
        if sample:
            predictions = corruption.draw_replacements(logits, temperature, batch.get("uniform_draws"))
        src_tokens = batch["net_input"]["src_tokens"]
        masked = masked_predictions(
            src_tokens, target_tokens, masked_tokens, logits, predictions, padding, continues_word
        )
        judgment = None
        if teacher is not None:
            teacher_logits = _read(teacher.model, net_input, teacher.first_of_group)[0]
            judgment = judge(
                teacher_logits, masked.targets.to(teacher_logits.device), predictions.to(teacher_logits.device)
            )
            del teacher_logits  # before the caller works on the logits
        yield Predictions(batch["id"].tolist(), masked, detection, judgment)
