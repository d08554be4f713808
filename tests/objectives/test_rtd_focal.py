import pytest
import torch
from criterion_steps import outputs
from helpers import first_batch


@pytest.mark.parametrize("gamma", [0.5, 3])
def test_the_loss_of_each_token_is_scaled_by_the_probability_of_the_wrong_answer(build, gamma):
    flags = ["--criterion", "rtd_focal", "--rtd-focal-gamma", gamma, "--generator-loss-weight", 0]
    built = task, model, criterion = build("electra", *flags, "--sample-break-mode", "complete")
    batch = first_batch(task)
    with torch.no_grad():
        model.discriminator_head.output.weight.mul_(30)  # far from 50%
    _, output = outputs(built, batch)
    replaced = output.discriminator_logits.sigmoid()
    right = torch.where(output.is_replaced, replaced, 1 - replaced)
    tokens = batch["net_input"]["src_tokens"].ne(task.dictionary.pad())
    assert not tokens.all()
    expected = (-((1 - right) ** gamma) * right.log())[tokens].mean()
    loss, sample_size, log = criterion(model, batch)
    torch.testing.assert_close(loss / sample_size, 50 * expected)
    torch.testing.assert_close(log["rtd_loss"] / log["rtd_tokens"], expected.detach())
    assert log["rtd_replaced"] == output.is_replaced.sum()
