"""Counts for a batch, and for a checkpoint over batches and maskings."""

from argparse import Namespace
from pathlib import Path

import pytest
import torch
from files import refused
from tqdm import tqdm

from tn_fairseq.core.masked_prediction import MaskedPredictions
from tn_fairseq.core.synonym_table import PADDING, Table
from tn_fairseq.models.loading import Checkpoint
from tn_fairseq.tools.look import counting
from tn_fairseq.tools.look.analysis_options import AnalysisOptions
from tn_fairseq.tools.look.counting import (
    OF_DETECTION,
    OF_TEACHER,
    Details,
    count,
    count_checkpoint,
    count_detected,
    count_judged,
    ranked_right,
    rows_of,
)
from tn_fairseq.tools.look.predictions import Detection, Judgment, Predictions, Teacher

V = 8
NONE = torch.zeros(V, dtype=torch.bool)
TABLE = torch.full((V, 1), PADDING, dtype=torch.int32)
TABLE[4], TABLE[5] = 5, 4
OTHER = torch.full((V, 1), PADDING, dtype=torch.int32)
OTHER[4], OTHER[6] = 5, 7


def batch(golds, predictions, words=None):
    """Three sequences of four tokens; two tokens are masked in the first, two in the second, none in the third."""
    masked = torch.zeros(3, 4, dtype=torch.bool)
    masked[0, 1:3] = masked[1, 1 : len(golds) - 1] = True
    tokens = torch.full((3, 4), 6)
    words = torch.tensor(golds if words is None else words)
    logits = torch.zeros(4, V)
    predicted = MaskedPredictions(tokens, masked, torch.tensor(golds), words, torch.tensor(predictions), logits)
    return Predictions([0, 1, 2], predicted)


def test_the_counts_of_a_batch():
    found = batch([4, 5, 6, 6], [5, 4, 6, 7]).masked
    fired = torch.tensor([True, True, False, False])
    counts = {"sequences": 3, "masked": 4, "correct": 1, "mismatches": 3, "corrected": 2, "merged_correct": 3}
    # all 8 tokens are equally likely: 3 bits for each position, and 1/8 for each of the synonyms of 4 and of 5, for
    # which the loss is 2 bits if their synonyms are right
    of_logits = {"loss": 12, "synonym_probability": 0.25, "with_synonyms": 2, "merged_loss": 10}
    assert count(found, fired, TABLE) == pytest.approx(counts | of_logits | {"corrected_sequences": 1})
    fired = torch.tensor([True, False, False, True])
    of_logits |= {"synonym_probability": 0.375, "with_synonyms": 3, "merged_loss": 9}  # those of 4, and of 6 twice
    assert count(found, fired, OTHER) == pytest.approx(counts | of_logits | {"corrected_sequences": 2})
    # parts of words have no synonyms
    parts = batch([4, 5, 6, 6], [5, 4, 6, 7], words=[4, 1, 1, 1]).masked
    assert count(parts, NONE[:4], TABLE)["synonym_probability"] == pytest.approx(0.125)


def test_what_the_discriminator_finds():
    """Of four masked tokens: a synonym, a wrong word that it finds, the original word, and a wrong word it misses."""
    found = batch([4, 5, 6, 6], [5, 4, 6, 7]).masked
    logits = torch.full((3, 4), -1.0)
    logits[0, 1] = logits[0, 2] = logits[2, 0] = 1  # the synonym, a wrong word, and an original word
    is_token = torch.ones(3, 4, dtype=torch.bool)
    is_token[2, 3] = False
    detection = Detection(torch.tensor([5, 7, 6, 3]), logits, is_token)
    counts, logits = count_detected(found, detection, TABLE)
    assert (counts["replaced"], counts["replaced_detected"]) == (2, 1)
    assert (counts["drawn_synonyms"], counts["drawn_synonyms_detected"]) == (1, 1)
    assert (counts["originals"], counts["originals_detected"]) == (8, 1)
    # of 8 original words, the wrong word that it finds beats 7 and ties with 1; the one it misses ties with 7
    assert ranked_right([logits] * 2) == 4 * (7 + 8 / 2)
    assert ranked_right([(torch.tensor([]), torch.tensor([1.0]))]) == 0


def test_what_the_teacher_says_counts_only_for_wrong_predictions():
    found = batch([4, 5, 6, 6], [5, 4, 6, 7]).masked
    of_golds, of_predictions = torch.tensor([0.25, 0.5, 0.5, 0.01]), torch.tensor([0.5, 0.125, 0.5, 0.02])
    counts = count_judged(found, Judgment(of_golds.log(), of_predictions.log()))
    assert counts.pop("teacher_probability") == pytest.approx(0.5 + 0.125 + 0.02)
    assert counts.pop("teacher_gold_probability") == pytest.approx(0.25 + 0.5 + 0.01)
    assert counts == {"teacher_as_likely": 2, "teacher_likely": 2}


# rates of FIRST: 10 of 40 sequences, 16 of 80 mismatches, 16 of 100 masked, 20 of 100 correct
FIRST = {"sequences": 40, "corrected_sequences": 10, "masked": 100, "correct": 20, "mismatches": 80, "corrected": 16}
FIRST |= {"loss": 400.0, "merged_correct": 36, "merged_loss": 360.0, "with_synonyms": 32, "synonym_probability": 3.0}
DETECTED = {"replaced": 40, "replaced_detected": 10, "drawn_synonyms": 8, "drawn_synonyms_detected": 2}
DETECTED |= {"said_replaced": 40, "detections_ranked_right": 9000, "detection_pairs": 36000}
JUDGED = {"teacher_as_likely": 60, "teacher_likely": 20, "teacher_probability": 4.0, "teacher_gold_probability": 8.0}


def values_of(*seeds, tables=("t",), **options) -> dict:
    """The values by measure and part, in the order of the seeds."""
    found = {}
    for row in rows_of(seeds, tables, **options):
        found.setdefault((row["measure"], row["part"]), []).append(row["value"])
    return found


def test_rates_by_hand():
    other = FIRST | {"correct": 60, "mismatches": 40, "loss": 300.0}
    found = values_of([FIRST, FIRST | {"corrected": 8}], [other, FIRST], tables="ab")
    assert [found[count, ""] for count in ("masked", "mismatches", "sequences")] == [[100, 100], [80, 40], [40, 40]]
    assert found["accuracy", ""] == [20, 60] and found["loss", ""] == [4, 3]
    assert found["corrected", "a"] == [16, 16] and found["corrected", "b"] == [8, 16]
    assert found["prediction_rate", "a"] == [20, 40] and found["prediction_rate", "b"] == [10, 20]
    rates = ("sequence_rate", "masked_rate", "merged_accuracy", "merged_loss", "mistaken_rate", "synonym_probability")
    assert [found[rate, "a"][0] for rate in rates] == [25, 16, 36, 3.6, 50, 3]


def test_rates_of_the_discriminator_and_of_a_teacher_are_there_if_they_are_measured():
    plain, counts = values_of([FIRST]), FIRST | DETECTED | JUDGED
    found = values_of([counts], detects=True, has_teacher=True)
    assert [found[rate, "t"] for rate in OF_DETECTION] == [[25]] * 4
    assert [found[rate, ""] for rate in OF_TEACHER] == [[75], [25], [5], [10]]  # of 80 wrong predictions
    assert {key: value for key, value in found.items() if key[0] not in {*OF_DETECTION, *OF_TEACHER}} == plain


def test_a_rate_with_denominator_zero_is_zero():
    found = values_of([dict.fromkeys(FIRST | DETECTED | JUDGED, 0)], detects=True, has_teacher=True)
    assert set(map(tuple, found.values())) == {(0,)}


@pytest.fixture
def count_made(monkeypatch):
    """Count made batches by masking seed, and return the counts, the details, and how predictions were asked for."""

    def count_made(made, tables, mode="argmax", teacher=None):
        asked = []

        def predict(loaded, seed, sample, continues_word, first_of_group, detects, given):
            assert given is teacher and continues_word is NONE
            asked.append((seed, sample))
            return made[seed]

        model = torch.nn.Module()
        model.embeddings = torch.nn.Module()
        model.embeddings.word_embeddings = torch.nn.Embedding(V, 3)
        monkeypatch.setattr(counting, "load", lambda checkpoint, data_bin: Namespace(model=model, criterion={}))
        monkeypatch.setattr(counting, "load_split", lambda loaded, data_bin, split: None)
        monkeypatch.setattr(counting, "batches_of", lambda loaded, dataset, max_sequences: [[0, 1, 2]])
        monkeypatch.setattr(counting, "masked_batches", lambda dataset, batches, seed: seed)
        monkeypatch.setattr(counting, "predict", predict)
        options = AnalysisOptions(
            data_bin=Path("data-bin"),
            synonym_table=[],
            output=Path("out"),
            path=["checkpoint.pt"],
            mask_seeds=len(made),
            prediction_mode=mode,
        )
        details = Details(tables, max_cases=10)
        loaded = {name: Table(table, NONE, {}) for name, table in tables.items()}
        checkpoint = Checkpoint(Path("checkpoint.pt"), 1)
        rows = count_checkpoint(checkpoint, options, loaded, details, tqdm(disable=True), teacher)
        found = {}
        for row in rows:
            found.setdefault((row["measure"], row["part"]), []).append(row["value"])
        return found, details, asked

    return count_made


def test_batches_are_summed_for_each_table_and_masking(count_made):
    one, other = batch([4, 5, 6, 6], [5, 4, 6, 7]), batch([4, 5, 6, 6], [4, 4, 6, 7])
    found, details, asked = count_made({1: [one], 2: [one, other]}, {"table": TABLE, "other": OTHER}, "sample")
    assert asked == [(1, True), (2, True)]
    assert found["sequences", ""] == [3, 6] and found["masked", ""] == [4, 8] and found["mismatches", ""] == [3, 5]
    assert found["corrected", "table"] == found["corrected", "other"] == [2, 3]
    assert found["sequence_rate", "table"] == pytest.approx([100 / 3, 100 / 3])
    assert found["sequence_rate", "other"] == pytest.approx([200 / 3, 50])
    assert len(found["pair_cosine", "table"]) == 1
    # both fire on 4 -> 5, which is predicted in two of the three batches
    assert details.fired.tolist() == [[5, 2], [2, 5]]
    assert details.word_embeddings.shape == (V, 3)
    assert sum(len(gold) for gold, _, _ in details.wrong) == 8


def test_a_part_of_a_word_counts_only_as_masked(count_made):
    """The first of two equal wrong predictions is at a part of a word: neither a correction nor a pair of words."""
    made = batch([4, 4, 6, 6], [5, 5, 6, 7], words=[1, 4, 6, 6])
    found, details, asked = count_made({1: [made]}, {"table": TABLE})
    assert found["mismatches", ""] == [3] and found["corrected", "table"] == [1] and asked == [(1, False)]
    ((gold, prediction, probability),) = details.wrong
    assert details.fired.tolist() == [[1]] and (gold.tolist(), prediction.tolist()) == ([4, 6], [5, 7])
    assert probability.tolist() == pytest.approx([1 / V] * 2)


def test_models_that_diverged_are_refused(count_made):
    nan = torch.full((4,), torch.nan)
    made = batch([4, 5, 6, 6], [5, 4, 6, 7])
    judged, teacher = made._replace(judgment=Judgment(nan, nan)), Teacher(torch.nn.Module(), name="good.pt")
    assert "--teacher good.pt: " in refused(count_made, {1: [judged]}, {"table": TABLE}, teacher=teacher)
    made.masked.logits[0] = torch.nan
    assert "checkpoint.pt: " in refused(count_made, {1: [made]}, {"table": TABLE})
