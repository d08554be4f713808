import re

import pytest
import torch
from fairseq.data import Dictionary
from helpers import WORDS, first_batch


def test_another_vocabulary_of_the_same_size_is_refused(build):
    _, model, _ = build("bert")
    state = model.state_dict()
    other = Dictionary()
    for word in [*reversed(WORDS), "<mask>"]:
        other.add_symbol(word)
    stranger = type(model)(model.cfg, other)
    with pytest.raises(SystemExit, match="another vocabulary") as stop:
        stranger.load_state_dict(dict(state))
    assert "\n" not in str(stop.value)
    model.load_state_dict(dict(state))


@pytest.mark.parametrize("family", ["bert", "electra"])
def test_sequences_longer_than_the_model(build, family):
    with pytest.raises(SystemExit, match="--tokens-per-sample 32 .* 16 positions"):
        build(family, "--max-positions", 16)


def test_a_sequence_longer_than_the_tasks_limit_is_refused(build):
    task, model, criterion = build("bert", "--max-positions", 32, "--criterion", "electra")
    batch = first_batch(task)
    batch["net_input"]["src_tokens"] = torch.cat([batch["net_input"]["src_tokens"]] * 2, dim=1)
    batch["target"] = torch.cat([batch["target"]] * 2, dim=1)
    with pytest.raises(SystemExit, match="longer than the model's 32 positions"):
        criterion(model, batch)


def test_heads_must_divide_the_hidden_size(build):
    with pytest.raises(SystemExit, match="--encoder-embed-dim 128 .* --encoder-attention-heads 3"):
        build("bert", "--encoder-attention-heads", 3)
    with pytest.raises(SystemExit, match="--generator-embed-dim 64 .* --generator-attention-heads 3"):
        build("electra", "--generator-attention-heads", 3)
    for heads in (0, -2):
        with pytest.raises(SystemExit, match=f"--encoder-attention-heads {heads}"):
            build("bert", "--encoder-attention-heads", heads)


@pytest.mark.parametrize("family", ["bert", "electra"])
@pytest.mark.parametrize("flag", ["--dropout", "--attention-dropout"])
@pytest.mark.parametrize("value", [-0.1, 1.0, 1.5, "nan"])
def test_dropout_is_a_probability(build, family, flag, value):
    with pytest.raises(SystemExit, match=rf"^error: {flag} must be in \[0, 1\), not {value}$"):
        build(family, flag, value)


@pytest.mark.parametrize("fine_tuning", [False, True])
def test_a_checkpoint_of_another_architecture_is_refused(build, fine_tuning):
    models = [build(family)[1] for family in ("bert", "electra", "roberta")]
    states = [model.state_dict() for model in models]
    for model, others in ((models[0], (1, 2)), (models[1], (0, 2))):
        if fine_tuning:
            model.register_classification_head("sentences", 2)
        for other in others:
            with pytest.raises(SystemExit, match=r"holds another model: \S+ is .*; give the --arch and the sizes"):
                model.load_state_dict(states[other])


def test_a_checkpoint_of_another_model_is_refused_with_the_first_different_parameter(build):
    _, model, _ = build("bert")
    _, other, _ = build("bert", "--max-positions", 64)
    with pytest.raises(SystemExit, match=r"position_embeddings.weight is \(64, 128\) there, but \(512, 128\) with"):
        model.load_state_dict(other.state_dict())
    _, deeper, _ = build("bert", "--encoder-layers", 3)
    with pytest.raises(SystemExit, match=r"layers\.2\.\S+ is \(\S+\) there, but missing with"):
        model.load_state_dict(deeper.state_dict())
    with pytest.raises(SystemExit, match=r"layers\.2\.\S+ is missing there"):
        deeper.load_state_dict(model.state_dict())


def test_depths_for_layer_wise_learning_rates(build):
    _, model, _ = build("electra", "--embedding-size", 32)
    depths = {}
    for name, parameter in model.named_parameters():
        layer = re.search(r"\.layers\.(\d+)\.", name)
        embeds = name.startswith("embeddings.") or ".embedding_projection." in name
        expected = 1 + int(layer[1]) if layer else 0 if embeds else None
        depths[name] = getattr(parameter, "optim_overrides", {}).get("layer_depth")
        assert depths[name] == expected, name
    assert sum("embedding_projection.weight" in name for name in depths) == 2  # of both towers


@pytest.mark.parametrize("family", ["bert", "electra"])
def test_sinusoidal_positions_differ_by_the_same_rotation_everywhere(build, family):
    torch.manual_seed(1)
    _, usual, _ = build(family)
    torch.manual_seed(1)
    _, model, _ = build(family, "--sinusoidal-positions")
    positions = model.embeddings.position_embeddings.weight.detach()
    similarity = positions @ positions.T
    for distance in (0, 1, 7):
        values = similarity.diagonal(distance)
        assert torch.allclose(values, values[0].expand_as(values), atol=1e-5)
    assert similarity[0, 0] > similarity[0, 1] > similarity[0, 2]
    assert float(positions.square().mean().sqrt()) == pytest.approx(0.02, rel=1e-3)  # as the other weights
    for name, parameter in model.named_parameters():
        if "position_embeddings" not in name:
            assert torch.equal(parameter, usual.get_parameter(name)), name


@pytest.mark.parametrize("family", ["bert", "electra"])
def test_the_initial_weights_are_scaled(build, family):
    torch.manual_seed(1)
    _, usual, _ = build(family)
    torch.manual_seed(1)
    _, model, _ = build(family, "--init-std", 0.08)
    for name, parameter in model.named_parameters():
        own = usual.get_parameter(name)
        assert torch.allclose(parameter, own if "norm" in name else 4 * own, rtol=1e-5), name


@pytest.mark.parametrize("value", [0.0, -0.02, "nan", "inf"])
def test_the_deviation_of_the_initial_weights_is_positive(build, value):
    with pytest.raises(SystemExit, match=f"^error: --init-std must be positive, not {value}$"):
        build("bert", "--init-std", value)
