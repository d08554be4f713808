import pytest
import torch
from criterion_steps import step
from helpers import WORDS, first_batch, synonyms_of


@pytest.mark.parametrize("merged", ["both", "inputs", "targets"])
def test_the_loss_is_that_of_plain_masked_lm_on_merged_words(build, synonym_table, merged):
    flags = ["--criterion", "mlm_merged_synonyms", "--synonym-table", synonym_table, "--merged", merged]
    task, model, criterion = build("bert", *flags)
    _, plain_model, plain = build("bert", "--criterion", "mlm")
    batch = first_batch(task)
    found = step(task, model.eval(), criterion, batch)

    index = task.dictionary.index
    first = torch.arange(len(task.dictionary))
    for word in WORDS:
        first[index(word)] = min(map(index, [word, *synonyms_of(word)]))
    text, targets = batch["net_input"]["src_tokens"], batch["target"]
    text, targets = (first[text] if merged != "targets" else text), (first[targets] if merged != "inputs" else targets)
    by_hand = {**batch, "target": targets, "net_input": {**batch["net_input"], "src_tokens": text}}
    expected = step(task, plain_model.eval(), plain, by_hand)
    unmerged = step(task, plain_model, plain, batch)
    assert torch.equal(found[0], expected[0]) and found[1] == expected[1]
    assert not torch.isclose(expected[0], unmerged[0])
