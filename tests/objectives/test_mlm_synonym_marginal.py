import math

import pytest
import torch
from criterion_steps import regularization
from helpers import MASKED_LM_ONLY, first_batch, synonyms_of


def build_marginal(build, family, table, *flags):
    """The task masks words only, and every block ends with </s>."""
    flags = ["--task", "electra", "--sample-break-mode", "complete", *flags]
    return build(family, "--criterion", "mlm_synonym_marginal", "--synonym-table", table, *flags)


def expectation(built, weight, has_synonyms):
    """-log of the summed probability at each masked position, one synonym at a time."""
    task, model, _ = built
    batch = first_batch(task)
    masked = batch["target"].ne(task.dictionary.pad())
    logits, _ = model.eval()(**batch["net_input"], masked_tokens=masked)
    losses = []
    for probabilities, target in zip(logits.softmax(dim=-1), batch["target"][masked].tolist()):
        word = task.dictionary[target]
        synonyms = synonyms_of(word) if has_synonyms(word) else []
        total = probabilities[target] + sum(weight * probabilities[task.dictionary.index(other)] for other in synonyms)
        losses.append(-total.log())
    return torch.stack(losses)


@pytest.mark.parametrize("family, weight", [("electra", 1), ("bert", 0.25), ("roberta", 1)])
def test_the_loss_is_that_of_the_summed_probability(build, synonym_table, family, weight):
    flags = ["--synonym-weight", weight, *MASKED_LM_ONLY[family]]
    built = task, model, criterion = build_marginal(build, family, synonym_table, *flags)
    expected = expectation(built, weight, has_synonyms=lambda word: True)
    loss, sample_size, log = criterion(model, first_batch(task))
    torch.testing.assert_close(loss, expected.sum())
    assert sample_size == len(expected)
    torch.testing.assert_close(log["nll"] - log["synonym_gain"], expected.detach().sum())
    # an untrained model gives ten synonyms about the same probability
    assert log["synonym_gain"] / log["masked"] == pytest.approx(math.log(1 + 9 * weight), rel=0.25)


def test_a_part_of_a_word_has_no_synonyms(build, synonym_table):
    built = task, model, criterion = build_marginal(build, "bert", synonym_table)
    criterion.objective.continues_word[:] = True
    expected = expectation(built, 1, has_synonyms=lambda word: False)
    loss, _, log = criterion(model, first_batch(task))
    torch.testing.assert_close(loss, expected.sum())
    assert log["synonym_gain"] == 0


@pytest.mark.parametrize("weight", [0, 1])
def test_the_synonyms_get_the_gradient_of_right_answers(build, synonym_table, weight):
    built = _, _, criterion = build_marginal(build, "bert", synonym_table, "--synonym-weight", weight)
    found = regularization(built)
    found.loss.backward()
    of_synonyms = found.masked.logits.grad.gather(1, criterion.objective.synonyms[found.masked.targets].long())
    assert (of_synonyms < 0 if weight else of_synonyms > 0).all()  # a step raises or lowers their logits
