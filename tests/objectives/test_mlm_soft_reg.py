import pytest
import torch
from criterion_steps import regularization
from files import refused
from helpers import FAMILIES

from tn_fairseq.objectives.mlm_soft_reg import input_word_embeddings


def build_soft_reg(build, family, *flags):
    return build(family, "--criterion", "mlm_soft_reg", "--prediction-mode", "sample", *flags)


def rows_with_a_gradient(model) -> set[int]:
    return set(input_word_embeddings(model).weight.grad.abs().sum(dim=1).nonzero().flatten().tolist())


@pytest.mark.parametrize("family", FAMILIES)
def test_adds_one_minus_the_cosine_of_the_input_embeddings(build, family):
    built = _, model, _ = build_soft_reg(build, family)
    found = regularization(built)
    weight = input_word_embeddings(model).weight
    gold, predicted = weight[found.masked.targets], weight[found.masked.predictions]
    by_hand = sum(1 - torch.dot(e, r) / (e.norm() * r.norm()) for e, r in zip(gold, predicted) if r.norm() > 0)
    by_hand += (predicted.norm(dim=1) == 0).sum()  # RoBERTa's row for padding is zero, with cosine 0
    torch.testing.assert_close(found.term, by_hand)
    torch.testing.assert_close(found.log["soft_reg"], by_hand.detach())
    if family != "electra":
        torch.testing.assert_close(found.loss - found.term, found.log["nll"])
    found.term.backward()
    assert rows_with_a_gradient(model) <= {*found.masked.targets.tolist(), *found.masked.predictions.tolist()}
    assert rows_with_a_gradient(model) and all(p.grad is None for p in model.parameters() if p is not weight)


@pytest.mark.parametrize("detach", ["target", "prediction"])
def test_detached_rows_get_no_gradient(build, detach):
    built = _, model, _ = build_soft_reg(build, "bert", "--soft-reg-detach", detach)
    found = regularization(built)
    found.term.backward()
    free = found.masked.predictions if detach == "target" else found.masked.targets
    assert rows_with_a_gradient(model) and rows_with_a_gradient(model) <= set(free.tolist())


def test_weight_scales_only_the_term(build):
    plain, double = (regularization(build_soft_reg(build, "bert", "--soft-reg-weight", weight)) for weight in (1, 2))
    torch.testing.assert_close(double.term, 2 * plain.term)
    assert double.log["nll"] == plain.log["nll"] and double.sample_size == plain.sample_size
    assert double.log["soft_reg"] == plain.log["soft_reg"]  # logged without its weight


def test_only_synonyms_are_regularized(build, synonym_table, empty_table):
    """Restricting it to the false negatives adds up their distances; without any, nothing is added."""
    flags = ["--soft-reg-synonyms", "--synonym-table"]
    built = _, model, _ = build_soft_reg(build, "bert", *flags, synonym_table)
    found = regularization(built)
    weight, fired = input_word_embeddings(model).weight, found.masked.false_negative
    gold, predicted = weight[found.masked.targets[fired]], weight[found.masked.predictions[fired]]
    assert 0 < fired.sum() < len(fired)
    torch.testing.assert_close(found.term, (1 - torch.cosine_similarity(gold, predicted)).sum())
    assert regularization(build_soft_reg(build, "bert", *flags, empty_table)).term == 0
    assert "--synonym-table" in refused(build_soft_reg, build, "bert", "--soft-reg-synonyms")
