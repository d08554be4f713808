import re

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import MODEL_DATACLASS_REGISTRY
from files import refused
from helpers import WORDS, first_batch

SIZES = ("layers", "embed_dim", "attention_heads", "ffn_embed_dim")


def test_another_vocabulary_of_the_same_size_is_refused(build):
    _, model, _ = build("bert")
    state = model.state_dict()
    other = Dictionary()
    for word in [*reversed(WORDS), "<mask>"]:
        other.add_symbol(word)
    stranger = type(model)(model.cfg, other)
    assert "another vocabulary" in refused(stranger.load_state_dict, dict(state))
    model.load_state_dict(dict(state))


def test_a_sequence_longer_than_the_model_is_refused(build):
    task, model, criterion = build("bert", "--max-positions", 32, "--criterion", "electra")
    batch = first_batch(task)
    batch["net_input"]["src_tokens"] = torch.cat([batch["net_input"]["src_tokens"]] * 2, dim=1)
    batch["target"] = torch.cat([batch["target"]] * 2, dim=1)
    assert "32 positions" in refused(criterion, model, batch)


@pytest.mark.parametrize(
    "family, flag, values",
    [
        ("electra", "--tokens-per-sample", [513]),
        ("bert", "--encoder-attention-heads", [3, 0, -2]),
        ("electra", "--generator-attention-heads", [3]),
        ("electra", "--generator-embedding-size", [32]),
        ("bert", "--dropout", [-0.1, 1.0, "nan"]),
        ("bert", "--attention-dropout", [1.0]),
        ("bert", "--init-std", [0.0, -0.02, "nan", "inf"]),
    ],
)
def test_sizes_and_probabilities_that_make_no_model_are_refused(build, family, flag, values):
    for value in values:
        assert flag in refused(build, family, flag, value)


@pytest.mark.parametrize(
    "own, other, fine_tuning, named",
    [
        ("bert", "electra", True, "discriminator"),
        ("bert", "roberta", False, "dictionary_fingerprint"),
        ("electra", "bert", False, "discriminator"),
        ("bert", "bert --max-positions 64", True, "position_embeddings.weight"),
        ("bert", "bert --encoder-layers 3", False, "layers.2."),
        ("bert --encoder-layers 3", "bert", True, "layers.2."),
    ],
)
def test_a_checkpoint_of_another_model_is_refused_with_a_different_parameter(build, own, other, fine_tuning, named):
    (_, model, _), (_, stranger, _) = (build(*words.split()) for words in (own, other))
    if fine_tuning:
        model.register_classification_head("sentences", 2)
    message = refused(model.load_state_dict, stranger.state_dict())
    assert named in message and "--arch" in message


def test_depths_for_layer_wise_learning_rates(build):
    _, model, _ = build("electra", "--embedding-size", 32)
    depths = {}
    for name, parameter in model.named_parameters():
        layer = re.search(r"\.layers\.(\d+)\.", name)
        embeds = name.startswith("embeddings.") or ".embedding_projection." in name
        expected = 1 + int(layer[1]) if layer else 0 if embeds else None
        depths[name] = getattr(parameter, "optim_overrides", {}).get("layer_depth")
        assert depths[name] == expected, name
    assert sum("embedding_projection.weight" in name for name in depths) == 2  # of both encoders


def test_sinusoidal_positions_differ_by_the_same_rotation_everywhere(build):
    _, usual, _ = build("electra")
    _, model, _ = build("electra", "--sinusoidal-positions")
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


def test_the_initial_weights_are_scaled(build):
    _, usual, _ = build("electra")
    _, model, _ = build("electra", "--init-std", 0.08)
    for name, parameter in model.named_parameters():
        own = usual.get_parameter(name)
        assert torch.allclose(parameter, own if "norm" in name else 4 * own, rtol=1e-5), name


def test_the_size_of_electra_large():
    """tests/examples/test_pretraining_recipes.py has those of the other models of the papers."""
    cfg = MODEL_DATACLASS_REGISTRY["electra_large"]()
    assert cfg.embedding_size == 1024
    for part, sizes in (("encoder", (24, 1024, 16, 4096)), ("generator", (24, 256, 4, 1024))):
        assert tuple(getattr(cfg, f"{part}_{size}") for size in SIZES) == sizes


def test_only_masked_positions_are_projected_and_they_equal_the_full_projection(build):
    task, model, _ = build("bert")
    model.eval()
    batch = first_batch(task)
    tokens, masked = batch["net_input"]["src_tokens"], batch["target"].ne(task.dictionary.pad())
    everywhere, _ = model(tokens)
    at_masked, _ = model(tokens, masked_tokens=masked)
    assert everywhere.shape == (*tokens.shape, len(task.dictionary))
    assert at_masked.shape == (masked.sum(), len(task.dictionary))
    torch.testing.assert_close(at_masked, everywhere[masked])


def test_parameters_are_initialized_like_berts(build):
    _, model, _ = build("bert")
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            assert parameter.abs().max() <= 0.04 and parameter.std().item() == pytest.approx(0.0176, abs=0.002), name
        else:
            assert parameter.eq(1.0 if "layer_norm.weight" in name else 0.0).all(), name


@pytest.mark.parametrize("training", [True, False])
def test_a_predicted_padding_symbol_inside_a_text_is_a_token(build, training):
    _, model, _ = build("bert", "--dropout", 0, "--attention-dropout", 0)
    model.train(training)
    padding, text = model.padding_index, torch.tensor([0, 7, 8, 9, 10, 11, 2])
    text[2] = padding
    padded = torch.stack([torch.cat([text, torch.full((3,), padding)]), torch.cat([text[:-1], text[3:]])])
    everything = torch.zeros(1, len(text), dtype=torch.bool)
    alone = model.encoder(model.embeddings(text.unsqueeze(0)), padding=everything)[0]
    torch.testing.assert_close(model.encode(model.encoder, text.unsqueeze(0))[0], alone)
    torch.testing.assert_close(model.encode(model.encoder, padded)[0, : len(text)], alone, atol=1e-5, rtol=1e-4)
    text[2] = 8
    others = torch.arange(len(text)) != 2
    assert not torch.allclose(model.encode(model.encoder, text.unsqueeze(0))[0][others], alone[others], atol=1e-3)
