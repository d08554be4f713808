import pytest
import torch
import torch.nn.functional as F

from tn_fairseq.modules.transformer_encoder import attend


@pytest.fixture
def attention_inputs():
    torch.manual_seed(1)
    query, key, value = torch.randn(3, 2, 3, 5, 8)
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    return query, key, value, mask


@pytest.mark.parametrize("masked", [True, False])
def test_attention_with_dropout_is_torchs_on_average(attention_inputs, masked):
    query, key, value, mask = attention_inputs
    mask = mask if masked else None
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    assert torch.equal(attend(query, key, value, mask, 0.0), expected)
    # so little dropout that it is never drawn here, and only scales
    torch.testing.assert_close(attend(query, key, value, mask, 2**-16), expected, rtol=1e-4, atol=1e-5)
    draws = torch.stack([attend(query, key, value, mask, 0.2) for _ in range(4000)])
    error = draws.std(0) / 4000**0.5
    assert ((draws.mean(0) - expected).abs() < 5 * error + 1e-6).all()
    assert (draws[0] != draws[1]).any()


def test_what_is_masked_gets_no_look_and_no_gradient(attention_inputs):
    query, key, value, mask = attention_inputs
    value.requires_grad_()
    attend(query, key, value, mask, 0.5).sum().backward()
    assert value.grad[1, :, 3:].abs().sum() == 0 and value.grad[0].abs().sum() > 0
