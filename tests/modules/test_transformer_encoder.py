import pytest
import torch
import torch.nn.functional as F

from tn_fairseq.modules import transformer_encoder
from tn_fairseq.modules.transformer_encoder import (
    Embeddings,
    Grid,
    SelfAttention,
    TransformerEncoder,
    TransformerLayer,
    attend,
    attend_inside_documents,
    document_bounds,
    layout,
    padding_after,
    positions_in_documents,
    without_graphs,
)


@pytest.fixture
def attention_inputs():
    torch.manual_seed(1)
    query, key, value = torch.randn(3, 2, 3, 5, 8)
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    return query, key, value, mask


@pytest.mark.parametrize("masked", [True, False])
def test_attention_with_dropout_equals_torchs_on_average(attention_inputs, masked):
    query, key, value, mask = attention_inputs
    mask = mask if masked else None
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    assert torch.equal(attend(query, key, value, mask, 0.0), expected)
    # a probability so small that nothing is dropped here and only the scaling remains
    torch.testing.assert_close(attend(query, key, value, mask, 2**-16), expected, rtol=1e-4, atol=1e-5)
    draws = torch.stack([attend(query, key, value, mask, 0.2) for _ in range(4000)])
    error = draws.std(0) / 4000**0.5
    assert ((draws.mean(0) - expected).abs() < 5 * error + 1e-6).all()
    assert (draws[0] != draws[1]).any()


def test_masked_positions_get_no_attention_and_no_gradient(attention_inputs):
    query, key, value, mask = attention_inputs
    value.requires_grad_()
    attend(query, key, value, mask, 0.5).sum().backward()
    assert value.grad[1, :, 3:].abs().sum() == 0 and value.grad[0].abs().sum() > 0


def test_in_training_both_sublayers_are_dropped_before_the_residual_sum():
    """If everything is dropped, only the residual paths and the norms are left."""
    layer, x = TransformerLayer(8, 2, 16, dropout=1.0, attention_dropout=0.0), torch.randn(6, 8)
    residual = layer.ffn_layer_norm(layer.attention_layer_norm(x))
    torch.testing.assert_close(layer(x, Grid(2)), residual)
    assert not torch.allclose(layer.eval()(x, Grid(2)), residual, atol=0.01)


def test_in_training_attention_weights_are_dropped():
    attention, x = SelfAttention(8, 2, attention_dropout=1.0), torch.randn(6, 8)
    torch.testing.assert_close(attention(x, Grid(2)), attention.output.bias.expand_as(x))
    assert not torch.allclose(attention.eval()(x, Grid(2)), attention.output.bias.expand_as(x), atol=0.01)


def test_in_training_embeddings_are_dropped_after_the_norm():
    embeddings = Embeddings(10, 8, 5, dropout=0.5)
    tokens = torch.tensor([[4, 5, 6]])
    dropped, norm = embeddings(tokens), embeddings.eval()(tokens)
    torch.testing.assert_close(dropped, torch.where(dropped == 0, 0, 2 * norm))
    assert (dropped == 0).any() and (dropped != 0).any()
    torch.testing.assert_close(norm.mean(dim=-1), torch.zeros(1, 3), atol=1e-5, rtol=0)


def test_under_autocast_activations_are_bfloat16_from_the_embeddings_on():
    embeddings = Embeddings(dictionary_size=20, embedding_size=8, max_positions=6, dropout=0.1)
    layer = TransformerLayer(hidden_size=8, heads=2, ffn_size=16, dropout=0.1, attention_dropout=0.1)
    with torch.autocast("cpu", torch.bfloat16):
        embedded = embeddings(torch.arange(10).view(2, 5))
        output = layer(embedded.flatten(0, 1), Grid(2))
    assert embedded.dtype == output.dtype == torch.bfloat16
    output.float().square().sum().backward()
    parameters = [*embeddings.parameters(), *layer.parameters()]
    assert all(parameter.grad.dtype == parameter.dtype == torch.float32 for parameter in parameters)


# two rows of documents: of 3, 1 and 4 tokens; of 5 tokens, and 3 of padding
DOCUMENTS = torch.tensor([[1, 1, 1, 2, 3, 3, 3, 3], [1, 1, 1, 1, 1, 1, 1, 1]])
LENGTHS = torch.tensor([8, 5])
PADDING = torch.tensor([[False] * 8, [False] * 5 + [True] * 3])
FULL = torch.zeros_like(PADDING)
EVERYTHING = torch.arange(16)
ALONE = [(0, slice(0, 3)), (0, slice(3, 4)), (0, slice(4, 8)), (1, slice(0, 5))]


def test_positions_restart_in_every_document_and_bounds_are_between_documents():
    packed = (~PADDING).flatten().nonzero().squeeze(1)
    for known in (None, layout(LENGTHS, DOCUMENTS)):
        bounds = document_bounds(DOCUMENTS.masked_fill(PADDING, -1), packed, known)
        assert bounds.starts.tolist() == [0, 3, 4, 8, 13] and bounds.longest == 5
    assert positions_in_documents(DOCUMENTS).tolist() == [[0, 1, 2, 0, 0, 1, 2, 3], list(range(8))]


def torch_varlen_attn(query, key, value, starts, key_starts, longest, longest_key):
    """What torch's kernel for GPUs computes, one document at a time."""
    assert longest == longest_key == starts.diff().max() and starts.dtype == torch.int32
    parts = []
    for start, end in zip(starts.tolist(), key_starts[1:].tolist()):
        parts.append(
            F.scaled_dot_product_attention(*(states[start:end].transpose(0, 1) for states in (query, key, value)))
        )
    return torch.cat(parts, dim=1).transpose(0, 1)


def test_the_kernel_for_gpus_gets_packed_documents(monkeypatch):
    torch.manual_seed(1)
    projected, bounds = torch.randn(16, 3, 2, 4), document_bounds(DOCUMENTS, EVERYTHING)
    one_by_one = attend_inside_documents(projected, bounds, 0.0)
    monkeypatch.setattr(transformer_encoder, "varlen_attn", torch_varlen_attn)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    torch.testing.assert_close(attend_inside_documents(projected, bounds, 0.0), one_by_one)


@pytest.mark.parametrize("known", [None, layout(LENGTHS, DOCUMENTS)], ids=["", "layout"])
@pytest.mark.parametrize("kernel", ["mask", "packed", "GPU"])
@pytest.mark.parametrize("training", [True, False])
def test_documents_in_a_block_are_read_one_by_one(kernel, training, known, monkeypatch):
    torch.manual_seed(1)
    embeddings = Embeddings(dictionary_size=50, embedding_size=8, max_positions=8, dropout=0.0).train(training)
    encoder = TransformerEncoder(8, 16, 2, 4, 32, dropout=0.0, attention_dropout=0.0).train(training)
    monkeypatch.setattr(transformer_encoder, "DOCUMENT_COST", 0 if kernel == "packed" else torch.inf)
    monkeypatch.setattr(encoder, "_has_kernel", lambda x: kernel == "GPU")
    tokens = torch.randint(50, DOCUMENTS.shape)
    together = encoder(embeddings(tokens, documents=DOCUMENTS), PADDING, DOCUMENTS, known)
    assert together.isfinite().all()
    for row, part in ALONE:
        alone = tokens[row : row + 1, part]
        expected = encoder(embeddings(alone), torch.zeros_like(alone, dtype=torch.bool))
        torch.testing.assert_close(together[row : row + 1, part], expected, atol=1e-6, rtol=0)


def test_a_layout_says_what_the_tokens_say():
    assert padding_after(LENGTHS, 8).equal(PADDING)
    assert layout(LENGTHS)[1:] == (13, 2, 8) and layout(LENGTHS, DOCUMENTS)[1:] == (13, 4, 5)


def test_with_a_layout_nothing_is_asked_of_the_padding(monkeypatch):
    """On a GPU, the question would be a synchronization."""
    encoder, x = TransformerEncoder(8, 8, 1, 2, 8, 0.0, 0.0).eval(), torch.randn(16, 8)
    full = layout(torch.tensor([8, 8]))
    monkeypatch.setattr(torch.Tensor, "any", None)
    monkeypatch.setattr(torch.Tensor, "nonzero", None)
    assert encoder._attended(x, FULL, known=full) == (Grid(2), None)
    assert encoder._attended(x, PADDING, known=layout(LENGTHS))[0].mask.equal(~PADDING[:, None, None, :])
    monkeypatch.setattr(encoder, "_has_kernel", lambda x: True)
    assert encoder._attended(x, FULL, known=full) == (Grid(2), None)
    bounds, packed = encoder._attended(x, PADDING, known=layout(LENGTHS))
    assert bounds.starts.tolist() == [0, 8, 13] and bounds.longest == 8 and len(packed) == 13
    encoder.compiled = True
    assert encoder._attended(x, PADDING, known=layout(LENGTHS))[0].mask.equal(~PADDING[:, None, None, :])


def test_a_mask_for_a_gpu_is_added_to_the_scores(monkeypatch):
    encoder, x = TransformerEncoder(8, 8, 1, 2, 8, 0.0, 0.0).eval(), torch.randn(2, 8, 8)
    expected = encoder(x, PADDING)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    (_, mask), _ = encoder._attended(x, PADDING)
    assert mask.dtype == x.dtype and mask.isneginf().equal(PADDING[:, None, None, :])
    monkeypatch.setattr(transformer_encoder, "in_autocast_dtype", lambda x: x)
    torch.testing.assert_close(encoder(x, PADDING)[~PADDING], expected[~PADDING])


def encode(encoder, x, padding):
    """The outputs, and the gradients of the input and of all parameters."""
    x = x.clone().requires_grad_()
    output = encoder(x, padding)
    kept = ~padding.unsqueeze(-1)
    ((output * kept).square().sum() / kept.sum()).backward()
    gradients = [x.grad, *(parameter.grad.clone() for parameter in encoder.parameters())]
    encoder.zero_grad()
    return output, gradients


@pytest.mark.parametrize("documents", [None, DOCUMENTS], ids=["rows", "documents"])
@pytest.mark.parametrize("padding", [PADDING, FULL], ids=["padded", "full"])
@pytest.mark.parametrize("kernel", ["mask", "packed"])
def test_the_last_layer_computes_only_what_is_needed(kernel, padding, documents, monkeypatch):
    torch.manual_seed(1)
    monkeypatch.setattr(transformer_encoder, "DOCUMENT_COST", 0 if kernel == "packed" else torch.inf)
    encoder = TransformerEncoder(8, 16, 2, 4, 32, dropout=0.0, attention_dropout=0.0)
    x = torch.randn(2, 8, 8)
    needed, sizes = torch.tensor([0, 3, 8, 12]), []
    for layer in encoder.layers:
        for product in (layer.attention.query_key_value, layer.attention.output, layer.ffn_in, layer.ffn_out):
            product.register_forward_pre_hook(lambda module, arguments: sizes.append(len(arguments[0])))
    tokens = 13 if kernel == "packed" and padding is PADDING else 16
    found = []
    for some in (None, needed):
        encoder.zero_grad()
        output = encoder(x.requires_grad_(), padding, documents, needed=some)
        output = output.flatten(0, 1)[needed] if some is None else output
        gradient = torch.autograd.grad(output.square().sum(), x)
        found.append([output, *gradient])
    assert sizes == 8 * [tokens] + 5 * [tokens] + 3 * [len(needed)]
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5)
    nothing = encoder(x, padding, documents, needed=needed[:0])
    assert nothing.shape == (0, 16)
    nothing.sum().backward()


@pytest.mark.parametrize("padding", [PADDING, PADDING.flip(1), FULL], ids=["right", "left", "none"])
def test_training_on_a_cpu_without_padding_changes_nothing(padding, monkeypatch):
    """The large batch without padding is read row by row, too."""
    monkeypatch.setattr(transformer_encoder, "CACHED_SCORES", 0)
    torch.manual_seed(1)
    # a probability so small that nothing is dropped here
    encoder = TransformerEncoder(8, 16, 2, 4, 32, dropout=0.0, attention_dropout=2**-16)
    x = torch.randn(2, 8, 8)
    attended, packed = encoder._attended(x.flatten(0, 1), padding)
    assert len(packed) == (~padding).sum() == attended.starts[-1]
    packed_output, packed_gradients = encode(encoder, x, padding)
    output, gradients = encode(encoder.eval(), x, padding)
    torch.testing.assert_close(packed_output[~padding], output[~padding], atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(packed_gradients, gradients, atol=1e-4, rtol=1e-3)


def test_a_graph_runs_for_the_shape_of_the_first_batch_unless_batches_are_added_up(monkeypatch):
    encoder, called = TransformerEncoder(8, 8, 1, 2, 8, 0.0, 0.0), []
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    monkeypatch.setattr(encoder.layers, "_compiled_call_impl", lambda x, attended: called.append(len(x)) or x)
    encoder.compiled = True

    def run(rows):
        known = layout(torch.full((rows,), 8))
        x, padding = torch.randn(rows, 8, 8), torch.zeros(rows, 8, dtype=torch.bool)
        assert encoder(x, padding, known=known, needed=torch.arange(rows)).shape == (rows, 8)

    run(2), run(3), run(2)
    assert called == [16, 16]
    with without_graphs():
        run(2)
    assert called == [16, 16]
    encoder.eval()
    run(2)
    encoder.train()
    run(2)
    assert called == [16, 16, 16]


def test_packed_attention_weights_are_dropped_in_training():
    attention, x = SelfAttention(8, 2, attention_dropout=1.0), torch.randn(16, 8)
    bounds = document_bounds(DOCUMENTS, EVERYTHING)
    torch.testing.assert_close(attention(x, bounds), attention.output.bias.expand_as(x))
    assert not torch.allclose(attention.eval()(x, bounds), attention.output.bias.expand_as(x), atol=0.01)


def test_a_batch_is_packed_on_a_cpu_only_if_it_saves_work_in_training(monkeypatch):
    encoder, x = TransformerEncoder(8, 8, 1, 2, 8, 0.1, 0.1), torch.randn(16, 8)

    def packs(encoder, padding, documents=None):
        return encoder._attended(x, padding, documents)[1] is not None

    assert not packs(encoder, PADDING)
    # two rows and three positions of padding, with a hidden size of 8; the rows have four documents
    monkeypatch.setattr(transformer_encoder, "DOCUMENT_COST", 3 * 8**2 / 2)
    assert not packs(encoder, PADDING)
    monkeypatch.setattr(transformer_encoder, "DOCUMENT_COST", 3 * 8**2 / 2 - 1)
    assert packs(encoder, PADDING) and not packs(encoder, FULL) and not packs(encoder, PADDING, DOCUMENTS)
    assert not packs(encoder.eval(), PADDING)
    encoder.train().compiled = True
    assert not packs(encoder, PADDING)
    encoder.compiled = False
    without_dropout = TransformerEncoder(8, 8, 1, 2, 8, 0.1, 0.0)
    for cached, expected in ((2 * 2 * 8 * 8, False), (2 * 2 * 8 * 8 - 1, True)):
        monkeypatch.setattr(transformer_encoder, "CACHED_SCORES", cached)
        assert packs(encoder, FULL) == expected and not packs(without_dropout, FULL)


def test_documents_need_a_kernel_only_without_dropout_in_half_precision_on_a_gpu(monkeypatch):
    x = torch.zeros(1, 8, dtype=torch.bfloat16)
    encoder = TransformerEncoder(8, 8, 1, 1, 8, dropout=0.1, attention_dropout=0.1)
    assert not encoder.eval()._has_kernel(x)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert not encoder.eval()._has_kernel(x)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    encoder.train()
    assert not encoder._has_kernel(x)
    assert encoder.eval()._has_kernel(x)
    assert not encoder._has_kernel(x.float())
    without = TransformerEncoder(8, 8, 1, 1, 8, dropout=0.1, attention_dropout=0.0)
    assert without._has_kernel(x)
    for heads, size, expected in ((2, 16, True), (12, 312, False), (1, 256, True), (1, 264, False)):
        sized = TransformerEncoder(8, size, 1, heads, 8, dropout=0.0, attention_dropout=0.0)
        assert sized._has_kernel(torch.zeros(1, size, dtype=torch.bfloat16)) == expected
    monkeypatch.setattr(transformer_encoder, "HAS_VARLEN_ATTN", False)
    assert not encoder._has_kernel(x)
