"""Count the false negatives of one checkpoint for every masking and every table."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from scipy import stats
from torch import Tensor
from tqdm import tqdm

from ...core.errors import InputError
from ...core.masked_prediction import MaskedPredictions, false_negatives
from ...huggingface.masked_lm import load_folder
from ...models.loading import Checkpoint, Loaded, load
from ...objectives import functional
from ...objectives.mlm_merged_synonyms import first_of_group
from ...objectives.mlm_soft_reg import input_word_embeddings
from .cases import CaseCollector, TeacherCollector
from .pairs import pair_cosines
from .predictions import Detection, Judgment, Predictions, Teacher, batches_of, load_split, masked_batches, predict
from .rates import Counts


@dataclass(frozen=True, kw_only=True)
class CountingOptions:
    """How the masked words of a split are predicted and counted."""

    data_bin: Path
    split: str = "valid"
    mask_seeds: int = 5
    max_sequences: int | None = None  # of the split; None for all
    prediction_mode: str = "argmax"  # or a "sample" from the softmax
    detection: bool = False  # also measure ELECTRA's discriminator


@dataclass(frozen=True)
class Tables:
    """Synonym tables of one dictionary by name, each int32 (V, columns), and its symbols that continue a word.

    ``continues_word`` is (V) boolean.
    """

    synonyms: Mapping[str, Tensor]
    continues_word: Tensor


class Details:
    """Details of a single checkpoint: cases, pairs, how often tables fire together, and its word embeddings."""

    def __init__(self, tables: Mapping[str, Tensor], max_cases: int, teacher_collector: TeacherCollector | None = None):
        self.collectors = [CaseCollector(name, table, max_cases) for name, table in tables.items()]
        self.teacher_collector = teacher_collector
        self.wrong: list[tuple[Tensor, Tensor, Tensor]] = []  # gold words, wrong predictions, their probabilities
        self.fired = torch.zeros(len(tables), len(tables), dtype=torch.long)  # positions at which both fire
        self.word_embeddings = torch.empty(0)  # (V, E)

    def add(self, batch: Predictions, fired: Tensor) -> None:
        """Add a batch; ``fired``, (tables, N) boolean, are the false negatives."""
        masked = batch.masked
        probabilities = masked.logits.softmax(dim=-1)
        for collector, false_negative in zip(self.collectors, fired, strict=True):
            collector.add(batch, probabilities, false_negative)
        if self.teacher_collector is not None and batch.judgment is not None:
            self.teacher_collector.add(batch, batch.judgment, probabilities)
        prediction_probabilities = probabilities.gather(1, masked.predictions.unsqueeze(1)).squeeze(1)
        wrong = masked.words.eq(masked.targets) & masked.predictions.ne(masked.targets)
        self.wrong.append((masked.targets[wrong], masked.predictions[wrong], prediction_probabilities[wrong]))
        numbers = fired.double()  # exact
        self.fired += (numbers @ numbers.T).long()


def count(masked: MaskedPredictions, false_negative: Tensor, table: Tensor) -> Counts:
    """The counts of one batch for one table, (V, S), without those of detection and of a teacher.

    ``false_negative`` is (N) boolean.
    """
    lprobs = masked.logits.log_softmax(dim=-1)
    synonyms = table[masked.words]
    synonym_probabilities = lprobs.gather(1, synonyms.clamp(min=0).long()).exp().masked_fill(synonyms < 0, 0)
    gain = functional.synonym_gain(masked.logits, masked.targets, synonyms)
    return Counts(
        sequences=len(masked.text),
        corrected_sequences=int(masked.scatter(false_negative).any(dim=1).sum()),
        masked=len(masked.targets),
        correct=int(masked.predictions.eq(masked.targets).sum()),
        corrected=int(false_negative.sum()),
        loss=-lprobs.gather(1, masked.targets.unsqueeze(1)).double().sum().item() / math.log(2),
        synonym_probability=synonym_probabilities.double().sum().item(),
        with_synonyms=int(synonyms.ge(0).any(dim=1).sum()),
        synonym_gain=gain.double().sum().item() / math.log(2),
    )


def count_detected(
    masked: MaskedPredictions, detection: Detection, table: Tensor
) -> tuple[dict[str, int], tuple[Tensor, Tensor]]:
    """How many tokens ELECTRA's discriminator calls replaced, and its logits of replaced and of original tokens.

    The tokens that it reads are replaced, synonyms of the original, or originals. Synonyms have no logits here.
    """
    is_synonym = false_negatives(detection.drawn_tokens, masked.words, table)
    synonyms = masked.scatter(is_synonym)
    replaced = masked.scatter(detection.drawn_tokens.ne(masked.targets) & ~is_synonym)
    originals = detection.is_token & ~replaced & ~synonyms
    counts = {
        name: int(tokens.sum())
        for kind, is_kind in (("replaced", replaced), ("drawn_synonyms", synonyms), ("originals", originals))
        for name, tokens in ((kind, is_kind), (f"{kind}_detected", is_kind & detection.logits.gt(0)))
    }
    return counts, (detection.logits[replaced], detection.logits[originals])


def count_judged(masked: MaskedPredictions, judgment: Judgment) -> dict[str, Any]:
    """How many wrong predictions the teacher finds as likely as the gold token, or likely, and its probabilities."""
    wrong = masked.predictions.ne(masked.targets)
    return {
        "teacher_as_likely": int(judgment.as_likely[wrong].sum()),
        "teacher_likely": int(judgment.likely[wrong].sum()),
        "teacher_probability": judgment.prediction_lprobs[wrong].double().exp().sum().item(),
        "teacher_gold_probability": judgment.gold_lprobs[wrong].double().exp().sum().item(),
    }


def ranked_right(batches: Sequence[tuple[Tensor, Tensor]]) -> float:
    """In how many pairs of a replaced and an original token the replaced one has the higher logit; ties count half."""
    replaced, originals = (torch.cat(scores).numpy() for scores in zip(*batches))
    return stats.mannwhitneyu(replaced, originals, method="asymptotic").statistic if len(replaced) else 0.0


def load_any(checkpoint: Checkpoint, data_bin: Path) -> Loaded:
    """Load a checkpoint of fairseq-train or a folder of transformers; raises InputError as their functions do."""
    return load_folder(checkpoint.path, data_bin) if checkpoint.path.is_dir() else load(checkpoint, data_bin)


def input_groups(loaded: Loaded, tables: Mapping[str, Tensor]) -> Tensor | None:
    """The symbols that replace those of the input, (V), for a model that was trained with merged inputs, else None."""
    merges_inputs = loaded.criterion.get("merged") in ("both", "inputs")
    return first_of_group(next(iter(tables.values()))) if merges_inputs else None


def load_teacher(
    teacher: Checkpoint, checkpoints: Sequence[Checkpoint], options: CountingOptions, tables: Mapping[str, Tensor]
) -> Teacher:
    """Load the model that judges the checkpoints' predictions.

    Raises InputError as ``load_any`` does, and if a checkpoint reads longer texts than the teacher can.
    """
    loaded = load_any(teacher, options.data_bin)
    # positions after those of its training are as they were initialized
    limit = getattr(loaded.model, "longest_trained", 0) or loaded.model.max_positions()
    for checkpoint in checkpoints:
        reader = load_any(checkpoint, options.data_bin)
        dataset = load_split(reader, options.data_bin, options.split)
        batches = batches_of(reader, dataset, options.max_sequences)
        longest = max((int(dataset.size(index)) for batch in batches for index in batch), default=0)
        if longest > limit:
            raise InputError(
                f"--teacher {teacher.path}: has {limit} trained positions, but {checkpoint.path} reads texts of "
                f"{longest} tokens; give a teacher that was trained on texts of this length"
            )
    return Teacher(loaded.model, input_groups(loaded, tables), str(teacher.path))


def count_checkpoint(
    checkpoint: Checkpoint,
    options: CountingOptions,
    tables: Tables,
    details: Details | None,
    progress: tqdm,
    teacher: Teacher | None = None,
) -> list[tuple[Sequence[Counts], dict[str, float | None]]]:
    """The counts of each masking and the cosines, for each table; adds to ``details`` unless it is None.

    A ``teacher`` judges the predictions; raises InputError if its probabilities are NaN.
    """
    loaded = load_any(checkpoint, options.data_bin)
    dataset = load_split(loaded, options.data_bin, options.split)
    batches = batches_of(loaded, dataset, options.max_sequences)
    is_sample = options.prediction_mode == "sample"
    first = input_groups(loaded, tables.synonyms)
    progress.reset(total=options.mask_seeds * sum(map(len, batches)))
    seeds = []
    for seed in range(1, options.mask_seeds + 1):
        masked = masked_batches(dataset, batches, seed)
        predicted = predict(loaded, masked, is_sample, tables.continues_word, first, options.detection, teacher)
        seeds.append(_count_masking(_checked(predicted, progress, teacher), tables.synonyms, details))
    embeddings = input_word_embeddings(loaded.model).weight.detach().cpu()
    if details is not None:
        details.word_embeddings = embeddings
    return [
        (table_counts, pair_cosines(embeddings, table))
        for table_counts, table in zip(zip(*seeds), tables.synonyms.values())
    ]


def _checked(predicted: Iterable[Predictions], progress: tqdm, teacher: Teacher | None) -> Iterator[Predictions]:
    """The same batches; raises InputError if the teacher's probabilities are NaN, and shows how many are counted."""
    for batch in predicted:
        if teacher is not None and batch.judgment is not None and batch.judgment.gold_lprobs.isnan().any():
            raise InputError(
                f"--teacher {teacher.name}: its probabilities are NaN because its training diverged; give an earlier "
                "checkpoint"
            )
        yield batch
        progress.update(len(batch.sequence_ids))


def _count_masking(
    predicted: Iterable[Predictions], tables: Mapping[str, Tensor], details: Details | None
) -> list[Counts]:
    """The counts of all batches of one masking for each table."""
    batch_counts: list[list[Counts]] = []
    scores: list[list[tuple[Tensor, Tensor]]] = []  # of the discriminator
    for batch in predicted:
        masked = batch.masked
        fired = torch.stack([false_negatives(masked.predictions, masked.words, table) for table in tables.values()])
        counts = [count(masked, *pair) for pair in zip(fired, tables.values(), strict=True)]
        if batch.detection is not None:
            detected = [count_detected(masked, batch.detection, table) for table in tables.values()]
            counts = [
                one._replace(**detection_counts) for one, (detection_counts, _) in zip(counts, detected, strict=True)
            ]
            scores.append([logits for _, logits in detected])
        if batch.judgment is not None:
            judged = count_judged(masked, batch.judgment)
            counts = [one._replace(**judged) for one in counts]
        batch_counts.append(counts)
        if details is not None:
            details.add(batch, fired)
    masking_counts = [Counts(*map(sum, zip(*table_counts))) for table_counts in zip(*batch_counts)]
    right = [ranked_right(table_scores) for table_scores in zip(*scores)] or [0.0] * len(masking_counts)
    return [one._replace(detections_ranked_right=pairs) for one, pairs in zip(masking_counts, right, strict=True)]
