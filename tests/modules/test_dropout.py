import pytest
import torch

from tn_fairseq.modules.dropout import Dropout, dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_drops_that_share_and_keeps_the_mean(p):
    torch.manual_seed(1)
    x = torch.ones(1000, 1001)
    dropped = dropout(x, p)
    share = (dropped == 0).float().mean().item()
    assert share == pytest.approx(p, abs=4 * (p * (1 - p) / x.numel()) ** 0.5)  # four standard errors
    kept = dropped[dropped != 0]
    assert kept.unique().tolist() == pytest.approx([1 / (1 - p)], rel=1e-4)
    assert dropped.mean().item() == pytest.approx(1, abs=0.01)


def test_elements_are_dropped_independently():
    """Neighbours share a draw of 64 bits, but no bit of it."""
    torch.manual_seed(1)
    zero = (dropout(torch.ones(400_000, 4), 0.5) == 0).float()
    correlation = torch.corrcoef(torch.cat([zero[:-1], zero[1:]], dim=1).T)
    assert (correlation - torch.eye(8))[:4].abs().max() < 0.01


def test_the_gradient_goes_where_the_values_went():
    x = torch.randn(30, 7, requires_grad=True)
    dropped = dropout(x, 0.3)
    dropped.sum().backward()
    torch.testing.assert_close(x.grad * x.detach(), dropped.detach())


def test_the_same_seed_drops_the_same():
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(dropout(torch.ones(50), 0.5))
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2])


def test_nothing_happens_where_nothing_should():
    x = torch.randn(3, 5)
    assert dropout(x, 0.0) is x and dropout(x, 0.5, training=False) is x and Dropout(0.5).eval()(x) is x
    assert Dropout(1.0)(x).abs().sum() == 0
    assert dropout(torch.empty(0, 4), 0.5).shape == (0, 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions(dtype):
    torch.manual_seed(1)
    dropped = dropout(torch.ones(999, dtype=dtype), 0.5)
    assert dropped.dtype == dtype and set(dropped.tolist()) == {0, 2}


def test_a_strided_input():
    x = torch.arange(12.0).view(3, 4).t()
    torch.manual_seed(1)
    dropped = dropout(x, 0.5)
    assert torch.equal(dropped[dropped != 0], 2 * x[dropped != 0])
