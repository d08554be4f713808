import pytest
import torch
from criterion_steps import outputs
from helpers import first_batch, synonyms_of


@pytest.mark.parametrize("grade", [0, 0.25, 0.75, 1])
def test_the_grade_is_the_target_of_a_drawn_synonym(build, synonym_table, grade):
    flags = ["--criterion", "rtd_graded", "--synonym-table", synonym_table, "--rtd-synonym-grade", grade]
    built = task, model, criterion = build("electra", *flags, "--generator-loss-weight", 0)
    batch = first_batch(task, size=40)
    masked, output = outputs(built, batch)
    is_synonym = torch.zeros_like(masked)
    for (row, place), drawn in zip(masked.nonzero().tolist(), output.drawn_tokens.tolist()):
        is_synonym[row, place] = task.dictionary[drawn] in synonyms_of(task.dictionary[batch["target"][row, place]])
    assert is_synonym.any() and not is_synonym.equal(masked & output.is_replaced)
    loss, sample_size, log = criterion(model, batch)
    replaced = output.discriminator_logits.sigmoid()
    target = output.is_replaced.float().masked_fill(is_synonym, grade)
    tokens = batch["net_input"]["src_tokens"].ne(task.dictionary.pad())
    losses = -(target * replaced.log() + (1 - target) * (1 - replaced).log())[tokens]
    torch.testing.assert_close(loss / sample_size, 50 * losses.mean())
    # the log counts what is more replaced than original
    assert log["rtd_replaced"] == output.is_replaced.sum() - (is_synonym.sum() if grade <= 0.5 else 0)
    assert log["rtd_tokens"] == tokens.sum()
