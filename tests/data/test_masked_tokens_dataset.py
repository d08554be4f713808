import torch

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


def test_a_block_has_the_same_masks_and_draws_in_any_batch(build, dictionary):
    _, data = dataset(build, "--sample-break-mode", "complete")
    together = batch(data, range(8))
    masks = together["target"].ne(dictionary.pad()).sum(dim=1).tolist()
    draws = together["uniform_draws"].split(masks)
    for row in range(8):
        alone = batch(data, [row])
        length = alone["target"].size(1)
        assert torch.equal(alone["target"][0], together["target"][row, :length])
        assert torch.equal(alone["net_input"]["src_tokens"][0], together["net_input"]["src_tokens"][row, :length])
        assert torch.equal(alone["uniform_draws"], draws[row])


def test_blocks_are_shuffled_by_the_seed(build):
    _, data = dataset(build)
    order = data.ordered_indices().tolist()
    assert sorted(order) == list(range(len(data))) and order != sorted(order)
    assert dataset(build)[1].ordered_indices().tolist() == order
    assert dataset(build, "--seed", 2)[1].ordered_indices().tolist() != order


def test_an_empty_list_is_an_empty_batch(build):
    assert dataset(build)[1].collater([]) == {}


def test_no_block_is_left_out_of_the_batches(build):
    _, data = dataset(build)
    for count in (3, 8, 11, 16, len(data)):
        for limits in ({"max_sentences": 8}, {"max_tokens": 300}):
            indices = data.ordered_indices()[:count]
            batches = data.batch_by_size(indices, required_batch_size_multiple=8, **limits)
            assert [i for batch in batches for i in batch] == indices.tolist()
            assert all(len(batch) <= 9 for batch in batches)


class Blocks(list):
    @property
    def sizes(self):
        return [len(block) for block in self]


def test_special_symbols_including_mask_are_neither_masked_nor_drawn(dictionary):
    mask, first = dictionary.index("<mask>"), dictionary.nspecial
    special = [dictionary.bos(), dictionary.pad(), dictionary.eos(), mask]
    block = torch.tensor([dictionary.bos(), mask, *range(first, mask), mask, dictionary.eos()])
    blocks = Blocks([block] * 40)
    data = MaskedTokensDataset(
        blocks, dictionary, seed=1, mask_prob=1.0, leave_unmasked_prob=0.0, random_token_prob=1.0
    )
    got = batch(data, range(40))
    src_tokens, masked = got["net_input"]["src_tokens"], got["target"].ne(dictionary.pad())
    expected = ~torch.isin(block, torch.tensor(special))
    assert torch.equal(masked, expected.expand(40, -1))
    assert torch.equal(src_tokens[~masked], block[~expected].repeat(40))
    assert set(src_tokens[masked].tolist()) == set(range(first, mask))  # each is drawn at least once in 4,800 positions
