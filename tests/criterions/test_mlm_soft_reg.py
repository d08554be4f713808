import pytest
import torch
from helpers import FAMILIES, first_batch

from tn_fairseq.criterions.mlm_soft_reg import input_word_embeddings


def regularization(built):
    """The masked positions and the regularization term, with its graph."""
    task, model, criterion = built
    batch = first_batch(task)
    captured = {}
    original = criterion.regularization

    def capture(model, sample, masked):
        captured["masked"] = masked
        captured["term"], logs = original(model, sample, masked)
        return captured["term"], logs

    criterion.regularization = capture
    torch.manual_seed(5)
    loss, sample_size, log = criterion(model.eval(), batch)
    return captured["term"], captured["masked"], loss, sample_size, log


def build_soft_reg(build, family, *flags):
    return build(family, "--criterion", "mlm_soft_reg", "--prediction-mode", "sample", *flags)


@pytest.mark.parametrize("family", FAMILIES)
def test_adds_one_minus_the_cosine_of_the_input_embeddings(build, family):
    built = build_soft_reg(build, family)
    term, masked, loss, _, log = regularization(built)
    weight = input_word_embeddings(built[1]).weight
    gold, predicted = weight[masked.targets], weight[masked.predictions]
    by_hand = sum(1 - torch.dot(e, r) / (e.norm() * r.norm()) for e, r in zip(gold, predicted) if r.norm() > 0)
    by_hand += (predicted.norm(dim=1) == 0).sum()  # RoBERTa's row for padding is zero, with cosine 0
    torch.testing.assert_close(term, by_hand)
    torch.testing.assert_close(log["soft_reg"], by_hand.detach())
    if family != "electra":
        torch.testing.assert_close(loss - term, log["nll"])


@pytest.mark.parametrize("family", FAMILIES)
def test_gradient_reaches_only_the_embedding_rows_of_gold_and_prediction(build, family):
    built = build_soft_reg(build, family)
    term, masked, *_ = regularization(built)
    term.backward()
    model = built[1]
    weight = input_word_embeddings(model).weight
    touched = set(weight.grad.abs().sum(dim=1).nonzero().flatten().tolist())
    rows = set(masked.targets.tolist()) | set(masked.predictions.tolist())
    assert touched and touched <= rows
    assert all(p.grad is None for p in model.parameters() if p is not weight)


def test_a_correct_prediction_has_no_cost_and_no_gradient(build):
    task, model, criterion = build_soft_reg(build, "bert")
    term, masked, *_ = regularization((task, model, criterion))
    same = masked._replace(predictions=masked.targets)
    weight = input_word_embeddings(model).weight
    term, _ = type(criterion).regularization(criterion, model, None, same)
    term.backward()
    assert term.item() == pytest.approx(0.0, abs=1e-4)
    assert weight.grad.abs().max() < 1e-4


@pytest.mark.parametrize("detach", ["target", "prediction"])
def test_detached_rows_get_no_gradient(build, detach):
    built = build_soft_reg(build, "bert", "--soft-reg-detach", detach)
    term, masked, *_ = regularization(built)
    term.backward()
    touched = set(input_word_embeddings(built[1]).weight.grad.abs().sum(dim=1).nonzero().flatten().tolist())
    free = masked.predictions if detach == "target" else masked.targets
    assert touched and touched <= set(free.tolist())


def test_weight_scales_only_the_term(build):
    plain, double = (regularization(build_soft_reg(build, "bert", "--soft-reg-weight", w)) for w in (1, 2))
    torch.testing.assert_close(double[0], 2 * plain[0])
    assert double[4]["nll"] == plain[4]["nll"] and double[3] == plain[3]
    assert double[4]["soft_reg"] == plain[4]["soft_reg"] * 2 / 2  # logged without its weight


def test_robertas_zero_row_for_padding_does_not_blow_up_the_gradient(build):
    task, model, criterion = build_soft_reg(build, "roberta")
    _, masked, *_ = regularization((task, model, criterion))
    all_padding = masked._replace(predictions=torch.full_like(masked.predictions, task.dictionary.pad()))
    model.zero_grad()
    term, _ = type(criterion).regularization(criterion, model, None, all_padding)
    term.backward()
    assert input_word_embeddings(model).weight.grad.abs().max() < 1e3
