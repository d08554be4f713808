import pytest
import torch
from criterion_steps import regularization
from helpers import FAMILIES

from tn_fairseq.objectives import functional


def build_kl(build, family, *flags):
    return build(family, "--criterion", "mlm_sent_kl", *flags)


def term(built):
    """A step with the tokens and hidden states that its term is computed from: the original, and the predicted."""
    criterion, hidden = built[2], []
    original = criterion.objective.encode

    def capture(model, sample, tokens):
        states = original(model, sample, tokens)
        if states.requires_grad:
            states.retain_grad()
        hidden.append((tokens, states))
        return states

    criterion.objective.encode = capture
    found = regularization(built)
    found.original, found.predicted = hidden
    found.h_s, found.h_p = (states for _, states in hidden)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_reads_the_original_sentence_and_the_one_with_predictions(build, family):
    built = task, _, _ = build_kl(build, family, "--sample-break-mode", "complete")
    found = term(built)
    original, predicted, where = found.original[0], found.predicted[0], found.masked.masked_tokens
    assert torch.equal(original[where], found.masked.targets)
    assert torch.equal(predicted[where], found.masked.predictions)
    assert torch.equal(original[~where], predicted[~where])
    assert not original.eq(task.mask_idx).any()
    positions = found.batch["net_input"]["src_tokens"].ne(task.dictionary.pad())
    assert not positions.all()  # padding does not count
    mean = functional.sentence_kl(found.h_p, found.h_s)[positions].mean()
    torch.testing.assert_close(found.term, mean * where.sum())
    torch.testing.assert_close(found.log["sent_kl"], found.term.detach())
    found.term.backward()
    assert found.h_p.grad.abs().sum() > 0 and not found.h_s.requires_grad


def test_gradient_reaches_h_s_with_sent_kl_grad_target(build):
    found = term(build_kl(build, "bert", "--sent-kl-grad-target"))
    found.term.backward()
    assert found.h_p.grad.abs().sum() > 0 and found.h_s.grad.abs().sum() > 0


def test_positions_masked_averages_over_the_masked_tokens(build):
    found = term(build_kl(build, "bert", "--sent-kl-positions", "masked"))
    at_masked = functional.sentence_kl(found.h_p, found.h_s)[found.masked.masked_tokens]
    torch.testing.assert_close(found.term, at_masked.sum())


def test_a_weight_of_0_draws_no_dropout_and_trains_nothing(build):
    built = _, model, criterion = build_kl(build, "electra", "--sent-kl-weight", 0, "--sent-kl-dropout")
    found = regularization(built)
    state = torch.get_rng_state()
    value, _ = criterion.objective.regularization(model.train(), found.batch, found.masked)
    assert value == 0 and not value.requires_grad and torch.equal(torch.get_rng_state(), state)
    model.requires_grad_(False)
    criterion.objective.regularization(model, found.batch, found.masked)


def test_temperature_and_weight(build):
    plain, hot, double = (
        term(build_kl(build, "bert", *flags)) for flags in ([], ["--sent-kl-temperature", 2], ["--sent-kl-weight", 2])
    )
    positions = plain.batch["net_input"]["src_tokens"].ne(1)
    mean = functional.sentence_kl(plain.h_p / 2, plain.h_s / 2)[positions].mean()
    torch.testing.assert_close(hot.term, mean * plain.masked.masked_tokens.sum())
    torch.testing.assert_close(double.term, 2 * plain.term)
    assert double.log["sent_kl"] == plain.log["sent_kl"]  # logged without its weight


@pytest.mark.parametrize("encoder, size", [("generator", 64), ("discriminator", 128)])
def test_electra_uses_the_chosen_encoder(build, encoder, size):
    assert term(build_kl(build, "electra", "--sent-kl-encoder", encoder)).h_s.shape[-1] == size


@pytest.mark.parametrize("flags", [[], ["--sent-kl-dropout"]])
@pytest.mark.parametrize("family", FAMILIES)
def test_perfect_predictions_have_no_divergence_unless_dropout_stays_on(build, family, flags):
    built = _, model, criterion = build_kl(build, family, *flags)
    found = regularization(built)
    assert not any(module.training for module in model.modules())
    perfect = found.masked._replace(predictions=found.masked.targets)
    value, _ = criterion.objective.regularization(model.train(), found.batch, perfect)
    assert (value.item() < 1e-5) == (not flags)
    assert all(module.training for module in model.modules())
