"""Masked prediction: words, their parts, and false negatives."""

import torch

from tn_fairseq.core import corruption
from tn_fairseq.core.masked_prediction import complete_words, false_negatives, masked_predictions

PADDING, MASK = 9, 8


def test_a_token_that_the_next_one_continues_is_not_a_complete_word():
    continues_word = torch.tensor([False, False, True, False, True])
    tokens = torch.tensor([[3, 2, 4, 0], [3, 0, 3, 2], [2, 3, 0, 1], [0, 3, 3, 4]])
    expected = [[9, 9, 4, 0], [3, 0, 9, 2], [2, 3, 0, 1], [0, 3, 9, 4]]  # the last one of a block is complete
    assert complete_words(tokens, continues_word, padding=9).tolist() == expected
    assert complete_words(tokens[:, :1], continues_word, padding=9).tolist() == [[3], [3], [2], [0]]
    assert complete_words(tokens[:0], continues_word, padding=9).shape == (0, 4)


def test_false_negatives_are_synonyms_of_the_target_and_never_the_target_itself():
    table = torch.full((6, 2), -1, dtype=torch.int32)
    table[4, 0], table[4, 1], table[5, 0] = 5, 3, 4
    targets = torch.tensor([4, 4, 4, 5, 5, 3])
    predictions = torch.tensor([5, 3, 4, 4, 3, 4])
    expected = [True, True, False, True, False, False]  # the table is read only in the row of the gold token
    assert false_negatives(predictions, targets, table).tolist() == expected


def test_the_text_before_masking_is_restored_and_a_part_of_a_word_has_no_word():
    """Two sequences, of which the second is shorter; token 4 continues the word before it."""
    text = torch.tensor([[3, 5, 4, 6], [5, 3, PADDING, PADDING]])
    masked_tokens = torch.tensor([[True, True, False, True], [True, False, False, False]])
    src_tokens, target_tokens = text.masked_fill(masked_tokens, MASK), text.masked_fill(~masked_tokens, PADDING)
    continues_word = torch.arange(10) == 4
    logits = torch.eye(10)[[3, 6, 5, 6]]
    batch = src_tokens, target_tokens, masked_tokens, logits, logits.argmax(dim=1), PADDING
    found = masked_predictions(*batch, continues_word)
    assert torch.equal(found.text, text)
    assert found.targets.tolist() == [3, 5, 6, 5]
    assert found.words.tolist() == [3, PADDING, 6, 5]
    assert torch.equal(found.targets, corruption.take_masked(found.text, masked_tokens))
    # the places of a batch can be known before
    indexed = masked_predictions(*batch, continues_word, masked_tokens.flatten().nonzero().squeeze(1))
    assert all(torch.equal(*pair) for pair in zip(found[:-3], indexed[:-3]))
    # without a table, there are no words
    without = masked_predictions(*batch)
    assert without.words is None and torch.equal(without.targets, found.targets)


def test_scattered_values_are_those_of_the_masked_positions():
    masked_tokens = torch.tensor([[False, True, True], [True, False, False]])
    text = torch.zeros(2, 3, dtype=torch.long)
    predictions = torch.zeros(3, dtype=torch.long)
    found = masked_predictions(text, text, masked_tokens, torch.zeros(3, 10), predictions, PADDING)
    values = torch.tensor([True, False, True])
    scattered = found.scatter(values)
    assert scattered.tolist() == [[False, True, False], [True, False, False]]
    assert torch.equal(corruption.take_masked(scattered, masked_tokens), values)
