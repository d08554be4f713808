"""Our models with heads for fine-tuning: what they keep, what they add, and how fast each part learns."""

import logging

import pytest
import torch

from tn_fairseq.optim.electra_adamw import parameter_groups

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
def test_an_answer_head_scores_every_position_twice(build, family):
    _, model, _ = build(family)
    model.register_answer_head("squad")
    logits, _ = model.eval()(torch.tensor([[BOS, 7, EOS, 8, 9, EOS]]), classification_head_name="squad")
    assert logits.shape == (1, 6, 2)


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
    with pytest.raises(SystemExit, match="holds another model: ") as stop:
        pretraining.load_state_dict(dict(model.state_dict()))
    assert "\n" not in str(stop.value)


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
def test_a_checkpoint_that_lacks_a_layer_is_still_refused(build, family):
    _, pretrained, _ = build(family)
    state = dict(pretrained.state_dict())
    del state[f"{TOWERS[family]}.layers.1.ffn_in.weight"]
    with pytest.raises(SystemExit, match="layers.1.ffn_in.weight is missing there"):
        with_head(build, family).load_state_dict(state)


@families
def test_lower_layers_learn_more_slowly(build, family):
    """Two layers: the head at the full rate, layer 2 at 0.8^2, layer 1 at 0.8^3, the embeddings at 0.8^4."""
    model = with_head(build, family)
    rates = {
        id(parameter): group["lr_scale"]
        for group in parameter_groups(model.parameters(), 0.01, 0.8)
        for parameter in group["params"]
    }
    expected = {"classification_heads": 1.0, "embeddings": 0.4096, "layers.0": 0.512, "layers.1": 0.64}
    for name, parameter in model.named_parameters():
        found = next(rate for part, rate in expected.items() if part in name)
        assert rates[id(parameter)] == pytest.approx(found), name
    assert len(set(rates.values())) == 4


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


@families
def test_a_checkpoint_that_does_not_say_how_far_it_was_trained(build, family, caplog):
    _, model, _ = build(family)
    state = model.state_dict()
    del state["trained_positions"]
    model.load_state_dict(state)
    assert model.longest_trained == model.max_positions()
