"""Scores of a model in batches are those of each sequence by itself."""

import numpy as np
import pytest
import torch
from helpers import FAMILIES
from lexical_files import alone

from tn_fairseq.tools.evaluate.lexical import scoring
from tn_fairseq.tools.evaluate.lexical.blimp import pseudo_log_likelihoods
from tn_fairseq.tools.evaluate.lexical.scoring import Place, log_probabilities, replaced_token_logits


@pytest.fixture
def places(models) -> list[Place]:
    dictionary = models["bert"].task.source_dictionary
    rng = np.random.default_rng(3)
    rows = [rng.integers(dictionary.nspecial, len(dictionary) - 1, size) for size in (5, 9, 2, 9, 14)]
    rows = [np.concatenate([[dictionary.bos()], row, [dictionary.eos()]]) for row in rows]
    return [Place(row, 1 + number % (len(row) - 2)) for number, row in enumerate(rows)]


@pytest.mark.parametrize("max_tokens", [1, 20])
@pytest.mark.parametrize("family", FAMILIES)
def test_log_probabilities_in_any_batches(models, places, family, max_tokens, monkeypatch):
    monkeypatch.setattr(scoring, "MAX_TOKENS", max_tokens)
    before = [place.tokens.copy() for place in places]
    seen = []
    for members, log_probs in log_probabilities(models[family], places):
        seen += members.tolist()
        for member, found in zip(members, log_probs, strict=True):
            assert found.numpy() == pytest.approx(alone(models[family], places[member]).numpy(), abs=1e-4)
    assert sorted(seen) == list(range(len(places)))
    assert all(np.array_equal(place.tokens, tokens) for place, tokens in zip(places, before))


@pytest.mark.parametrize("max_tokens", [20, 4096])
def test_the_discriminator_reads_the_tokens_as_they_are(models, places, max_tokens, monkeypatch):
    monkeypatch.setattr(scoring, "MAX_TOKENS", max_tokens)
    model = models["electra"].model
    with torch.no_grad():
        expected = [
            model.discriminator_head(model.encode(model.discriminator, torch.from_numpy(place.tokens)[None]))[
                0, place.position
            ]
            for place in places
        ]
    assert replaced_token_logits(models["electra"], places) == pytest.approx(np.array(expected), abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pseudo_log_likelihood_is_the_sum_over_its_tokens(models, places, family):
    loaded = models[family]
    sentences = [place.tokens for place in places]
    expected = [
        sum(alone(loaded, Place(tokens, t))[tokens[t]].item() for t in range(1, len(tokens) - 1))
        for tokens in sentences
    ]
    assert pseudo_log_likelihoods(loaded, sentences) == pytest.approx(expected, abs=1e-4)
    empty = np.array([0, 2])
    assert pseudo_log_likelihoods(loaded, [empty, sentences[0], empty]) == pytest.approx([0, expected[0], 0], abs=1e-4)
