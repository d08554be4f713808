import pytest
import torch
import torch.nn.functional as F

from tn_fairseq.modules import linear as module
from tn_fairseq.modules.linear import Linear, linear


@pytest.mark.parametrize("outputs", [9, 15])  # fewer and more than inputs
@pytest.mark.parametrize("shape", [(3, 7, 12), (0, 12), (1, 12)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("gelu", [True, False])
def test_values_and_gradients_equal_torchs(shape, bias, gelu, outputs):
    torch.manual_seed(1)
    layer, x, results = Linear(12, outputs, bias=bias), torch.randn(shape), []
    for function in (linear, lambda x, weight, bias, gelu: F.linear(F.gelu(x) if gelu else x, weight, bias)):
        layer.zero_grad()
        inputs = x.clone().requires_grad_()
        output = function(inputs, layer.weight, layer.bias, gelu)
        (output * torch.linspace(-1, 2, outputs)).sum().backward()
        results.append([output.detach(), inputs.grad, *(parameter.grad for parameter in layer.parameters())])
    for our, their in zip(*results):
        torch.testing.assert_close(our, their, atol=1e-5, rtol=1e-5)


def test_onednn_is_used(monkeypatch):
    """Otherwise the module would be useless."""
    calls = []
    original = module._onednn_linear
    monkeypatch.setattr(module, "_onednn_linear", lambda *args: calls.append(1) or original(*args))
    Linear(4, 4)(torch.randn(2, 4)).sum().backward()
    assert len(calls) == 2  # forward and the weight's gradient; the input needs none


def test_only_the_gradients_that_are_needed():
    layer = Linear(4, 3)
    layer.weight.requires_grad_(False)
    x = torch.randn(2, 4, requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad is None and layer.bias.grad.tolist() == [2, 2, 2]
    torch.testing.assert_close(x.grad, layer.weight.sum(0).expand(2, 4))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("gelu", [True, False])
def test_under_autocast_products_are_bfloat16_and_gradients_float32(bias, gelu, monkeypatch):
    torch.manual_seed(1)
    layer, x, weights = Linear(64, 48, bias=bias), torch.randn(3, 7, 64), torch.randn(48)
    found = []
    for onednn in (module._onednn_linear, None):
        monkeypatch.setattr(module, "_onednn_linear", onednn)
        layer.zero_grad()
        inputs = x.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            output = layer(inputs, gelu)
        assert output.dtype == torch.bfloat16
        (output.float() * weights).sum().backward()
        gradients = [inputs.grad, *(parameter.grad for parameter in layer.parameters())]
        assert all(gradient.dtype == torch.float32 for gradient in gradients)
        found.append([output.detach().float(), *gradients])
    for our, their in zip(*found):
        torch.testing.assert_close(our, their, rtol=2e-2, atol=2e-2 * their.abs().max().item())


def test_autocast_to_another_type_uses_torchs_linear():
    layer, x = Linear(4, 3), torch.randn(2, 4)
    with torch.autocast("cpu", torch.float16):
        assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


@pytest.mark.parametrize("gelu", [True, False])
def test_other_precisions_and_machines_use_torchs_linear(gelu, monkeypatch):
    layer, x = Linear(4, 3), torch.randn(2, 4)
    for dtype in (torch.bfloat16, torch.float64, torch.float32):
        layer, x = layer.to(dtype), x.to(dtype)
        if dtype == torch.float32:
            monkeypatch.setattr(module, "_onednn_linear", None)
        assert torch.equal(layer(x, gelu), F.linear(F.gelu(x) if gelu else x, layer.weight, layer.bias))
