import numpy as np
import pytest
import torch

from tn_fairseq.data.blocks import BlockDataset
from tn_fairseq.data.masked_tokens_dataset import MaskedTokensDataset


def dataset(build, *flags):
    task, _, _ = build("electra", *flags)
    task.load_dataset("train")
    return task, task.dataset("train")


def batch(data, indices):
    return data.collater([data[index] for index in indices])


def test_a_batch_is_the_text_masked(build, dictionary):
    task, data = dataset(build, "--sample-break-mode", "complete")
    got = batch(data, range(6))
    src_tokens, target = got["net_input"]["src_tokens"], got["target"]
    masked = target.ne(dictionary.pad())
    for row, index in enumerate(range(6)):
        original = torch.where(masked, target, src_tokens)[row]
        expected = data.blocks[index]
        assert torch.equal(original[: len(expected)], expected)
        assert original[len(expected) :].eq(dictionary.pad()).all()
        assert got["net_input"]["src_lengths"][row] == len(expected)
    assert src_tokens[:, 0].eq(dictionary.bos()).all()
    assert got["ntokens"] == src_tokens.ne(dictionary.pad()).sum() and got["nsentences"] == 6
    assert got["id"].tolist() == list(range(6))
    assert torch.equal(got["masked_indices"], masked.flatten().nonzero().squeeze(1))
    draws = got["uniform_draws"]
    assert draws.shape == (masked.sum(),) and draws.min() >= 0 and draws.max() < 1 and draws.dtype == torch.double
    assert target[masked].ge(dictionary.nspecial).all()  # special symbols are never targets
    kept = src_tokens[masked].eq(target[masked])
    assert src_tokens[masked][~kept].eq(task.mask_idx).all()


def test_masks_and_draws_depend_only_on_the_epoch_the_seed_and_the_block(build):
    def same(one, other):
        assert torch.equal(one["target"], other["target"]) == torch.equal(one["uniform_draws"], other["uniform_draws"])
        return torch.equal(one["target"], other["target"])

    _, data = dataset(build)
    _, again = dataset(build)
    _, reseeded = dataset(build, "--seed", 2)
    first = batch(data, range(8))
    batch(again, range(20, 30))  # earlier draws do not matter
    assert same(batch(again, range(8)), first)
    assert not same(batch(reseeded, range(8)), first)
    assert not same(batch(data, range(8, 16)), first)  # as in another worker
    data.set_epoch(2)
    assert not same(batch(data, range(8)), first)
    data.set_epoch(1)
    assert same(batch(data, range(8)), first)


MODES = [["none"], ["complete"], ["complete_doc"], ["segments"], ["none", "--document-attention"]]


@pytest.mark.parametrize("mode", MODES, ids="".join)
@pytest.mark.parametrize("words", [[], ["--mask-whole-words"]], ids=["", "words"])
def test_a_batch_is_masked_as_each_of_its_blocks_alone(build, dictionary, mode, words):
    _, data = dataset(build, "--sample-break-mode", *mode, *words, "--random-token-prob", 0.3)
    indices = [7, 0, len(data) - 1, 3]
    together = data.collater(indices)
    for row, index in enumerate(indices):
        alone, length = data.collater([index]), len(data.blocks[index])
        assert length == alone["ntokens"] == together["net_input"]["src_lengths"][row]
        for theirs, ours in ((together["target"], alone["target"]), *pairs_of_inputs(together, alone)):
            assert theirs[row, :length].equal(ours[0])
        text = torch.where(alone["target"] == dictionary.pad(), alone["net_input"]["src_tokens"], alone["target"])
        assert text[0].equal(data.blocks[index])
        assert together["net_input"]["src_tokens"][row, length:].eq(dictionary.pad()).all()
    assert data.collater([]) == {}


def pairs_of_inputs(one, other):
    """The model's inputs of two batches that have a value for each token."""
    names = one["net_input"].keys() - {"src_lengths", "layout"}
    assert names == other["net_input"].keys() - {"src_lengths", "layout"}
    return [(one["net_input"][name], other["net_input"][name]) for name in names]


@pytest.mark.parametrize("flags", [[], ["--sample-break-mode", "none", "--document-attention"]])
def test_a_batch_knows_its_padding_and_its_documents(build, dictionary, flags):
    _, data = dataset(build, *flags)
    got = data.collater(range(len(data)))
    lengths, tokens, documents, longest = got["net_input"]["layout"]
    is_token = got["net_input"]["src_tokens"] != dictionary.pad()
    assert lengths.equal(is_token.sum(dim=1)) and tokens == got["ntokens"] == is_token.sum()
    numbers = got["net_input"].get("documents", torch.zeros_like(is_token))
    counts = [row[here].unique(return_counts=True)[1] for row, here in zip(numbers, is_token)]
    assert documents == sum(map(len, counts)) and longest == torch.cat(counts).max()


def test_a_row_does_not_depend_on_its_neighbors_or_their_order(build, dictionary):
    """Masks, random tokens, draws and thresholds follow the block through shuffled batches of other sizes."""
    _, data = dataset(build, "--random-token-prob", 0.3)

    def rows(indices):
        got = data.collater(indices)
        row = torch.div(got["masked_indices"], got["target"].size(1), rounding_mode="floor")
        for number, (index, length) in enumerate(zip(indices, got["net_input"]["src_lengths"])):
            parts = got["net_input"]["src_tokens"][number, :length], got["target"][number, :length]
            yield (
                int(index),
                [*parts, got["uniform_draws"][row == number], got["mask_thresholds"][(row == number).numpy()].tolist()],
            )

    alone = {index: parts for number in range(len(data)) for index, parts in rows([number])}
    order = np.random.default_rng(1).permutation(len(data))
    for size in (3, 16, len(data)):
        for start in range(0, len(data), size):
            for index, parts in rows(order[start : start + size]):
                assert all(map(torch.equal, parts[:3], alone[index])) and parts[3] == alone[index][3]


class Repeated(BlockDataset):
    """Blocks of equal text, which make the shares of a batch exact to count."""

    def __init__(self, block, count):
        self.block, self.sizes = np.array(block), np.full(count, len(block))

    def rows(self, indices):
        return np.tile(self.block, (len(indices), 1)), self.sizes[indices]


def test_shares_are_those_of_bert(dictionary):
    """Chi-square tests of where masks are, what becomes of them, and which random tokens are drawn; p = 0.0001."""
    first, mask, count, width = dictionary.nspecial, dictionary.index("<mask>"), 20_000, 42
    block = [dictionary.bos(), *range(first, first + width - 2), dictionary.eos()]
    data = MaskedTokensDataset(
        Repeated(block, count), dictionary, seed=1, mask_prob=0.15, leave_unmasked_prob=0.1, random_token_prob=0.2
    )
    got = data.collater(range(count))
    masked = got["target"].ne(dictionary.pad()).numpy()
    counts = masked.sum(axis=0)
    assert counts[0] == counts[-1] == 0 and set(masked.sum(axis=1)) == {6}  # exactly, because 0.15 * 40 = 6
    # without replacement, counts vary less than independent ones, by 1 - 0.15; 39 degrees of freedom
    assert chi_square(counts[1:-1], np.full(40, 1 / 40)) / (1 - 0.15) * 39 / 40 < 81
    # two neighbors are both masked as often as any two positions: 6 / 40 * 5 / 39
    both = (masked[:, 1:-2] & masked[:, 2:-1]).sum()
    assert both == pytest.approx(count * 39 * 6 / 40 * 5 / 39, rel=0.015)
    src_tokens, target = got["net_input"]["src_tokens"].numpy()[masked], got["target"].numpy()[masked]
    size = mask - first
    kept, became_mask = src_tokens == target, src_tokens == mask
    random = ~kept & ~became_mask
    shares = np.array([0.1 + 0.2 / size, 0.7, 0.2 * (1 - 1 / size)])
    assert chi_square(np.array([kept.sum(), became_mask.sum(), random.sum()]), shares) < 18.4
    # every symbol but <mask> and the original equally often: distances from the original, modulo their number
    distances = np.bincount((src_tokens - target)[random] % size, minlength=size)
    assert (
        distances[0] == 0
        and chi_square(distances[1:], np.full(size - 1, 1 / (size - 1))) < size + 3.8 * (2 * size) ** 0.5
    )
    draws = got["uniform_draws"].numpy()
    assert chi_square(np.bincount((draws * 100).astype(int), minlength=100), np.full(100, 0.01)) < 99 + 3.8 * 198**0.5


def chi_square(counts, shares):
    expected = counts.sum() * shares
    return ((counts - expected) ** 2 / expected).sum()


def test_blocks_are_shuffled_by_the_seed(build):
    _, data = dataset(build)
    order = data.ordered_indices().tolist()
    assert sorted(order) == list(range(len(data))) and order != sorted(order)
    assert dataset(build)[1].ordered_indices().tolist() == order
    assert dataset(build, "--seed", 2)[1].ordered_indices().tolist() != order


def test_no_block_is_left_out_of_the_batches(build):
    _, data = dataset(build)
    for count in (3, 8, 11, 16, len(data)):
        for limits in ({"max_sentences": 8}, {"max_tokens": 300}):
            indices = data.ordered_indices()[:count]
            batches = data.batch_by_size(indices, required_batch_size_multiple=8, **limits)
            assert [i for batch in batches for i in batch] == indices.tolist()
            assert all(len(batch) <= 9 for batch in batches)


def test_special_symbols_including_mask_are_neither_masked_nor_drawn(dictionary):
    mask, first = dictionary.index("<mask>"), dictionary.nspecial
    special = [dictionary.bos(), dictionary.pad(), dictionary.eos(), mask]
    block = torch.tensor([dictionary.bos(), mask, *range(first, mask), mask, dictionary.eos()])
    blocks = Repeated(block.tolist(), 40)
    data = MaskedTokensDataset(
        blocks, dictionary, seed=1, mask_prob=1.0, leave_unmasked_prob=0.0, random_token_prob=1.0
    )
    got = batch(data, range(40))
    src_tokens, masked = got["net_input"]["src_tokens"], got["target"].ne(dictionary.pad())
    expected = ~torch.isin(block, torch.tensor(special))
    assert torch.equal(masked, expected.expand(40, -1))
    assert torch.equal(src_tokens[~masked], block[~expected].repeat(40))
    assert set(src_tokens[masked].tolist()) == set(range(first, mask))  # each is drawn at least once in 4,800 positions
