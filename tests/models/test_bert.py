import pytest
import torch
from helpers import first_batch


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


def test_padding_changes_nothing(build):
    task, model, _ = build("bert")
    model.eval()
    tokens = first_batch(task)["net_input"]["src_tokens"][:2]
    padded = torch.nn.functional.pad(tokens, (0, 5), value=task.dictionary.pad())
    hidden, _ = model(tokens, features_only=True)
    with_padding, _ = model(padded, features_only=True)
    torch.testing.assert_close(with_padding[:, : tokens.size(1)], hidden, atol=1e-5, rtol=1e-5)


def test_token_types_matter_and_default_to_the_first(build):
    task, model, _ = build("bert")
    model.eval()
    tokens = first_batch(task)["net_input"]["src_tokens"]
    plain, zeros, ones = (
        model(tokens, features_only=True, token_types=types)[0]
        for types in (None, torch.zeros_like(tokens), torch.ones_like(tokens))
    )
    torch.testing.assert_close(plain, zeros)
    assert not torch.allclose(plain, ones, atol=1e-3)


def test_the_head_is_tied_to_the_word_embeddings(build):
    _, model, _ = build("bert")
    names = dict(model.named_parameters())
    vocabulary, hidden = model.embeddings.word_embeddings.weight.shape
    assert [name for name, p in names.items() if p.shape == (vocabulary, hidden)] == [
        "embeddings.word_embeddings.weight"
    ]
    logits, _ = model(torch.tensor([[0, 5, 6, 2]]))
    logits.sum().backward()
    assert model.embeddings.word_embeddings.weight.grad.abs().sum(dim=1).gt(0).all()  # also rows outside the input


def test_parameters_are_initialized_like_berts(build):
    _, model, _ = build("bert")
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            assert parameter.abs().max() <= 0.04 and parameter.std().item() == pytest.approx(0.0176, abs=0.002), name
        else:
            assert parameter.eq(1.0 if "layer_norm.weight" in name else 0.0).all(), name


def test_sizes_of_the_paper():
    from fairseq.models import MODEL_DATACLASS_REGISTRY

    for name, (layers, hidden, heads, ffn) in {
        "bert_base": (12, 768, 12, 3072),
        "bert_large": (24, 1024, 16, 4096),
    }.items():
        cfg = MODEL_DATACLASS_REGISTRY[name]()
        sizes = cfg.encoder_layers, cfg.encoder_embed_dim, cfg.encoder_attention_heads, cfg.encoder_ffn_embed_dim
        assert sizes == (layers, hidden, heads, ffn)


def test_equals_a_transformer_layer_of_torch(build):
    """The same weights in torch's own post-LayerNorm encoder layer give the same hidden states."""
    _, model, _ = build("bert")
    model.eval()
    torch.manual_seed(0)
    ours = model.encoder.layers[0]
    theirs = torch.nn.TransformerEncoderLayer(128, 2, 512, activation="gelu", layer_norm_eps=1e-12, batch_first=True)
    for source, target in (
        (ours.attention.query_key_value.weight, theirs.self_attn.in_proj_weight),
        (ours.attention.query_key_value.bias, theirs.self_attn.in_proj_bias),
        (ours.attention.output.weight, theirs.self_attn.out_proj.weight),
        (ours.attention.output.bias, theirs.self_attn.out_proj.bias),
        (ours.ffn_in.weight, theirs.linear1.weight),
        (ours.ffn_in.bias, theirs.linear1.bias),
        (ours.ffn_out.weight, theirs.linear2.weight),
        (ours.ffn_out.bias, theirs.linear2.bias),
        (ours.attention_layer_norm.weight, theirs.norm1.weight),
        (ours.ffn_layer_norm.weight, theirs.norm2.weight),
    ):
        torch.nn.init.normal_(source, std=0.1)
        target.data.copy_(source.data)
    x = torch.randn(2, 7, 128)
    padding = torch.zeros(2, 7, dtype=torch.bool)
    padding[1, 5:] = True
    expected = theirs.train(False)(x, src_key_padding_mask=padding)
    got = ours(x, ~padding[:, None, None, :])
    torch.testing.assert_close(got[~padding], expected[~padding], atol=1e-5, rtol=1e-5)
