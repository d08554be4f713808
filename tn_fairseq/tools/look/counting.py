"""Count the false negatives of one checkpoint for every masking and every table."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from scipy import stats
from torch import Tensor
from tqdm import tqdm

from ...core.errors import InputError
from ...core.masked_prediction import MaskedPredictions, false_negatives
from ...core.synonym_table import Table
from ...huggingface.masked_lm_folder import load_folder
from ...models.loading import Checkpoint, Loaded, load
from ...objectives import functional
from ...objectives.mlm_merged_synonyms import first_of_group
from ...objectives.mlm_soft_reg import input_word_embeddings
from .analysis_options import AnalysisOptions
from .cases import CaseCollector, TeacherCollector
from .pairs import pair_cosines
from .predictions import Detection, Judgment, Predictions, Teacher, batches_of, load_split, masked_batches, predict

DIVERGED = "its probabilities are NaN because its training diverged; give an earlier checkpoint"
# measure -> numerator, denominator: a loss is a mean in bits, all others are percentages, and a sum has no denominator
OF_TEXT = {
    "sequences": ("sequences", ""),
    "masked": ("masked", ""),
    "mismatches": ("mismatches", ""),
    "accuracy": ("correct", "masked"),
    "loss": ("loss", "masked"),
}
OF_TABLE = {
    "corrected": ("corrected", ""),
    "merged_accuracy": ("merged_correct", "masked"),
    "merged_loss": ("merged_loss", "masked"),
    "prediction_rate": ("corrected", "mismatches"),
    "sequence_rate": ("corrected_sequences", "sequences"),
    "masked_rate": ("corrected", "masked"),
    "mistaken_rate": ("corrected", "with_synonyms"),
    "synonym_probability": ("synonym_probability", "masked"),
}
OF_DETECTION = {  # without synonyms of the original token, which are counted by themselves
    "detection_recall": ("replaced_detected", "replaced"),
    "detection_precision": ("replaced_detected", "said_replaced"),
    "detection_auc": ("detections_ranked_right", "detection_pairs"),
    "synonyms_detected": ("drawn_synonyms_detected", "drawn_synonyms"),
}
OF_TEACHER = {
    "teacher_as_likely_rate": ("teacher_as_likely", "mismatches"),
    "teacher_likely_rate": ("teacher_likely", "mismatches"),
    "teacher_probability": ("teacher_probability", "mismatches"),
    "teacher_gold_probability": ("teacher_gold_probability", "mismatches"),
}
Counts = dict[str, float]  # of one masking of the text, one checkpoint and one synonym table


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

    ``false_negative`` is (N) boolean. Losses are in bits.
    """
    lprobs = masked.logits.log_softmax(dim=-1)
    synonyms = table[masked.words]
    synonym_probabilities = lprobs.gather(1, synonyms.clamp(min=0).long()).exp().masked_fill(synonyms < 0, 0)
    gain = functional.synonym_gain(masked.logits, masked.targets, synonyms).double().sum().item() / math.log(2)
    loss = -lprobs.gather(1, masked.targets.unsqueeze(1)).double().sum().item() / math.log(2)
    correct, corrected = int(masked.predictions.eq(masked.targets).sum()), int(false_negative.sum())
    return {
        "sequences": len(masked.text),
        "corrected_sequences": int(masked.scatter(false_negative).any(dim=1).sum()),
        "masked": len(masked.targets),
        "correct": correct,
        "mismatches": len(masked.targets) - correct,
        "corrected": corrected,
        "loss": loss,
        "merged_correct": correct + corrected,  # if synonyms are right, too
        "merged_loss": loss - gain,  # of -log(p(w_k) + sum of p(s))
        "with_synonyms": int(synonyms.ge(0).any(dim=1).sum()),
        "synonym_probability": synonym_probabilities.double().sum().item(),
    }


def count_detected(
    masked: MaskedPredictions, detection: Detection, table: Tensor
) -> tuple[Counts, tuple[Tensor, Tensor]]:
    """How many tokens ELECTRA's discriminator calls replaced, and its logits of replaced and of original tokens.

    The tokens that it reads are replaced, synonyms of the original, or originals. Synonyms have no logits here.
    """
    is_synonym = false_negatives(detection.drawn_tokens, masked.words, table)
    synonyms = masked.scatter(is_synonym)
    replaced = masked.scatter(detection.drawn_tokens.ne(masked.targets) & ~is_synonym)
    originals = detection.is_token & ~replaced & ~synonyms
    counts: Counts = {
        name: int(tokens.sum())
        for kind, is_kind in (("replaced", replaced), ("drawn_synonyms", synonyms), ("originals", originals))
        for name, tokens in ((kind, is_kind), (f"{kind}_detected", is_kind & detection.logits.gt(0)))
    }
    counts["said_replaced"] = counts["replaced_detected"] + counts["originals_detected"]
    return counts, (detection.logits[replaced], detection.logits[originals])


def count_judged(masked: MaskedPredictions, judgment: Judgment) -> Counts:
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
    teacher: Checkpoint, checkpoints: Sequence[Checkpoint], options: AnalysisOptions, tables: Mapping[str, Tensor]
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
    options: AnalysisOptions,
    tables: Mapping[str, Table],
    details: Details | None,
    progress: tqdm,
    teacher: Teacher | None = None,
) -> list[dict[str, Any]]:
    """Rows of the table of results: the seed is that of the masking, and the part a synonym table if one matters.

    Adds to ``details`` unless it is None. A ``teacher`` judges the predictions. Raises InputError if its probabilities
    or those of the checkpoint are NaN.
    """
    loaded = load_any(checkpoint, options.data_bin)
    dataset = load_split(loaded, options.data_bin, options.split)
    batches = batches_of(loaded, dataset, options.max_sequences)
    is_sample = options.prediction_mode == "sample"
    synonyms = {name: table.synonyms for name, table in tables.items()}
    first = input_groups(loaded, synonyms)
    continues_word = next(iter(tables.values())).continues_word
    progress.reset(total=options.mask_seeds * sum(map(len, batches)))
    seeds = []
    for seed in range(1, options.mask_seeds + 1):
        masked = masked_batches(dataset, batches, seed)
        predicted = predict(loaded, masked, is_sample, continues_word, first, options.detection, teacher)
        seeds.append(_count_masking(_checked(predicted, progress, teacher), synonyms, details))
    if math.isnan(seeds[0][0]["loss"]):
        raise InputError(f"{checkpoint.path}: {DIVERGED}")
    embeddings = input_word_embeddings(loaded.model).weight.detach().cpu()
    if details is not None:
        details.word_embeddings = embeddings
    rows = rows_of(seeds, list(tables), options.detection, teacher is not None)
    cosines = {name: pair_cosines(embeddings, table) for name, table in synonyms.items()}
    for measure in ("pair_cosine", "other_cosine"):
        rows += [
            {"measure": measure, "part": name, "value": one[measure]} for name, one in cosines.items() if measure in one
        ]
    return rows


def rows_of(
    seeds: Sequence[Sequence[Counts]], tables: Sequence[str], detects: bool = False, has_teacher: bool = False
) -> list[dict[str, Any]]:
    """Rows of the table of results from the counts of each masking and each table.

    A rate is 0 if its denominator is 0, as in the training log.
    """
    rows = []
    of_text, of_table = OF_TEXT | (OF_TEACHER if has_teacher else {}), OF_TABLE | (OF_DETECTION if detects else {})
    for measure, (part, whole) in (of_text | of_table).items():
        scale = 1 if not whole or measure.endswith("loss") else 100
        for number, table in enumerate(tables[:1] if measure in of_text else tables):
            for seed, counts in enumerate(seeds, start=1):
                count, total = counts[number][part], counts[number][whole] if whole else 1
                value = scale * count / total if total else 0.0
                name = "" if measure in of_text else table
                rows.append({"seed": seed, "measure": measure, "part": name, "value": value})
    return rows


def _checked(predicted: Iterable[Predictions], progress: tqdm, teacher: Teacher | None) -> Iterator[Predictions]:
    """The same batches; raises InputError if the teacher's probabilities are NaN, and shows how many are counted."""
    for batch in predicted:
        if teacher is not None and batch.judgment is not None and batch.judgment.gold_lprobs.isnan().any():
            raise InputError(f"--teacher {teacher.name}: {DIVERGED}")
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
            counts = [one | found for one, (found, _) in zip(counts, detected, strict=True)]
            scores.append([logits for _, logits in detected])
        if batch.judgment is not None:
            judged = count_judged(masked, batch.judgment)
            counts = [one | judged for one in counts]
        batch_counts.append(counts)
        if details is not None:
            details.add(batch, fired)
    totals = [{name: sum(one[name] for one in counts) for name in counts[0]} for counts in zip(*batch_counts)]
    for total, table_scores in zip(totals, zip(*scores)):
        total["detection_pairs"] = total["replaced"] * total["originals"]
        total["detections_ranked_right"] = ranked_right(table_scores)
    return totals
