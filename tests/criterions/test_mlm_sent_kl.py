import pytest
import torch
from helpers import FAMILIES, first_batch

from tn_fairseq import objectives
from tn_fairseq.criterions.base import MaskedPredictions


def term(built, seed=5):
    """The sentence-KL term, the hidden states it is computed from (predicted last), and the log."""
    task, model, criterion = built
    hidden, original = [], criterion.encode

    def capture(model, sample, tokens):
        states = original(model, sample, tokens)
        if states.requires_grad:
            states.retain_grad()
        hidden.append((tokens, states))
        return states

    criterion.encode = capture
    captured = {}
    regularization = criterion.regularization

    def keep(*args):
        captured["term"], logs = regularization(*args)
        captured["masked"] = args[2]
        return captured["term"], logs

    criterion.regularization = keep
    batch = first_batch(task)
    torch.manual_seed(seed)
    *_, log = criterion(model.eval(), batch)
    return captured["term"], captured["masked"], hidden, batch, log


def build_kl(build, family, *flags):
    return build(family, "--criterion", "mlm_sent_kl", *flags)


@pytest.mark.parametrize("family", FAMILIES)
def test_reads_the_original_sentence_and_the_one_with_predictions(build, family):
    built = build_kl(build, family, "--sample-break-mode", "complete")
    value, masked, ((original, h_s), (predicted, h_p)), batch, log = term(built)
    where = masked.masked_tokens
    assert torch.equal(original[where], masked.targets) and torch.equal(predicted[where], masked.predictions)
    assert torch.equal(original[~where], predicted[~where])
    assert not original.eq(built[0].mask_idx).any()
    positions = batch["net_input"]["src_tokens"].ne(built[0].dictionary.pad())
    assert not positions.all()  # padding does not count
    mean = objectives.sentence_kl(h_p, h_s)[positions].mean()
    torch.testing.assert_close(value, mean * where.sum())
    torch.testing.assert_close(log["sent_kl"], value.detach())


@pytest.mark.parametrize("family", FAMILIES)
def test_gradient_reaches_h_p_and_not_h_s(build, family):
    value, _, ((_, h_s), (_, h_p)), *_ = term(build_kl(build, family))
    value.backward()
    assert h_p.grad.abs().sum() > 0
    assert not h_s.requires_grad


def test_gradient_reaches_h_s_with_sent_kl_grad_target(build):
    value, _, ((_, h_s), (_, h_p)), *_ = term(build_kl(build, "bert", "--sent-kl-grad-target"))
    value.backward()
    assert h_p.grad.abs().sum() > 0 and h_s.grad.abs().sum() > 0


def test_positions_masked_averages_over_the_masked_tokens(build):
    value, masked, ((_, h_s), (_, h_p)), *_ = term(build_kl(build, "bert", "--sent-kl-positions", "masked"))
    at_masked = objectives.sentence_kl(h_p, h_s)[masked.masked_tokens]
    torch.testing.assert_close(value, at_masked.sum())


def test_temperature_and_weight(build):
    plain = term(build_kl(build, "bert"))
    hot = term(build_kl(build, "bert", "--sent-kl-temperature", 2))
    double = term(build_kl(build, "bert", "--sent-kl-weight", 2))
    (_, h_s), (_, h_p) = plain[2]
    positions = plain[3]["net_input"]["src_tokens"].ne(1)
    mean = objectives.sentence_kl(h_p / 2, h_s / 2)[positions].mean()
    torch.testing.assert_close(hot[0], mean * plain[1].masked_tokens.sum())
    torch.testing.assert_close(double[0], 2 * plain[0])
    assert double[4]["sent_kl"] == plain[4]["sent_kl"]  # logged without its weight


def test_electra_uses_the_chosen_tower(build):
    for tower, size in (("generator", 64), ("discriminator", 128)):
        *_, ((_, h_s), _), _, _ = term(build_kl(build, "electra", "--sent-kl-encoder", tower))
        assert h_s.shape[-1] == size


def test_perfect_predictions_have_no_divergence(build):
    task, model, criterion = build_kl(build, "bert")
    _, masked, _, batch, _ = term((task, model, criterion))
    perfect = masked._replace(predictions=masked.targets)
    value, _ = type(criterion).regularization(criterion, model, batch, perfect)
    assert value.item() == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_perfect_predictions_have_no_divergence_in_training_unless_dropout_stays_on(build, family):
    for flags, free in (([], True), (["--sent-kl-dropout"], False)):
        task, model, criterion = build_kl(build, family, *flags)
        batch = first_batch(task)
        masked_tokens = batch["target"].ne(task.dictionary.pad())
        targets = batch["target"][masked_tokens]
        perfect = MaskedPredictions(
            masked_tokens, targets, None, targets, is_synonym=None, false_negative=None, logits=None
        )
        value, _ = criterion.regularization(model.train(), batch, perfect)
        assert (value.item() < 1e-5) == free
        assert model.training and all(module.training for module in model.modules())


def test_a_temperature_must_be_positive(build):
    with pytest.raises(SystemExit, match="--sent-kl-temperature"):
        build_kl(build, "bert", "--sent-kl-temperature", 0)
