"""The analysis masks the text as validation during training does."""

from shutil import copytree

import pytest
import torch
from files import refused
from helpers import FAMILIES
from omegaconf import OmegaConf

from tn_fairseq.models.loading import Loaded
from tn_fairseq.tools.look.predictions import (
    BATCH_SIZE,
    Predictions,
    Teacher,
    batches_of,
    judge,
    load_split,
    masked_batches,
    predict,
)

NONE = torch.zeros(200, dtype=torch.bool)  # no symbol continues a word


@pytest.fixture
def loaded(build):
    def load_one(family: str, batch_size: int | None = 8) -> Loaded:
        task, model, _ = build(family)
        batching = {"batch_size_valid": batch_size, "max_tokens_valid": None, "required_batch_size_multiple": 8}
        return Loaded(model.eval(), task, OmegaConf.create(batching), OmegaConf.create())

    return load_one


@pytest.fixture
def predicting(loaded, data_bin):
    """Load a model and return it with a function that predicts the validation split."""

    def load_one(family: str, max_sequences: int | None = None):
        one = loaded(family)
        dataset = load_split(one, data_bin, "valid")
        batches = batches_of(one, dataset, max_sequences)

        def predictions(seed: int, sample: bool = False, continues_word: torch.Tensor = NONE) -> list[Predictions]:
            return list(predict(one, masked_batches(dataset, batches, seed), sample, continues_word))

        return one.task, predictions

    return load_one


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_masking_is_that_of_validation_and_others_differ(predicting, family):
    task, predictions = predicting(family)
    seen = {}
    for seed in (1, 2, 1):
        found = predictions(seed)
        masks = torch.cat([batch.masked.masked_tokens.flatten() for batch in found])
        assert seed not in seen or torch.equal(seen[seed], masks)
        seen[seed] = masks
        # the text before masking has no masks
        assert task.mask_idx not in torch.cat([batch.masked.text.flatten() for batch in found])
    assert not torch.equal(seen[1], seen[2])

    iterator = task.get_batch_iterator(
        task.dataset("valid"), max_sentences=8, max_positions=task.max_positions(), required_batch_size_multiple=8
    ).next_epoch_itr(shuffle=False, set_dataset_epoch=False)
    validation = torch.cat([batch["target"].ne(task.dictionary.pad()).flatten() for batch in iterator])
    assert torch.equal(seen[1], validation)


@pytest.mark.parametrize("family", ["electra", "bert"])  # whose samples come from the data, and from torch
def test_predictions_are_the_most_likely_tokens_or_samples_that_depend_only_on_the_seed(predicting, family):
    _, predictions = predicting(family, 16)
    (likeliest, *_) = predictions(1)
    assert torch.equal(likeliest.masked.predictions, likeliest.masked.logits.argmax(dim=1))
    draws = []
    for before, seed in ((5, 1), (6, 1), (6, 2)):
        torch.manual_seed(before)
        draws.append(predictions(seed, sample=True)[0])
    assert torch.equal(draws[0].masked.predictions, draws[1].masked.predictions)
    assert torch.equal(draws[0].masked.logits, likeliest.masked.logits)
    assert not torch.equal(draws[0].masked.predictions, likeliest.masked.predictions)
    assert not torch.equal(draws[1].masked.predictions, draws[2].masked.predictions)


def test_a_judgment_is_the_softmax_at_the_gold_tokens_and_the_predictions():
    logits = 3 * torch.randn(50, 40, generator=torch.Generator().manual_seed(1))
    logits[7, 5] = -torch.inf  # a symbol that the teacher lacks
    targets, predictions = (torch.arange(50) * step % 40 for step in (1, 3))
    targets[7] = 5
    probabilities = logits.softmax(dim=1)
    judgment = judge(logits.clone(), targets, predictions)
    for place, (gold, prediction) in enumerate(zip(targets, predictions)):
        of_gold, of_prediction = probabilities[place, gold], probabilities[place, prediction]
        assert judgment.gold_lprobs[place].exp() == pytest.approx(of_gold)
        assert judgment.prediction_lprobs[place].exp() == pytest.approx(of_prediction)
        assert judgment.as_likely[place] == (of_prediction >= of_gold)
        assert judgment.likely[place] == (of_prediction >= 0.1)
    assert judgment.as_likely.any() and not judgment.as_likely.all()
    assert judgment.likely.any() and not judgment.likely.all()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_teacher_reads_the_same_masked_text(loaded, data_bin, family):
    """A model that is its own teacher judges by its own logits, whatever symbols its input has."""
    one = loaded(family)
    dataset = load_split(one, data_bin, "valid")
    batches, vocabulary = batches_of(one, dataset, 16), len(one.task.source_dictionary)
    for first in (None, torch.arange(vocabulary) // 2 * 2):
        teacher = Teacher(one.model, first)
        for batch in predict(one, masked_batches(dataset, batches, 2), True, NONE, first, family == "electra", teacher):
            lprobs = batch.masked.logits.log_softmax(dim=1)
            for found, symbols in zip(batch.judgment, (batch.masked.targets, batch.masked.predictions)):
                torch.testing.assert_close(found, lprobs.gather(1, symbols.unsqueeze(1)).squeeze(1))
    (batch, *_) = predict(one, masked_batches(dataset, batches, 2), True, NONE)
    assert batch.judgment is None


def test_sequences_can_be_limited_and_batches_have_a_default_size(loaded, data_bin):
    one = loaded("electra", batch_size=None)
    dataset = load_split(one, data_bin, "valid")
    assert sum(map(len, batches_of(one, dataset, 5))) == 5
    batches = batches_of(one, dataset, None)
    assert sum(map(len, batches)) == len(dataset) and max(map(len, batches)) <= BATCH_SIZE


@pytest.mark.parametrize("family", ["electra", "bert"])
def test_a_missing_or_damaged_split_is_rejected(loaded, data_bin, family, tmp_path):
    one = loaded(family)
    message = refused(load_split, one, data_bin, "vaild")
    assert "--split vaild" in message and "train, valid" in message
    one.task.cfg.data = str(copytree(data_bin, tmp_path / "data"))
    (tmp_path / "data" / "valid.idx").write_bytes(b"nothing")
    assert f"{tmp_path}/data/valid" in refused(load_split, one, tmp_path / "data", "valid")


def test_a_gold_token_that_the_next_one_continues_is_padding(predicting):
    """All nouns continue words, so that a gold token before a noun is a part of a word."""
    task, predictions = predicting("bert", 16)
    dictionary = task.source_dictionary
    nouns = torch.tensor([symbol.startswith("noun") for symbol in dictionary.symbols])
    for batch in predictions(1, continues_word=nouns):
        masked = batch.masked
        for (row, place), gold, word in zip(masked.masked_tokens.nonzero().tolist(), masked.targets, masked.words):
            part = nouns[masked.text[row, place + 1 : place + 2]].any()
            assert word == (dictionary.pad() if part else gold)
        assert 0 < masked.words.eq(dictionary.pad()).sum() < len(masked.words)
