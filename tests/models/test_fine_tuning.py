"""Our models with heads for fine-tuning: what they keep, what they add, and how fast each part learns."""

import logging

import pytest
import torch
from files import refused

TOWERS = {"bert": "encoder", "electra": "discriminator"}
families = pytest.mark.parametrize("family", TOWERS)
BOS, PAD, EOS = 0, 1, 2


def with_head(build, family, classes=3, name="sentences"):
    torch.manual_seed(4)
    _, model, _ = build(family)
    model.register_classification_head(name, classes)
    return model


@families
def test_a_sentence_head_is_one_projection_of_the_first_token(build, family):
    model = with_head(build, family).eval()
    tokens = torch.tensor([[BOS, 7, 8, EOS, PAD], [BOS, 9, EOS, PAD, PAD]])
    logits, extra = model(tokens, classification_head_name="sentences")
    hidden = model.encode(getattr(model, TOWERS[family]), tokens, torch.zeros_like(tokens))
    output = model.classification_heads["sentences"].output
    torch.testing.assert_close(logits, hidden[:, 0] @ output.weight.T + output.bias)
    assert logits.shape == (2, 3) and extra is None
    assert output.weight.std().item() == pytest.approx(0.0176, abs=0.003) and output.bias.eq(0).all()
    model.train()
    assert not torch.equal(*(model(tokens, classification_head_name="sentences")[0] for _ in range(2)))  # dropout


@families
def test_the_second_sentence_has_token_type_1(build, family):
    model = with_head(build, family).eval()
    tokens = torch.tensor([[BOS, 7, 8, EOS, 9, 10, EOS], [BOS, 7, EOS, 8, EOS, PAD, PAD]])
    types = torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1]])
    logits, _ = model(tokens, classification_head_name="sentences")
    given, _ = model(tokens, token_types=types, classification_head_name="sentences")
    zeros, _ = model(tokens, token_types=torch.zeros_like(tokens), classification_head_name="sentences")
    assert torch.equal(logits, given) and not torch.allclose(logits, zeros, atol=1e-4)


@families
def test_what_only_pretraining_needs_is_deleted_and_the_rest_is_loaded(build, family):
    task, pretrained, _ = build(family)
    for parameter in pretrained.parameters():
        parameter.data.add_(0.01)
    state = pretrained.state_dict()
    model = with_head(build, family)
    fresh = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict(dict(state))
    kept = model.state_dict()
    heads = {name for name in kept if name.startswith("classification_heads.")}
    assert heads == {f"classification_heads.sentences.output.{part}" for part in ("weight", "bias")}
    modules = {name.split(".")[0] for name in kept.keys() - heads}
    assert modules == {"embeddings", TOWERS[family], "dictionary_fingerprint", "trained_positions"}
    assert all(torch.equal(kept[name], (fresh if name in heads else state)[name]) for name in kept)


@families
def test_a_fine_tuned_checkpoint_is_restored_and_refused_for_pretraining(build, family):
    model, again = with_head(build, family), with_head(build, family)
    for parameter in model.parameters():
        parameter.data.add_(0.01)
    again.load_state_dict(dict(model.state_dict()))
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in model.state_dict().items())
    _, pretraining, _ = build(family)
    assert "holds another model: " in refused(pretraining.load_state_dict, dict(model.state_dict()))


@families
def test_heads_of_another_task_are_reported_and_not_loaded(build, family, caplog):
    """From MNLI's three classes to RTE's two."""
    mnli, rte = with_head(build, family, classes=3), with_head(build, family, classes=2)
    own = rte.classification_heads["sentences"].output.weight.clone()
    with caplog.at_level(logging.WARNING):
        rte.load_state_dict(dict(mnli.state_dict()))
    assert torch.equal(rte.classification_heads["sentences"].output.weight, own)
    assert "classification_heads.sentences.output.weight of the checkpoint belongs to another task" in caplog.text
    other = with_head(build, family, classes=3, name="other")
    other.load_state_dict(dict(mnli.state_dict()))
    assert set(other.classification_heads) == {"other"}


@families
def test_positions_that_pretraining_never_reached(build, family, caplog):
    _, pretrained, _ = build(family, "--tokens-per-sample", 6)
    pretrained.eval().encode(getattr(pretrained, TOWERS[family]), torch.full((1, 4), 9))
    assert pretrained.trained_positions == 0
    pretrained.train().encode(getattr(pretrained, TOWERS[family]), torch.full((1, 4), 9))
    assert pretrained.trained_positions == 6
    model = with_head(build, family).train()
    model.load_state_dict(pretrained.state_dict())
    for length in (6, 8, 10, 10, 6):
        model(torch.full((2, length), 9), classification_head_name="sentences")
    (warning,) = [record.message for record in caplog.records if "fine-tuning on" in record.message]
    assert "of more than 6 tokens, but pre-training reached only 6 positions" in warning
    assert model.trained_positions == 6
    state = pretrained.state_dict()
    del state["trained_positions"]  # of an earlier version, which did not say how far it was trained
    pretrained.load_state_dict(state)
    assert pretrained.longest_trained == pretrained.max_positions()
