import math

import pytest
import torch
from helpers import FAMILIES, MASKED_LM_ONLY, first_batch

from tn_fairseq.objectives import functional


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_is_that_of_divided_logits_and_the_log_that_of_plain_ones(build, family):
    flags = ["--mlm-temperature", 4, *MASKED_LM_ONLY[family]]
    task, model, criterion = build(family, "--criterion", "mlm_temperature", *flags)
    batch = first_batch(task)
    masked = batch["target"].ne(task.dictionary.pad())
    with torch.no_grad():
        logits, _ = model.eval()(**batch["net_input"], masked_tokens=masked)
    targets = batch["target"][masked]
    loss, sample_size, log = criterion(model, batch)
    rows = range(len(targets))
    torch.testing.assert_close(loss, -(logits / 4).log_softmax(dim=1)[rows, targets].sum())
    torch.testing.assert_close(log["nll"], -logits.log_softmax(dim=1)[rows, targets].sum())
    assert sample_size == len(targets)


def test_a_high_temperature_spreads_the_punishment_over_more_wrong_words():
    """The share of the gradient that falls on a likely wrong word, of probability 3/5, among four wrong words."""
    shares = []
    for temperature in (1, 2):
        logits = torch.tensor([[0.0, math.log(6.0), 0.0, 0.0, 0.0]], requires_grad=True)
        functional.masked_lm(logits / temperature, torch.tensor([0])).backward()
        shares.append(logits.grad[0, 1] / logits.grad[0, 1:].sum())
    assert shares[0].item() == pytest.approx(6 / 9)
    assert shares[1].item() == pytest.approx(6**0.5 / (6**0.5 + 3))
