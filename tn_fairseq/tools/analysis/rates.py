"""Rates of corrected predictions with their spread over masking seeds."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from ..reporting.layout import WIDTH, align, cell, percent, shorten
from ..reporting.paper import HEADING, RATES_NOTE, TABLE_2
from ..reporting.statistics import mean_interval

Row = Mapping[str, Any]
LIKELY = 0.1  # a teacher finds a prediction likely from this probability on

# rate -> numerator, denominator
RATES = {
    "sequence_rate": ("corrected_sequences", "sequences"),
    "prediction_rate": ("corrected", "mismatches"),
    "masked_rate": ("corrected", "masked"),
    "accuracy": ("correct", "masked"),
}
# the same, not in the printed table: the masked-LM loss in bits, the mean probability of the gold word's synonyms,
# accuracy and loss if synonyms are right answers, and how many of the words with a synonym are mistaken for it
UNPRINTED = {
    "loss": ("loss", "masked"),
    "synonym_probability": ("synonym_probability", "masked"),
    "merged_accuracy": ("merged_correct", "masked"),
    "merged_loss": ("merged_loss", "masked"),
    "mistaken_rate": ("corrected", "with_synonyms"),
}
# of ELECTRA's discriminator, if it is measured: the replaced tokens that it finds, and how many of the tokens that it
# calls replaced are, both without synonyms of the original token; how many of these synonyms it calls replaced; and the
# area under the ROC curve: how often a replaced token gets a higher probability of being replaced than an original one
DETECTION = {
    "detection_recall": ("replaced_detected", "replaced"),
    "detection_precision": ("replaced_detected", "said_replaced"),
    "synonyms_detected": ("drawn_synonyms_detected", "drawn_synonyms"),
    "detection_auc": ("detections_ranked_right", "detection_pairs"),
}
# of a teacher, if there is one: the wrong predictions that it finds at least as likely as the gold token, and those to
# which it gives a probability of at least LIKELY; and its mean probability of a wrong prediction, and of the gold token
# there
TEACHER = {
    "teacher_as_likely_rate": ("teacher_as_likely", "mismatches"),
    "teacher_likely_rate": ("teacher_likely", "mismatches"),
    "teacher_probability": ("teacher_probability", "mismatches"),
    "teacher_gold_probability": ("teacher_gold_probability", "mismatches"),
}
HEADINGS = ("checkpoint", "updates", "corrected", "% of sequences", "% of mismatches", "% of masked", "accuracy %")
LEGEND = """\
corrected        wrong predictions that are synonyms of the gold token (false negatives), summed over masking seeds
% of sequences   percentage of sequences with at least one correction
% of mismatches  corrections as a percentage of wrong predictions
% of masked      corrections as a percentage of masked tokens
accuracy %       percentage of masked tokens whose prediction is the gold token"""
TEACHER_LEGEND = """\
teacher          the model of --teacher, which reads the same masked text; "as likely" means at least as likely"""
INTERVAL = """\
±: half the width of Student's 95% interval of the mean over masking seeds. It covers only the choice of masked tokens:
other text or another training run would add to it. It is 0 if all seeds give the same rate, for example if none has a
correction."""


class Counts(NamedTuple):
    """The counts for one masking of the data, one checkpoint and one synonym table."""

    sequences: int
    corrected_sequences: int  # with at least one correction
    masked: int
    correct: int  # predictions that equal the gold token
    corrected: int  # false negatives: wrong predictions that are synonyms
    loss: float = 0.0  # of plain masked LM, in bits
    synonym_probability: float = 0.0  # of all synonyms of the gold words together
    with_synonyms: int = 0  # masked tokens whose gold word has a synonym in the table
    synonym_gain: float = 0.0  # how much smaller the loss is if synonyms are right answers, in bits
    # of the tokens that ELECTRA's discriminator reads: those that are no synonym of the original token, those that are,
    # and the original tokens; and how many it calls replaced
    replaced: int = 0
    replaced_detected: int = 0
    drawn_synonyms: int = 0
    drawn_synonyms_detected: int = 0
    originals: int = 0
    originals_detected: int = 0
    detections_ranked_right: float = 0.0  # pairs in which the replaced token has a higher logit than the original one
    # wrong predictions that a teacher finds as likely as the gold token, and likely; and sums of its probabilities
    teacher_as_likely: int = 0
    teacher_likely: int = 0
    teacher_probability: float = 0.0  # of the wrong predictions
    teacher_gold_probability: float = 0.0  # of the gold tokens there

    @property
    def detection_pairs(self) -> int:
        return self.replaced * self.originals

    @property
    def said_replaced(self) -> int:
        return self.replaced_detected + self.originals_detected

    @property
    def mismatches(self) -> int:
        return self.masked - self.correct

    @property
    def merged_correct(self) -> int:
        """Predictions that are right if synonyms are right answers."""
        return self.correct + self.corrected

    @property
    def merged_loss(self) -> float:
        """The loss if synonyms are right answers, in bits: of -log(p(w_k) + sum of p(s))."""
        return self.loss - self.synonym_gain


def rate_row(
    checkpoint: str,
    updates: int | None,
    table: str,
    seeds: Sequence[Counts],
    detects: bool = False,
    has_teacher: bool = False,
) -> dict[str, Any]:
    """Counts of a checkpoint with a table, summed over at least one masking seed, rates in percent, and loss in bits.

    A rate is the mean over the seeds, followed by its 95% interval (``<rate>_low``, ``<rate>_high``), None for one
    seed. The rate of a seed is 0 if its denominator is 0, as in the training log. With
    ``detects``, the row has the rates of the discriminator, and with ``has_teacher`` those of a teacher.
    """
    row: dict[str, Any] = {"checkpoint": checkpoint, "updates": updates, "table": table, "mask_seeds": len(seeds)}
    for name in ("sequences", "corrected_sequences", "masked", "mismatches", "corrected", "with_synonyms"):
        row[name] = sum(getattr(seed, name) for seed in seeds)
    for rate, values in by_mask_seed(seeds, detects, has_teacher).items():
        low, high = mean_interval(values)
        row |= {rate: fmean(values), f"{rate}_low": low, f"{rate}_high": high}
    return row


def by_mask_seed(seeds: Sequence[Counts], detects: bool = False, has_teacher: bool = False) -> dict[str, list[float]]:
    """The rates of ``rate_row`` for each masking seed, to compare checkpoints on the same masks."""
    optional = (DETECTION if detects else {}) | (TEACHER if has_teacher else {})
    return {
        rate: [_rate(rate, getattr(seed, part), getattr(seed, whole)) for seed in seeds]
        for rate, (part, whole) in {**RATES, **UNPRINTED, **optional}.items()
    }


def _rate(rate: str, part: float, whole: int) -> float:
    """The share in percent, or 0 if ``whole`` is 0; of a loss, the mean in bits."""
    return float(percent(part, whole) or 0.0) / (100 if rate in ("loss", "merged_loss") else 1)


def rates_table(rows: Sequence[Row], show_paper: bool = False) -> str:
    """The rows for a terminal of 120 columns: a block for each synonym table, then a legend."""
    lines: list[str | list[str]] = []
    for table in dict.fromkeys(row["table"] for row in rows):
        lines += [table, list(HEADINGS)]
        folder = None
        for row in (row for row in rows if row["table"] == table):
            checkpoint = Path(row["checkpoint"])
            if checkpoint.parent != folder:
                folder = checkpoint.parent
                lines.append(shorten(f"  {folder}/", WIDTH))
            updates = "-" if row["updates"] is None else f"{row['updates']:,}"
            # early in training, rates are a few hundredths of a percent
            rates = [
                cell(row[rate], ".2f" if rate == "accuracy" else ".3f", row[f"{rate}_low"], row[f"{rate}_high"])
                for rate in RATES
            ]
            lines.append([f"    {checkpoint.name}", updates, f"{row['corrected']:,}", *rates])
            if "detection_recall" in row:
                lines.append(
                    f"      discriminator: recall {row['detection_recall']:.2f}%, precision "
                    f"{row['detection_precision']:.2f}%, area under the ROC curve {row['detection_auc']:.2f}%"
                )
            if "teacher_likely_rate" in row:
                as_likely, likely = (
                    cell(row[rate], ".2f", row[f"{rate}_low"], row[f"{rate}_high"])
                    for rate in ("teacher_as_likely_rate", "teacher_likely_rate")
                )
                lines.append(
                    f"      teacher: finds {as_likely}% of mismatches as likely as the gold token, and {likely}% at "
                    f"least {LIKELY:.0%} likely"
                )
        lines.append("")
    lines += LEGEND.splitlines()
    if any("teacher_likely_rate" in row for row in rows):
        lines += TEACHER_LEGEND.splitlines()
    if any(row["mask_seeds"] > 1 for row in rows):
        lines += INTERVAL.splitlines()
    seeds, masked, sequences = (_span(row[key] for row in rows) for key in ("mask_seeds", "masked", "sequences"))
    lines.append(f"Masking seeds: {seeds}. In total, {masked} tokens were masked in {sequences} sequences.")
    if show_paper:
        lines += ["", HEADING, list(HEADINGS)]
        for paper in TABLE_2:
            rates = [f"{paper.sequence_rate:.2f}", f"{paper.prediction_rate:.2f}"]
            lines.append([f"    {paper.model}, {paper.checkpoint:g}%", "-", "-", *rates, "-", "-"])
        lines += RATES_NOTE.splitlines()
    return "\n".join(align(lines, width=WIDTH))


def _span(values: Iterable[int]) -> str:
    """The common value, or the minimum and the maximum."""
    values = sorted(set(values))
    return " to ".join(f"{value:,}" for value in dict.fromkeys((values[0], values[-1])))
