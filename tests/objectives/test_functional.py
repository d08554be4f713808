import math

import pytest
import torch
from fairseq import modules

from tn_fairseq.objectives import functional


@pytest.mark.parametrize("positions", [0, 7, 1000])
def test_total_of_masked_lm_is_bitwise_equal_to_fairseqs_sum(positions):
    logits = torch.randn(positions, 321, generator=torch.Generator().manual_seed(positions), requires_grad=True)
    targets = torch.arange(positions) % 321
    ours = functional.total(functional.masked_lm(logits, targets))
    theirs = modules.cross_entropy(logits, targets, reduction="sum")
    assert torch.equal(ours, theirs)
    assert torch.equal(*(torch.autograd.grad(loss, logits)[0] for loss in (ours, theirs)))


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_synonym_gain_and_its_gradient_are_finite_and_zero_without_synonyms(weight):
    """A model that is as sure as a float32 allows, of the gold word or of the synonym."""
    logits = torch.tensor([[0.0, 3e38], [3e38, 0.0], [0.0, 200.0], [3.0, 2.0]], requires_grad=True)
    targets, synonyms = torch.zeros(4, dtype=torch.long), torch.tensor([[1], [1], [1], [-1]])
    gain = functional.synonym_gain(logits, targets, synonyms, weight)
    gain.sum().backward()
    assert torch.isfinite(gain).all() and torch.isfinite(logits.grad).all()
    assert gain[3] == 0 and logits.grad[3].eq(0).all()
    if weight:
        assert logits.grad[0].tolist() == [-1, 1] and gain[2].item() == pytest.approx(200 + math.log(weight))
    else:
        assert gain.eq(0).all() and logits.grad.eq(0).all()


def test_synonym_gain_makes_the_gradient_that_of_the_total_probability():
    logits = torch.randn(5, 9, generator=torch.Generator().manual_seed(3), dtype=torch.float32).requires_grad_()
    targets, synonyms = torch.arange(5), torch.tensor([[5, 6], [7, -1], [8, 0], [-1, -1], [2, 3]])
    loss = (functional.masked_lm(logits, targets) - functional.synonym_gain(logits, targets, synonyms, 0.3)).sum()
    probabilities = logits.softmax(dim=1)
    naive = sum(
        -(probabilities[n, targets[n]] + sum(0.3 * probabilities[n, s] for s in row if s >= 0)).log()
        for n, row in enumerate(synonyms.tolist())
    )
    torch.testing.assert_close(loss, naive)
    torch.testing.assert_close(*(torch.autograd.grad(value, logits, retain_graph=True)[0] for value in (loss, naive)))


def test_sentence_kl_by_hand_and_by_direction():
    predicted = torch.log(torch.tensor([[0.75, 0.25]]))
    original = torch.log(torch.tensor([[0.5, 0.5]]))
    expected = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)  # KL(predicted || original)
    assert functional.sentence_kl(predicted, original).item() == pytest.approx(expected)
    assert functional.sentence_kl(original, predicted).item() != pytest.approx(expected)
    assert functional.sentence_kl(original + 5.0, original).item() == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_the_focal_loss_has_a_finite_gradient_for_a_sure_discriminator(gamma):
    logits = torch.tensor([[90.0, 90.0, -200.0]], requires_grad=True)
    is_replaced = torch.tensor([[True, False, False]])
    loss = functional.replaced_token_detection(logits, is_replaced)
    (functional.focal_weight(logits, is_replaced, gamma) * loss).sum().backward()
    assert logits.grad.tolist() == [[0.0, 1.0, 0.0]]


@pytest.mark.parametrize("precision", [torch.float16, torch.bfloat16])
def test_losses_in_half_precision_equal_those_in_float32(precision):
    hidden = 5 * torch.randn(4, 2_000, generator=torch.Generator().manual_seed(12)).to(precision)
    other, targets = hidden.flip(0), torch.tensor([1, 2, 3, 4])
    for loss in (
        lambda x, y: functional.masked_lm(x, targets),
        functional.soft_regularization,
        functional.sentence_kl,
        lambda x, y: functional.sentence_kl(x, y, temperature=3.0),
        lambda x, y: functional.replaced_token_detection(x, y > 0),
        lambda x, y: functional.focal_weight(x, y > 0, gamma=2.0),
        lambda x, y: functional.synonym_gain(x, targets, targets.flip(0).unsqueeze(1), weight=0.5),
    ):
        found = loss(hidden, other)
        assert found.dtype == torch.float32
        assert torch.equal(found, loss(hidden.float(), other.float()))


@pytest.mark.parametrize("zero", ["target", "prediction", "both"])
def test_soft_regularization_of_a_row_of_zeros_has_cost_1_and_no_gradient(zero):
    rows = {name: torch.tensor([[3.0, 4.0], [0.0, 2.0]]) for name in ("target", "prediction")}
    for name in rows if zero == "both" else [zero]:
        rows[name][0] = 0.0
    target, prediction = (rows[name].requires_grad_() for name in ("target", "prediction"))
    cost = functional.soft_regularization(target, prediction)
    assert cost.tolist() == [1.0, 0.0]
    cost.sum().backward()
    assert target.grad[0].eq(0).all() and prediction.grad[0].eq(0).all()
