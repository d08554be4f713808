import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tn_fairseq.core import corruption
from tn_fairseq.core.corruption import Kind, block_keys, corrupt, masking_thresholds, random_bits, to_uniform

MASK, ORDINARY = 99, (4, 99)


def numbers_of(seed, epoch, blocks, width, kind):
    """The random bits at all positions of blocks, (B, T)."""
    return random_bits(block_keys(seed, epoch, np.asarray(blocks))[:, None], kind, np.arange(width))


def mask(tokens, maskable, seed=0, starts_word=None, mask_prob=0.15, leave_unmasked_prob=0.15, random_token_prob=0.0):
    bits = {kind: numbers_of(seed, 1, range(len(tokens)), tokens.shape[1], kind) for kind in Kind}
    rounding = to_uniform(bits[Kind.ROUNDING][:, 0])
    masked = masking_thresholds(maskable, bits[Kind.ORDER], rounding, mask_prob, starts_word) <= mask_prob
    corrupted = tokens.copy()
    corrupted[masked] = corrupt(
        tokens[masked],
        to_uniform(bits[Kind.FATE][masked]),
        to_uniform(bits[Kind.TOKEN][masked]),
        mask_index=MASK,
        leave_unmasked_prob=leave_unmasked_prob,
        random_token_prob=random_token_prob,
        random_token_range=ORDINARY,
    )
    return corrupted, masked


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


@pytest.mark.parametrize("mask_prob", [0.15, 0.4, 0.99])
def test_thresholds_do_not_depend_on_the_largest_share(text, mask_prob):
    _, maskable = text
    order, rounding = (numbers_of(3, 1, range(800), 128, kind) for kind in (Kind.ORDER, Kind.ROUNDING))
    complete = masking_thresholds(maskable, order, to_uniform(rounding[:, 0]), 1.0)
    assert np.array_equal(np.isfinite(complete), maskable)
    partial = masking_thresholds(maskable, order, to_uniform(rounding[:, 0]), mask_prob)
    assert np.array_equal(partial, np.where(complete <= mask_prob, complete, np.inf))


def test_numbers_of_a_block_depend_only_on_the_seed_the_epoch_and_the_block():
    for kind in Kind:
        together = numbers_of(1, 2, [7, 3], 8, kind)
        assert np.array_equal(together[:1, :5], numbers_of(1, 2, [7], 5, kind))
        for other in ((2, 2, 7), (1, 3, 7), (1, 2, 8), (2, 1, 7)):
            assert not np.isin(numbers_of(*other[:2], [other[2]], 8, kind), together).any()
    assert len(np.unique([numbers_of(1, 2, [7, 3], 8, kind) for kind in Kind])) == len(Kind) * 16


def test_numbers_are_those_of_splitmix64():
    # the first outputs for the seed 1234567, as in https://rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    expected += [16408922859458223821]
    keys = np.array([1234567], dtype=np.uint64)
    assert [random_bits(keys, kind, np.zeros(1)).item() for kind in Kind] == expected
    # Python's integers do not overflow
    assert block_keys(5, 2, np.array([7]))[0] == output(output(output(5) + 2) + 7)
    state = 1234567 + 9 * 5 * 0x9E3779B97F4A7C15
    assert random_bits(keys, Kind.ROUNDING, np.array([9])).item() == output(state)


def output(state):
    """The first output of SplitMix64, with Python's integers."""
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ state >> 27) * 0x94D049BB133111EB % 2**64
    return state ^ state >> 31


def test_uniform_numbers_are_the_first_digits():
    bits = np.array([0, 1 << 63, (1 << 64) - 1], dtype=np.uint64)
    assert to_uniform(bits).tolist() == [0, 0.5, 1 - 2.0**-53]
    assert to_uniform(bits, digits=24).astype(np.float32).tolist() == [0, 0.5, 1 - 2.0**-24]


def chi_square_of(numbers, cells=16):
    """How far numbers in [0, 1), (N, ...), are from uniform and independent: standard deviations of a chi-square."""
    cell = np.zeros(numbers.shape[1:], dtype=int)
    for one in numbers:
        cell = cell * cells + (one * cells).astype(int)
    counts = np.bincount(cell.ravel(), minlength=cells ** len(numbers))
    expected = cell.size / len(counts)
    return (((counts - expected) ** 2).sum() / expected - (len(counts) - 1)) / np.sqrt(2 * (len(counts) - 1))


@pytest.mark.parametrize(
    "other",
    [
        *[{"seed": 2}, {"seed": 2**32 - 1}, {"epoch": 2}, {"block": 1}, {"block": 128}, {"position": 1}],
        *[{"position": 2}, *({"kind": kind} for kind in Kind if kind != Kind.ORDER)],
        # the same numbers in other places
        *[{"seed": 2, "epoch": -1}, {"epoch": 2, "block": -1}, {"block": 1, "position": -5}],
    ],
    ids=str,
)
def test_numbers_are_uniform_and_independent_of_the_neighboring_ones(other):
    """Each pair of numbers falls equally often in each of 16 x 16 squares."""

    def numbers(seed=0, epoch=0, block=0, position=0, kind=Kind.ORDER):
        keys = block_keys(1 + seed, 1 + epoch, 1 + block + np.arange(4_000))
        return to_uniform(random_bits(keys[:, None], kind, 5 + position + np.arange(100)))

    assert abs(chi_square_of(np.stack([numbers(), numbers(**other)]))) < 4
    assert abs(chi_square_of(numbers(**other)[None], cells=1000)) < 4


def test_masking_by_hand():
    order = as_bits([[0.0, 0.9, 0.1, 0.2, 0.8, 0.3]])  # the first is not maskable
    maskable = np.array([[False, True, True, True, True, True]])
    # 0.5 * 5 + 0.5 = 3 of the five maskable positions
    thresholds = masking_thresholds(maskable, order, np.array([0.5]), largest=1.0)
    # the positions in the order of their numbers become masked at (rank + 1 - 0.5) / 5
    assert thresholds[0].tolist() == pytest.approx([np.inf, 0.9, 0.1, 0.3, 0.7, 0.5])
    half = masking_thresholds(maskable, order, np.array([0.5]), largest=0.5)
    assert half[0].tolist() == pytest.approx([np.inf, np.inf, 0.1, 0.3, np.inf, 0.5])
    corrupted = corrupt(
        np.array([12, 13, 15]),
        np.array([0.29, 0.3, 0.5]),
        np.array([0.999, 0.0, 0.0]),
        mask_index=MASK,
        leave_unmasked_prob=0.2,
        random_token_prob=0.3,
        random_token_range=ORDINARY,
    )
    assert corrupted.tolist() == [98, 13, MASK]  # random, unchanged, masked


def as_bits(numbers):
    """The random bits of numbers in [0, 1)."""
    return (np.array(numbers) * 2.0**64).astype(np.uint64)


def test_words_are_masked_with_all_of_their_pieces(text):
    tokens, maskable = text
    starts_word = np.random.default_rng(2).random(tokens.shape) < 0.6
    _, masked = mask(tokens, maskable, seed=1, starts_word=starts_word)
    continued = maskable[:, 1:] & ~starts_word[:, 1:] & maskable[:, :-1]
    assert (masked[:, 1:] == masked[:, :-1])[continued].all()
    assert masked.sum() / maskable.sum() == pytest.approx(0.15, abs=0.003)
    assert not masked[~maskable].any()
    # a block may begin inside a word
    assert masked[:, 1][~starts_word[:, 1]].mean() == pytest.approx(0.15, abs=0.05)


def test_whole_words_by_hand():
    order = as_bits([[0.0, 0.7, 0.1, 0.4, 0.2, 0.6]])
    maskable = np.array([[False, True, True, True, True, True]])
    starts_word = np.array([[True, False, False, True, False, True]])
    # the words: positions 1 and 2 (0.7), 3 and 4 (0.4), 5 (0.6)
    thresholds = masking_thresholds(maskable, order, np.array([0.25]), 1.0, starts_word)
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


@pytest.mark.parametrize("symbols", [30_522, 256, 129, 128, 127, 2])
def test_draws_are_scaled_to_the_sum_of_the_rounded_probabilities(symbols):
    """A token is drawn from a group of tokens; there may be one group, and the last one may be smaller or empty."""
    logits = torch.randn(1, symbols, generator=torch.Generator().manual_seed(9))
    cumulative = logits.softmax(-1).double().cumsum(-1)[0]
    assert symbols < 100 or cumulative[-1] != 1
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
    assert cumulative.dtype == torch.int64 and cumulative.max() > 2.0**39
    torch.testing.assert_close(
        cumulative / torch.tensor(2.0**40, dtype=torch.float64), probabilities.double().cumsum(-1), atol=1e-7, rtol=0
    )


def test_apples_gpus_which_have_no_float64_get_their_draws_from_the_cpu():
    with FakeTensorMode():  # tensors without memory; what runs on this device fails, because torch lacks it here
        drawn = corruption.draw_replacements(torch.empty(3, 1_000, device="mps"))
    assert drawn.device.type == "mps" and drawn.shape == (3,)


def test_draws_from_nan_are_tokens_of_the_dictionary():
    for symbols in (4, 127, 129):
        drawn = corruption.draw_replacements(torch.full((3, symbols), torch.nan))
        assert ((drawn >= 0) & (drawn < symbols)).all()


def test_draws_have_no_gradient_and_may_be_empty():
    assert not corruption.draw_replacements(torch.randn(3, 4, requires_grad=True)).requires_grad
    assert corruption.draw_replacements(torch.empty(0, 4)).shape == (0,)


def test_take_masked_and_fill_in():
    src_tokens = torch.tensor([[0, MASK, 6, 2], [0, 7, MASK, 2]])
    targets = torch.tensor([[1, 5, 1, 1], [1, 7, 8, 1]])  # 1 is padding: not masked; 7 was masked and left unchanged
    masked = targets.ne(1)
    assert corruption.take_masked(src_tokens, masked).tolist() == [MASK, 7, MASK]
    assert corruption.take_masked(src_tokens, masked, torch.tensor([1, 5, 6])).tolist() == [MASK, 7, MASK]
    filled = corruption.fill_in(src_tokens, masked, torch.tensor([10, 11, 12]))
    assert filled.tolist() == [[0, 10, 6, 2], [0, 11, 12, 2]]
    assert src_tokens[0, 1] == MASK  # the batch itself is unchanged
