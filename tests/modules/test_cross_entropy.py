import pytest
import torch
import torch.nn.functional as F

from tn_fairseq.modules import cross_entropy as module
from tn_fairseq.modules.cross_entropy import cross_entropy, log_probabilities, soft_cross_entropy


@pytest.mark.parametrize("rows", [0, 1, 7, 40])
@pytest.mark.parametrize("entries", [1, 500, 1 << 19])  # one row, a few rows, all rows at a time
def test_values_and_gradients_equal_torchs_in_float32(rows, entries, monkeypatch):
    monkeypatch.setattr(module, "_ENTRIES", entries)
    torch.manual_seed(1)
    logits = (5 * torch.randn(rows, 100)).bfloat16()
    targets, weights = torch.randint(100, (rows,)), torch.rand(rows)
    found = []
    for function in (cross_entropy, lambda x, y: F.cross_entropy(x.float(), y, reduction="none")):
        inputs = logits.clone().requires_grad_()
        losses = function(inputs, targets)
        (losses * weights).sum().backward()
        found.append((losses.detach(), inputs.grad))
    (ours, our_gradient), (theirs, their_gradient) = found
    assert ours.dtype == torch.float32 and our_gradient.dtype == torch.bfloat16
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(our_gradient, their_gradient, rtol=1e-2, atol=1e-6)  # within one rounding


def test_no_float32_copy_of_the_logits_is_saved():
    logits, targets = torch.randn(6, 1000).bfloat16().requires_grad_(), torch.arange(6)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(saved.append, lambda tensor: tensor):
        cross_entropy(logits, targets)
    assert sum(tensor.nbytes for tensor in saved if tensor.data_ptr() != logits.data_ptr()) < 200


def test_other_precisions_use_torchs_cross_entropy():
    logits, targets = torch.randn(6, 10), torch.arange(6)
    assert torch.equal(cross_entropy(logits, targets), F.cross_entropy(logits, targets, reduction="none"))
    half = logits.half()
    assert torch.equal(cross_entropy(half, targets), F.cross_entropy(half.float(), targets, reduction="none"))


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("entries", [1, 300, 1 << 19])
@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_soft_targets_have_the_value_and_gradient_of_a_naive_mixture(rows, entries, temperature, monkeypatch):
    monkeypatch.setattr(module, "_ENTRIES", entries)
    torch.manual_seed(1)
    logits, theirs = (3 * torch.randn(rows, 100) for _ in range(2))
    theirs[:, 60:] = -torch.inf  # words that the target leaves out
    targets, weights, scale = torch.randint(60, (rows,)), torch.rand(rows), torch.rand(rows)
    ours = logits.clone().requires_grad_()
    losses = soft_cross_entropy(ours, targets, theirs, weights, temperature).losses
    (losses * scale).sum().backward()
    naive = logits.double().requires_grad_()
    target = weights.unsqueeze(1) * (theirs.double() / temperature).softmax(dim=1)
    target += (1 - weights).unsqueeze(1) * F.one_hot(targets, 100)
    expected = -(target * naive.log_softmax(dim=1)).sum(dim=1)
    (expected * scale).sum().backward()
    torch.testing.assert_close(losses.detach().double(), expected.detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.grad.double(), naive.grad, rtol=1e-5, atol=1e-6)
    symbols = torch.stack([targets, torch.full_like(targets, 7)], dim=1)
    expected = (theirs / temperature).log_softmax(dim=1).gather(1, symbols)
    torch.testing.assert_close(log_probabilities(theirs / temperature, symbols), expected)
