import shutil
from types import SimpleNamespace

import pytest
import torch
from files import refused
from helpers import first_batch, write_data_bin, write_split
from interruption import assert_equal

from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.tasks.electra import ElectraTask


def test_electras_defaults(build):
    cfg = build("electra")[0].cfg
    assert (cfg.mask_prob, cfg.leave_unmasked_prob, cfg.random_token_prob) == (0.15, 0.15, 0.0)
    assert str(cfg.sample_break_mode) == "segments"
    assert cfg.final_mask_prob is None and not cfg.mask_whole_words and not cfg.document_attention


def test_break_mode_none_fills_blocks_and_loses_nothing(build, data_bin):
    task, _, _ = build("electra", "--sample-break-mode", "none")
    assert list(first_batch(task)["net_input"]) == ["src_tokens", "src_lengths", "layout"]  # no token types
    blocks = task.dataset("train").blocks
    assert set(blocks.sizes[:-1]) == {32}
    words = sum(len(blocks[i]) - 1 for i in range(len(blocks)))  # without <s>
    assert words == (data_bin / "train.bin").stat().st_size // 2  # two bytes per token


def test_break_mode_complete_doc_keeps_documents_apart(build, dictionary):
    task, _, _ = build("electra", "--sample-break-mode", "complete_doc")
    task.load_dataset("train")
    blocks = task.dataset("train").blocks
    for index in range(len(blocks)):
        block = blocks[index].tolist()
        assert block[-1] == dictionary.eos() and len(block) <= 32
        assert [dictionary.eos()] * 2 != block[-2:]  # no block contains the empty sentence between documents


def test_a_sentence_longer_than_a_block_is_cut_off_with_a_warning(build, tmp_path, dictionary, caplog):
    write_data_bin(tmp_path)
    write_split(tmp_path, "train", dictionary, [["noun1"] * 100, ["noun2"] * 5])
    task, _, _ = build("electra", "--sample-break-mode", "complete")
    task.cfg.data = str(tmp_path)
    task.load_dataset("train")
    assert "1 of 2 train blocks" in caplog.text and "--sample-break-mode none" in caplog.text
    data = task.dataset("train")
    assert sorted(data.sizes) == [7, 32]
    assert data.collater([data[i] for i in range(2)])["net_input"]["src_tokens"].shape == (2, 32)


@pytest.mark.parametrize("family", ["electra", "bert"])
def test_segments_train_the_second_token_type(build, family):
    task, model, criterion = build(family, "--task", "electra", "--criterion", "electra")
    batch = first_batch(task)
    types = batch["net_input"]["token_types"]
    text = torch.where(batch["target"].ne(task.dictionary.pad()), batch["target"], batch["net_input"]["src_tokens"])
    for row, tokens in enumerate(text.tolist()):
        middle = tokens.index(task.dictionary.eos()) + 1
        assert types[row].tolist() == [0] * middle + [1] * (len(tokens) - middle)
    loss, *_ = criterion(model, batch)
    loss.backward()
    assert model.embeddings.token_type_embeddings.weight.grad.abs().sum(dim=1).gt(0).all()


def test_documents_of_a_block_are_numbered(build, dictionary):
    task, _, _ = build("electra", "--sample-break-mode", "none", "--document-attention")
    task.load_dataset("train")
    blocks = task.dataset("train").blocks
    index = next(index for index in range(8) if blocks[index].eq(dictionary.bos()).sum() > 1)
    block, documents = blocks[index], first_batch(task)["net_input"]["documents"][index]
    starts = block.eq(dictionary.bos()).nonzero().squeeze(1).tolist()
    assert starts[0] == 0
    assert all(block[start - 1] == dictionary.eos() for start in starts[1:])
    assert documents.tolist() == [sum(start <= position for start in starts) for position in range(len(block))]
    plain, _, _ = build("electra", "--sample-break-mode", "none")
    plain.load_dataset("train")
    original = plain.dataset("train").blocks[index]
    assert block.ne(original).nonzero().squeeze(1).tolist() == starts[1:]
    assert original[starts[1:]].eq(dictionary.eos()).all()


def test_a_model_reads_the_documents_of_a_block_one_by_one(build):
    flags = ["--sample-break-mode", "none", "--document-attention"]
    task, model, _ = build("electra", *flags)
    batch = first_batch(task)["net_input"]
    hidden, _ = model.eval()(**batch, features_only=True)
    read = 0
    for row in range(len(hidden)):
        numbers = batch["documents"][row]
        for number in numbers.unique():
            alone = batch["src_tokens"][row][numbers == number].unsqueeze(0)
            expected, _ = model(alone, features_only=True)
            torch.testing.assert_close(hidden[row][numbers == number], expected[0], atol=1e-6, rtol=0)
            read += 1
    assert read > len(hidden)


def test_the_share_of_masked_tokens_changes_over_the_run(build):
    flags = ["--criterion", "electra", "--mask-prob", 0.5, "--final-mask-prob", 0.1, "--max-update", 10]
    task, model, criterion = build("electra", *flags)
    batch = first_batch(task, size=40)
    maskable = batch["net_input"]["src_tokens"].ge(task.dictionary.nspecial).sum()
    seen = []
    criterion.forward = lambda model, sample: (torch.zeros((), requires_grad=True), 1, seen.append(sample))
    optimizer = SimpleNamespace(backward=lambda loss: None)
    for update in (0, 5, 10, 12):
        task.train_step(batch, model, criterion, optimizer, update)
    pad = task.dictionary.pad()
    shares = [sample["target"].ne(pad).sum() / maskable for sample in seen]
    assert shares == pytest.approx([0.5, 0.3, 0.1, 0.1], abs=0.01)
    for larger, smaller in zip(seen, seen[1:]):
        masked = smaller["target"].ne(pad)
        assert larger["target"][masked].equal(smaller["target"][masked])
        assert smaller["net_input"]["src_tokens"][masked].equal(larger["net_input"]["src_tokens"][masked])
        assert smaller["masked_indices"].equal(masked.flatten().nonzero().squeeze(1))
        assert len(smaller["uniform_draws"]) == masked.sum()
        text = [torch.where(s["target"].ne(pad), s["target"], s["net_input"]["src_tokens"]) for s in (larger, smaller)]
        assert text[0].equal(text[1])
    task.load_dataset("valid")  # is masked as in the last update
    data = task.dataset("valid")
    valid = data.collater([data[index] for index in range(len(data))])
    maskable = valid["net_input"]["src_tokens"].ge(task.dictionary.nspecial).sum()
    assert valid["target"].ne(pad).sum() / maskable == pytest.approx(0.1, abs=0.01)


def test_an_unchanged_share_is_the_plain_one(build):
    batches = []
    for flags in ([], ["--final-mask-prob", 0.15, "--max-update", 10]):
        task, model, criterion = build("electra", *flags)
        criterion.forward = lambda model, sample: (torch.zeros((), requires_grad=True), 1, batches.append(sample))
        optimizer = SimpleNamespace(backward=lambda loss: None)
        task.train_step(first_batch(task), model, criterion, optimizer, update_num=3)
    assert_equal(*batches)


@pytest.mark.parametrize(
    "pieces",
    [
        ["play", "##ing", "##s", "dog", "run", "##ner"],
        ["▁play", "ing", "s", "▁dog", "▁run", "ner"],
        ["Ġplay", "ing", "s", "Ġdog", "Ġrun", "ner"],
    ],
)
def test_complete_words_are_masked_in_every_kind_of_vocabulary(build, tmp_path, pieces):
    folder = write_data_bin(tmp_path / "bin", words=pieces, sentences=1)
    dictionary = load_dictionary(folder / "dict.txt")
    word, sentences = [pieces[0], pieces[1], pieces[2]], []
    for number in range(60):
        sentences.append([*word, pieces[3], pieces[4], pieces[5], pieces[3]] * (2 + number % 2))
    write_split(folder, "train", dictionary, sentences)
    cfg = build("electra", "--mask-whole-words")[0].cfg
    cfg.data = str(folder)
    batch = first_batch(ElectraTask.setup_task(cfg), size=20)
    masked = batch["target"].ne(dictionary.pad())
    text = torch.where(masked, batch["target"], batch["net_input"]["src_tokens"])
    parts = [dictionary.index(piece) for piece in (pieces[1], pieces[2], pieces[5])]
    inside = torch.isin(text, torch.tensor(parts))
    inside[:, :2] = False  # a piece after <s> begins a word
    together = masked[:, 1:] == masked[:, :-1]
    assert together[inside[:, 1:] & text[:, :-1].ne(dictionary.eos())].all() and masked[inside].any()


@pytest.mark.parametrize(
    "flags, named",
    [
        ("--mask-prob 0", "--mask-prob"),
        ("--final-mask-prob 1.5 --max-update 5", "--final-mask-prob"),
        ("--final-mask-prob 0.1", "--max-update"),
        ("--tokens-per-sample 4", "--sample-break-mode"),
        ("--tokens-per-sample 1 --sample-break-mode none", "--tokens-per-sample"),
        ("--document-attention", "--document-attention"),
        ("--leave-unmasked-prob 0.6 --random-token-prob 0.6", "--leave-unmasked-prob"),
        ("--random-token-prob -0.1", "--random-token-prob"),
        ("--leave-unmasked-prob nan", "--leave-unmasked-prob"),
        ("--criterion masked_lm", "--criterion"),
        ("--criterion cross_entropy", "--criterion"),
        ("roberta --task electra --sample-break-mode none --document-attention", "--document-attention"),
    ],
)
def test_wrong_options_are_named(build, flags, named):
    family, *flags = flags.split() if not flags.startswith("-") else ("electra", *flags.split())
    assert named in refused(build, family, *flags)


def test_invalid_sizes_of_batches(build):
    task = build("electra")[0]
    task.load_dataset("train")
    dataset = task.dataset("train")
    batches = task.get_batch_iterator(dataset, max_tokens=32).next_epoch_itr()
    assert sum(batch["nsentences"] for batch in batches) == len(dataset)
    for sizes, named in (
        ({"max_tokens": 31}, "--max-tokens"),
        ({"max_sentences": 0}, "--batch-size"),
        ({"max_sentences": 8, "num_workers": -1}, "--num-workers"),
    ):
        assert named in refused(task.get_batch_iterator, dataset, **sizes)


def truncated(size: int):
    return lambda content: content[:size]


@pytest.mark.parametrize(
    "name, damage, named",
    [
        ("train.idx", None, "train.bin"),
        *[("train.idx", truncated(size), "train.idx") for size in (0, 17, 60, -1)],
        ("train.idx", lambda content: b"something else" * 10, "train.idx"),
        ("train.bin", truncated(-1), "train.bin"),
        ("dict.txt", None, "dict.txt"),
        ("dict.txt", lambda content: b"<mask> 1\n" + content, "dict.txt"),
    ],
)
def test_damaged_data(build, data_bin, tmp_path, name, damage, named):
    task, _, _ = build("electra")
    folder = shutil.copytree(data_bin, tmp_path / "data-bin")
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    if damage:
        (folder / name).write_bytes(damage(content))
    task.cfg.data = str(folder)
    assert named in refused(lambda: ElectraTask.setup_task(task.cfg).load_dataset("train"))


@pytest.mark.parametrize("text, named", [([], "train.idx"), ([[], []], "train.bin")])
def test_an_empty_split(build, tmp_path, text, named):
    task, _, _ = build("electra")
    write_split(write_data_bin(tmp_path / "bin"), "train", task.source_dictionary, text)
    task.cfg.data = str(tmp_path / "bin")
    for mode in ("none", "complete", "complete_doc", "segments"):
        task.cfg.sample_break_mode = mode
        assert named in refused(task.load_dataset, "train")
