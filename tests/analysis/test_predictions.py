"""The analysis masks the text as validation during training does."""

import pytest
import torch
from helpers import FAMILIES
from omegaconf import OmegaConf

from tn_fairseq.analysis.predictions import BATCH_SIZE, batches_of, load_split, predict
from tn_fairseq.errors import InputError
from tn_fairseq.models.loading import Loaded

NONE = torch.zeros(200, dtype=torch.bool)  # no symbol continues a word


@pytest.fixture
def loaded(build):
    def load_one(family: str, batch_size: int | None = 8) -> Loaded:
        task, model, _ = build(family)
        batching = {"batch_size_valid": batch_size, "max_tokens_valid": None, "required_batch_size_multiple": 8}
        return Loaded(model.eval(), task, OmegaConf.create(batching))

    return load_one


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_masking_is_that_of_validation_and_others_differ(loaded, data_bin, family):
    one = loaded(family)
    dataset = load_split(one, data_bin, "valid")
    batches = batches_of(one, dataset, None)
    seen = {}
    for seed in (1, 2, 1):
        found = list(predict(one, dataset, batches, seed, sample=False, continues_word=NONE))
        masks = torch.cat([batch.masked_tokens.flatten() for batch in found])
        assert seed not in seen or torch.equal(seen[seed], masks)
        seen[seed] = masks
        # the text before masking has no masks
        assert one.task.mask_idx not in torch.cat([batch.tokens.flatten() for batch in found])
    assert not torch.equal(seen[1], seen[2])

    iterator = one.task.get_batch_iterator(
        dataset, max_sentences=8, max_positions=one.task.max_positions(), required_batch_size_multiple=8, epoch=1
    ).next_epoch_itr(shuffle=False, set_dataset_epoch=False)
    validation = torch.cat([batch["target"].ne(one.task.dictionary.pad()).flatten() for batch in iterator])
    assert torch.equal(seen[1], validation)


def test_predictions_are_the_most_likely_tokens_or_reproducible_samples(loaded, data_bin):
    one = loaded("electra")
    dataset = load_split(one, data_bin, "valid")
    batches = batches_of(one, dataset, None)
    likeliest = next(predict(one, dataset, batches, 1, sample=False, continues_word=NONE))
    assert torch.equal(likeliest.predictions, likeliest.logits.argmax(dim=1))
    draws = [next(predict(one, dataset, batches, 1, sample=True, continues_word=NONE)) for _ in range(2)]
    assert torch.equal(draws[0].predictions, draws[1].predictions)
    assert not torch.equal(draws[0].predictions, likeliest.predictions)
    assert torch.equal(draws[0].logits, likeliest.logits)


def test_sequences_can_be_limited_and_batches_have_a_default_size(loaded, data_bin):
    one = loaded("electra", batch_size=None)
    dataset = load_split(one, data_bin, "valid")
    assert sum(map(len, batches_of(one, dataset, 5))) == 5
    batches = batches_of(one, dataset, None)
    assert sum(map(len, batches)) == len(dataset) and max(map(len, batches)) <= BATCH_SIZE


@pytest.mark.parametrize("family", ["electra", "bert"])
def test_a_missing_or_damaged_split_is_rejected(loaded, data_bin, family, tmp_path):
    one = loaded(family)
    with pytest.raises(InputError, match=r"--split vaild: not in .*, which holds train, valid"):
        load_split(one, data_bin, "vaild")
    for path in data_bin.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "valid.idx").write_bytes(b"nothing")
    one.task.cfg.data = str(tmp_path)
    with pytest.raises((InputError, SystemExit), match="valid.idx|valid: "):
        load_split(one, tmp_path, "valid")


@pytest.mark.parametrize("family", FAMILIES)
def test_samples_depend_only_on_the_seed(loaded, data_bin, family):
    one = loaded(family)
    dataset = load_split(one, data_bin, "valid")
    batches = batches_of(one, dataset, 16)
    draws = []
    for before, seed in ((5, 1), (6, 1), (6, 2)):
        torch.manual_seed(before)
        draws.append(
            torch.cat(
                [batch.predictions for batch in predict(one, dataset, batches, seed, sample=True, continues_word=NONE)]
            )
        )
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[1], draws[2])


def test_a_gold_token_that_the_next_one_continues_is_padding(loaded, data_bin):
    """All nouns continue words, so that a gold token before a noun is a part of a word."""
    one = loaded("bert")
    dictionary = one.task.source_dictionary
    dataset = load_split(one, data_bin, "valid")
    batches = batches_of(one, dataset, 16)
    nouns = torch.tensor([symbol.startswith("noun") for symbol in dictionary.symbols])
    for batch in predict(one, dataset, batches, 1, sample=False, continues_word=nouns):
        for (row, place), gold, word in zip(batch.masked_tokens.nonzero().tolist(), batch.targets, batch.words):
            following = batch.tokens[row, place + 1 : place + 2].tolist()
            part = any(dictionary[token].startswith("noun") for token in following)
            assert word == (dictionary.pad() if part else gold)
        assert 0 < batch.words.eq(dictionary.pad()).sum() < len(batch.words)
