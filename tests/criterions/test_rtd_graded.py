import math

import pytest
import torch
from helpers import first_batch, synonyms_of

from tn_fairseq import objectives


def build_graded(build, table, *flags, family="electra"):
    flags = ["--criterion", "rtd_graded", "--synonym-table", table, "--generator-loss-weight", 0, *flags]
    return build(family, *flags)


def drawn_synonyms(task, model, batch):
    """The model's output, and where it drew a synonym of the gold word, token by token."""
    masked = batch["target"].ne(task.dictionary.pad())
    inputs = {key: batch[key] for key in ("masked_indices", "uniform_draws")}
    output = model.eval()(**batch["net_input"], masked_tokens=masked, target_tokens=batch["target"], **inputs)
    is_synonym = torch.zeros_like(masked)
    for (row, place), drawn in zip(masked.nonzero().tolist(), output.drawn_tokens.tolist()):
        gold = task.dictionary[batch["target"][row, place]]
        is_synonym[row, place] = task.dictionary[drawn] in synonyms_of(gold)
    assert is_synonym.any() and not is_synonym.equal(masked & output.is_replaced)
    return output, is_synonym


@pytest.mark.parametrize("grade", [0, 0.25, 0.75, 1])
def test_the_grade_is_the_target_of_a_drawn_synonym(build, synonym_table, grade):
    task, model, criterion = build_graded(build, synonym_table, "--rtd-synonym-grade", grade)
    batch = first_batch(task, size=40)
    output, is_synonym = drawn_synonyms(task, model, batch)
    loss, sample_size, log = criterion(model, batch)
    replaced = output.discriminator_logits.sigmoid()
    target = output.is_replaced.float()
    target[is_synonym] = grade
    tokens = batch["net_input"]["src_tokens"].ne(task.dictionary.pad())
    losses = -(target * replaced.log() + (1 - target) * (1 - replaced).log())[tokens]
    torch.testing.assert_close(loss / sample_size, 50 * losses.mean())
    # the log counts what is more replaced than original
    assert log["rtd_replaced"] == output.is_replaced.sum() - (is_synonym.sum() if grade <= 0.5 else 0)
    assert log["rtd_tokens"] == tokens.sum()


def test_a_part_of_a_word_has_no_synonyms(build, synonym_table):
    task, model, criterion = build_graded(build, synonym_table, "--sample-break-mode", "complete")
    batch = first_batch(task, size=40)
    criterion.continues_word[:] = True
    output, _ = drawn_synonyms(task, model, batch)
    loss, sample_size, _ = criterion(model, batch)
    tokens = batch["net_input"]["src_tokens"].ne(task.dictionary.pad())
    losses = objectives.replaced_token_detection(output.discriminator_logits, output.is_replaced)[tokens]
    torch.testing.assert_close(loss / sample_size, 50 * losses.mean())


def test_a_discriminator_learns_the_three_grades(build, synonym_table):
    """With logits as free parameters, the probabilities of "replaced" become 0, the grade, and 1."""
    task, model, criterion = build_graded(build, synonym_table, "--rtd-synonym-grade", 0.3)
    batch = first_batch(task, size=40)
    output, is_synonym = drawn_synonyms(task, model, batch)
    logits = torch.zeros_like(output.discriminator_logits, requires_grad=True)
    tokens = batch["net_input"]["src_tokens"].ne(task.dictionary.pad())
    forward = model.forward
    model.forward = lambda *args, **options: forward(*args, **options)._replace(discriminator_logits=logits)
    optimizer = torch.optim.SGD([logits], lr=0.1 * tokens.sum().item())
    for _ in range(60):
        optimizer.zero_grad()
        loss, sample_size, _ = criterion(model, batch)
        (loss / sample_size).backward()
        optimizer.step()
    learned = logits.detach().sigmoid()
    torch.testing.assert_close(learned[is_synonym], torch.full_like(learned[is_synonym], 0.3), atol=0.01, rtol=0)
    assert learned[output.is_replaced & ~is_synonym].min() > 0.95 and learned[tokens & ~output.is_replaced].max() < 0.05


@pytest.mark.parametrize("grade", [-0.5, 1.5, math.inf])
def test_a_grade_outside_0_and_1_is_refused(build, synonym_table, grade):
    with pytest.raises(SystemExit, match=f"^error: --rtd-synonym-grade must be between 0 and 1, not {grade}$"):
        build_graded(build, synonym_table, "--rtd-synonym-grade", grade)


def test_a_missing_table_is_refused(build):
    with pytest.raises(SystemExit, match="--criterion rtd_graded needs --synonym-table"):
        build("electra", "--criterion", "rtd_graded")
