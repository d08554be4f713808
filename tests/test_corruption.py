import numpy as np
import pytest
import torch

from tn_fairseq import corruption

MASK, ORDINARY = 99, (4, 99)


def mask(tokens, maskable, seed=0, starts_word=None, mask_prob=0.15, leave_unmasked_prob=0.15, random_token_prob=0.0):
    numbers = corruption.masking_numbers(seed, 1, range(len(tokens)), [tokens.shape[1]] * len(tokens))
    return corruption.mask_tokens(
        tokens,
        corruption.masking_thresholds(maskable, numbers, starts_word),
        numbers,
        mask_index=MASK,
        mask_prob=mask_prob,
        leave_unmasked_prob=leave_unmasked_prob,
        random_token_prob=random_token_prob,
        random_token_range=ORDINARY,
    )


@pytest.fixture(scope="module")
def text():
    """800 rows of 128 tokens, each with <s> at the start and </s> at the end."""
    tokens = np.random.default_rng(1).integers(*ORDINARY, size=(800, 128))
    tokens[:, 0], tokens[:, -1] = 0, 2
    return tokens, tokens >= 4


@pytest.mark.parametrize("unchanged, random", [(0.15, 0.0), (0.1, 0.1)])  # as ELECTRA and BERT
def test_masking_over_100_000_tokens(text, unchanged, random):
    tokens, maskable = text
    corrupted, masked = mask(tokens, maskable, leave_unmasked_prob=unchanged, random_token_prob=random)
    assert not masked[~maskable].any() and np.array_equal(corrupted[~masked], tokens[~masked])
    # each row holds 126 maskable tokens, of which 18.9 are masked: 18 or 19
    assert set(masked.sum(axis=1)) == {18, 19}
    assert masked.sum() / maskable.sum() == pytest.approx(0.15, abs=0.001)
    became_mask, kept = corrupted[masked] == MASK, corrupted[masked] == tokens[masked]
    assert became_mask.mean() == pytest.approx(1 - unchanged - random, abs=0.01)
    assert kept.mean() == pytest.approx(unchanged + random / 95, abs=0.01)  # one in 95 random tokens is the original
    assert set(corrupted[masked][~became_mask & ~kept]) == (set(range(*ORDINARY)) if random else set())


def test_every_position_is_masked_equally_often():
    tokens = np.full((20_000, 10), 5)
    _, masked = mask(tokens, np.ones_like(tokens, dtype=bool), mask_prob=0.25)
    assert masked.mean(axis=0) == pytest.approx(np.full(10, 0.25), abs=0.015)


def test_numbers_of_a_block_depend_only_on_the_seed_the_epoch_and_the_block():
    together = corruption.masking_numbers(1, 2, [7, 3], [5, 8])
    alone = corruption.masking_numbers(1, 2, [7], [5])
    for name in together._fields:
        ours, theirs = getattr(together, name), getattr(alone, name)
        assert np.array_equal(ours[:1, :5] if ours.ndim == 2 else ours[:1], theirs)
        assert ours.min() >= 0 and ours.max() < 1 and len(np.unique(ours)) > ours.size / 2
        if ours.ndim == 2:
            assert (ours[0, 5:] == 0).all() and (ours[1] > 0).all()
    for other in ((2, 2, [7], [5]), (1, 3, [7], [5]), (1, 2, [8], [5])):
        assert not any(map(np.array_equal, corruption.masking_numbers(*other), alone))


def test_masking_by_hand():
    numbers = corruption.MaskingNumbers(
        rounding=np.array([0.5]),  # 0.5 * 5 + 0.5 = 3 of the five maskable positions
        order=np.array([[0.0, 0.9, 0.1, 0.2, 0.8, 0.3]]),  # the first is not maskable
        fate=np.array([[0.0, 0.0, 0.29, 0.3, 0.0, 0.5]]),
        token=np.array([[0.0, 0.0, 0.999, 0.0, 0.0, 0.0]]),
        draw=np.zeros((1, 6)),
    )
    thresholds = corruption.masking_thresholds(np.array([[False, True, True, True, True, True]]), numbers)
    # the positions in the order of their numbers become masked at (rank + 1 - 0.5) / 5
    assert thresholds[0].tolist() == pytest.approx([np.inf, 0.9, 0.1, 0.3, 0.7, 0.5])
    corrupted, masked = corruption.mask_tokens(
        np.array([[0, 11, 12, 13, 14, 15]]),
        thresholds,
        numbers,
        mask_index=MASK,
        mask_prob=0.5,
        leave_unmasked_prob=0.2,
        random_token_prob=0.3,
        random_token_range=ORDINARY,
    )
    assert masked.tolist() == [[False, False, True, True, False, True]]
    assert corrupted.tolist() == [[0, 11, 98, 13, 14, MASK]]  # random, unchanged, masked


def test_words_are_masked_with_all_of_their_pieces(text):
    tokens, maskable = text
    starts_word = np.random.default_rng(2).random(tokens.shape) < 0.6
    _, masked = mask(tokens, maskable, starts_word=starts_word)
    continued = maskable[:, 1:] & ~starts_word[:, 1:] & maskable[:, :-1]
    assert (masked[:, 1:] == masked[:, :-1])[continued].all()
    assert masked.sum() / maskable.sum() == pytest.approx(0.15, abs=0.003)
    assert not masked[~maskable].any()
    # a block may begin inside a word
    assert masked[:, 1][~starts_word[:, 1]].mean() == pytest.approx(0.15, abs=0.05)


def test_whole_words_by_hand():
    numbers = corruption.MaskingNumbers(
        rounding=np.array([0.25]),
        order=np.array([[0.0, 0.7, 0.1, 0.4, 0.2, 0.6]]),
        fate=np.zeros((1, 6)),
        token=np.zeros((1, 6)),
        draw=np.zeros((1, 6)),
    )
    maskable = np.array([[False, True, True, True, True, True]])
    starts_word = np.array([[True, False, False, True, False, True]])
    # the words: positions 1 and 2 (0.7), 3 and 4 (0.4), 5 (0.6)
    thresholds = corruption.masking_thresholds(maskable, numbers, starts_word)
    third, first, second = 2.75 / 3, 0.75 / 3, 1.75 / 3
    assert thresholds[0].tolist() == pytest.approx([np.inf, third, third, first, first, second])


def test_a_row_without_maskable_tokens_is_unchanged():
    tokens = np.array([[0, 2, 1, 1], [0, 7, 8, 2]])
    corrupted, masked = mask(tokens, tokens >= 4, mask_prob=0.99, leave_unmasked_prob=0.0)
    assert corrupted[0].tolist() == [0, 2, 1, 1] and not masked[0].any()
    assert masked[1].sum() in (1, 2)


def uniform(count, seed):
    return torch.rand(count, generator=torch.Generator().manual_seed(seed))


def test_draws_invert_the_cumulative_distribution():
    logits = torch.tensor([0.25, 0.0, 0.5, 0.25]).log().expand(6, 4)
    numbers = torch.tensor([0.0, 0.2499, 0.25, 0.7499, 0.75, 0.99999994], dtype=torch.float64)
    assert corruption.draw_replacements(logits, uniform=numbers).tolist() == [0, 0, 2, 2, 3, 3]


def test_without_numbers_torchs_generator_is_used():
    logits = torch.randn(50, 20)
    torch.manual_seed(7)
    numbers = torch.rand(50)
    torch.manual_seed(7)
    assert torch.equal(corruption.draw_replacements(logits), corruption.draw_replacements(logits, uniform=numbers))


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_the_temperature_divides_the_logits(temperature):
    logits, numbers = torch.randn(1, 50).expand(1_000, -1), uniform(1_000, seed=6)
    drawn = corruption.draw_replacements(logits, temperature, numbers)
    assert torch.equal(drawn, corruption.draw_replacements(logits / temperature, uniform=numbers))


def test_draws_in_half_precision_equal_those_in_float32():
    logits = torch.randn(1, 30_522, generator=torch.Generator().manual_seed(7)).bfloat16().expand(500, -1)
    numbers = uniform(500, seed=8)
    drawn = corruption.draw_replacements(logits, uniform=numbers)
    assert torch.equal(drawn, corruption.draw_replacements(logits.float(), uniform=numbers))
    assert len(drawn.unique()) > 400


def test_draws_are_scaled_to_the_sum_of_the_rounded_probabilities():
    logits = torch.randn(1, 30_522, generator=torch.Generator().manual_seed(9))
    cumulative = logits.softmax(-1).cumsum(-1)[0]
    assert cumulative[-1] != 1
    numbers = uniform(4_000, seed=10)
    expected = [(cumulative <= number * cumulative[-1]).sum().item() for number in numbers]
    drawn = [corruption.draw_replacements(logits.expand(500, -1), uniform=some) for some in numbers.split(500)]
    assert torch.cat(drawn).tolist() == expected


def test_a_number_that_rounds_to_1_draws_the_last_token():
    drawn = corruption.draw_replacements(torch.zeros(1, 4), uniform=torch.tensor([1 - 2.0**-30], dtype=torch.float64))
    assert drawn.tolist() == [3]


def test_exact_sums_do_not_depend_on_the_order_of_additions():
    probabilities = torch.randn(3, 30_522, generator=torch.Generator().manual_seed(11)).softmax(-1)
    cumulative = corruption.exact_cumsum(probabilities)
    backwards = corruption.exact_cumsum(probabilities.flip(-1))
    assert torch.equal(cumulative[:, -1], backwards[:, -1])
    assert torch.equal(cumulative, cumulative.round()) and cumulative.max() > 2.0**39  # integers
    in_units = torch.full_like(cumulative, 2.0**40)
    torch.testing.assert_close(cumulative / in_units, probabilities.double().cumsum(-1), atol=1e-7, rtol=0)


def test_draws_have_no_gradient_and_may_be_empty():
    assert not corruption.draw_replacements(torch.randn(3, 4, requires_grad=True)).requires_grad
    assert corruption.draw_replacements(torch.empty(0, 4)).shape == (0,)


def test_fill_in_and_original_tokens():
    src_tokens = torch.tensor([[0, MASK, 6, 2], [0, 7, MASK, 2]])
    targets = torch.tensor([[1, 5, 1, 1], [1, 7, 8, 1]])  # 1 is padding: not masked; 7 was masked and left unchanged
    masked = targets.ne(1)
    assert corruption.original_tokens(src_tokens, targets, masked).tolist() == [[0, 5, 6, 2], [0, 7, 8, 2]]
    assert corruption.take_masked(src_tokens, masked).tolist() == [MASK, 7, MASK]
    assert corruption.take_masked(src_tokens, masked, torch.tensor([1, 5, 6])).tolist() == [MASK, 7, MASK]
    filled = corruption.fill_in(src_tokens, masked, torch.tensor([10, 11, 12]))
    assert filled.tolist() == [[0, 10, 6, 2], [0, 11, 12, 2]]
    assert src_tokens[0, 1] == MASK  # the batch itself is unchanged
