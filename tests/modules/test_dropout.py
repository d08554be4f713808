import pytest
import torch

from tn_fairseq.modules.dropout import Dropout, _drop, dropout, dropout_matmul


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_drops_the_given_share_and_keeps_the_mean(p):
    torch.manual_seed(1)
    x = 1 + torch.rand(1000, 1001)
    dropped = dropout(x, p)
    share = (dropped == 0).float().mean().item()
    assert share == pytest.approx(p, abs=4 * (p * (1 - p) / x.numel()) ** 0.5)  # four standard errors
    torch.testing.assert_close(dropped, torch.where(dropped == 0, 0, x / (1 - p)), rtol=1e-4, atol=0)
    # a factor of 1 / 0.9 in bfloat16 would lower every mean by 0.16%; two standard errors are 7e-4 for 0.1
    ratio = dropout(x.bfloat16(), 0.1).double().mean() / x.double().mean()
    assert ratio.item() == pytest.approx(1, abs=8e-4)


def test_elements_are_dropped_independently():
    """Neighbors share a draw of 64 bits, but use different bits."""
    torch.manual_seed(1)
    zero = (dropout(torch.ones(400_000, 4), 0.5) == 0).float()
    correlation = torch.corrcoef(torch.cat([zero[:-1], zero[1:]], dim=1).T)
    assert (correlation - torch.eye(8))[:4].abs().max() < 0.01


def test_the_same_seed_drops_the_same_elements():
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(dropout(torch.ones(50), 0.5))
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2])


def test_evaluation_probabilities_0_and_1_and_empty_tensors():
    x = torch.randn(3, 5)
    assert dropout(x, 0.0) is x and dropout(x, 0.5, training=False) is x and Dropout(0.5).eval()(x) is x
    assert Dropout(1.0)(x).abs().sum() == 0
    assert dropout(torch.empty(0, 4), 0.5).shape == (0, 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_strided_inputs_and_the_gradient(dtype):
    x = torch.arange(1, 1000, dtype=dtype).view(37, 27).t().requires_grad_()
    torch.manual_seed(1)
    dropped = dropout(x, 0.5)
    assert dropped.dtype == dtype and torch.equal(dropped, torch.where(dropped == 0, 0, 2 * x))
    dropped.sum().backward()
    assert torch.equal(x.grad, torch.where(dropped == 0, 0, 2).to(dtype))


@pytest.mark.parametrize("p", [0.1, 1.0])
def test_dropout_matmul_is_dropout_and_a_product(p):
    inputs = torch.randn(2, 3, 5, 7), torch.randn(2, 3, 7, 4)
    found = []
    for function in (dropout_matmul, lambda x, values, p: dropout(x, p) @ values):
        torch.manual_seed(1)
        x, values = (tensor.clone().requires_grad_() for tensor in inputs)
        product = function(x, values, p)
        product.square().sum().backward()
        found.append((product.detach(), x.grad, values.grad))
    torch.testing.assert_close(*found, rtol=0, atol=1e-6)


def test_dropout_matmul_under_autocast():
    x, values = torch.rand(3, 5, requires_grad=True), torch.rand(5, 2, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        product = dropout_matmul(x, values, 0.5)
    product.sum().backward()
    assert product.dtype == torch.bfloat16 and x.grad.dtype == torch.float32 and values.grad.dtype == torch.bfloat16


def test_dropout_matmul_does_not_save_a_dropped_copy():
    x, values = torch.rand(50, 40, requires_grad=True), torch.rand(40, 3, requires_grad=True)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda tensor: tensor):
        dropout_matmul(x, values, 0.5)
    assert sum(t.nbytes for t in kept if t.data_ptr() not in (x.data_ptr(), values.data_ptr())) == 2 * x.numel()


@pytest.mark.parametrize("dropped", [1, 2, 6554, 32768, 65535])
def test_exactly_the_share_of_all_bit_patterns_is_dropped(dropped):
    bits = torch.arange(-(1 << 15), 1 << 15).to(torch.int16)
    kept = _drop(torch.ones(1 << 16, dtype=torch.float64), bits, dropped)
    assert (kept == 0).sum() == dropped
    assert kept.sum().item() == pytest.approx(1 << 16)
