import pytest
import torch
from helpers import first_batch

from tn_fairseq.core.masked_prediction import ElectraOutput


@pytest.fixture
def electra(build):
    task, model, _ = build("electra")
    return task, model.eval(), first_batch(task)


def run(task, model, batch, **more) -> ElectraOutput:
    masked = batch["target"].ne(task.dictionary.pad())
    return model(**batch["net_input"], masked_tokens=masked, target_tokens=batch["target"], **more)


def test_only_the_embeddings_are_shared(electra):
    _, model, _ = electra
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    assert len(names) == len(set(map(id, model.parameters())))  # no duplicates
    embeddings = {name for name in names if "embedding" in name and not name.startswith("embeddings.")}
    # embeddings of size 128 fit the tiny discriminator without a projection; otherwise each encoder has its own
    assert embeddings == {f"generator.embedding_projection.{kind}" for kind in ("weight", "bias")}


def test_the_shared_embeddings_get_gradients_from_both_encoders_and_both_heads(electra):
    task, model, batch = electra
    output = run(task, model, batch)
    weight = model.embeddings.word_embeddings.weight
    for loss in (output.logits.float().logsumexp(-1).sum(), output.discriminator_logits.sum()):
        (gradient,) = torch.autograd.grad(loss, weight, retain_graph=True)
        assert gradient.abs().sum() > 0
    (none,) = torch.autograd.grad(
        output.discriminator_logits.sum(), model.generator_head.dense.weight, allow_unused=True
    )
    assert none is None  # no gradient flows through the draw from the discriminator to the generator


def test_one_pass_is_consistent(electra):
    task, model, batch = electra
    masked = batch["target"].ne(task.dictionary.pad())
    torch.manual_seed(2)
    output = run(task, model, batch)
    assert output.logits.shape == (masked.sum(), len(task.dictionary))
    assert torch.equal(output.is_replaced[masked], output.drawn_tokens.ne(batch["target"][masked]))
    assert not output.is_replaced[~masked].any()
    assert output.discriminator_logits.shape == masked.shape


def test_a_draw_that_hits_the_original_is_not_replaced(electra):
    task, model, batch = electra
    masked = batch["target"].ne(task.dictionary.pad())
    with torch.no_grad():  # a generator that always predicts the same word
        model.generator_head.bias[:] = -1e4
        model.generator_head.bias[50] = 1e4
    batch["target"] = torch.where(masked, 50, batch["target"])
    assert not run(task, model, batch).is_replaced.any()


def test_without_targets_it_is_a_masked_language_model(electra):
    task, model, batch = electra
    masked = batch["target"].ne(task.dictionary.pad())
    logits, extra = model(**batch["net_input"], masked_tokens=masked)
    assert extra is None
    torch.testing.assert_close(logits, run(task, model, batch).logits)
