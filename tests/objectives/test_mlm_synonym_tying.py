import pytest
import torch
from criterion_steps import regularization
from helpers import FAMILIES, write_table

from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.objectives.functional import synonym_distance
from tn_fairseq.objectives.mlm_soft_reg import input_word_embeddings


@pytest.fixture
def table(data_bin, tmp_path):
    """noun3 has two more frequent synonyms, noun2 has one, and noun1 has only less frequent ones."""
    dictionary = load_dictionary(data_bin / "dict.txt")
    words = sorted(["noun1", "noun2", "noun3"], key=dictionary.index)
    rows = {word: [other for other in words if other != word] for word in words}
    return write_table(tmp_path / "three.safetensors", dictionary, rows), [dictionary.index(word) for word in words]


def build_tying(build, family, table, *flags):
    return build(family, "--criterion", "mlm_synonym_tying", "--synonym-table", table, *flags)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_term_is_the_distance_to_the_mean_of_the_more_frequent_synonyms(build, table, family):
    path, ids = table
    built = _, model, _ = build_tying(build, family, path, "--synonym-tying-weight", 7)
    found = regularization(built)
    first, second, third = input_word_embeddings(model).weight[ids]
    expected = ((second - first).square().sum() + (third - (first + second) / 2).square().sum()) / 2 / 2
    torch.testing.assert_close(found.log["synonym_distance"] / found.log["masked"], expected.detach())
    marginal = build(family, "--criterion", "mlm_synonym_marginal", "--synonym-table", path)
    difference = found.term - regularization(marginal).term
    torch.testing.assert_close(difference, 7 * expected * found.log["masked"])


def test_only_the_less_frequent_words_move_toward_the_others(build, table):
    path, ids = table
    _, model, criterion = built = build_tying(build, "bert", path)
    objective, weight = criterion.objective, input_word_embeddings(model).weight
    term = regularization(built).log["synonym_distance"]
    synonym_distance(weight, objective.tied, objective.partners, objective.starts).sum().backward()
    moved = weight.grad.abs().sum(dim=1).nonzero().squeeze(1).tolist()
    assert moved == ids[1:]
    with torch.no_grad():
        weight -= 0.1 * weight.grad
    assert regularization(built).log["synonym_distance"] < term
