import shutil

import pytest
from helpers import write_data_bin, write_split

from tn_fairseq.tasks.electra import ElectraTask


def test_electras_defaults(build):
    cfg = build("electra", "--criterion", "electra")[0].cfg
    assert (cfg.mask_prob, cfg.leave_unmasked_prob, cfg.random_token_prob) == (0.15, 0.15, 0.0)
    assert str(cfg.sample_break_mode) == "none"


def test_bert_trains_with_berts_masking(build):
    flags = "--task electra --leave-unmasked-prob 0.1 --random-token-prob 0.1 --criterion electra".split()
    task, model, _ = build("bert", *flags)
    assert isinstance(task, ElectraTask) and type(model).__name__ == "bert_tiny"


def test_break_mode_none_fills_blocks_and_loses_nothing(build, data_bin):
    task, _, _ = build("electra", "--criterion", "electra")
    task.load_dataset("train")
    blocks = task.dataset("train").blocks
    assert set(blocks.sizes[:-1]) == {32}
    words = sum(len(blocks[i]) - 1 for i in range(len(blocks)))  # without <s>
    assert words == (data_bin / "train.bin").stat().st_size // 2  # two bytes per token


def test_break_mode_complete_doc_keeps_documents_apart(build, dictionary):
    task, _, _ = build("electra", "--criterion", "electra", "--sample-break-mode", "complete_doc")
    task.load_dataset("train")
    blocks = task.dataset("train").blocks
    for index in range(len(blocks)):
        block = blocks[index].tolist()
        assert block[-1] == dictionary.eos() and len(block) <= 32
        assert [dictionary.eos()] * 2 != block[-2:]  # no block contains the empty sentence between documents


def test_a_sentence_longer_than_a_block_is_cut_off_with_a_warning(build, tmp_path, dictionary, caplog):
    write_data_bin(tmp_path)
    write_split(tmp_path, "train", dictionary, [["noun1"] * 100, ["noun2"] * 5])
    task, _, _ = build("electra", "--criterion", "electra", "--sample-break-mode", "complete")
    task.cfg.data = str(tmp_path)
    task.load_dataset("train")
    assert "1 of 2 train blocks" in caplog.text and "--sample-break-mode none" in caplog.text
    data = task.dataset("train")
    assert sorted(data.sizes) == [7, 32]
    assert data.collater([data[i] for i in range(2)])["net_input"]["src_tokens"].shape == (2, 32)


@pytest.mark.parametrize(
    "flags, said",
    [
        (["--mask-prob", 0], "--mask-prob"),
        (["--mask-prob", 1], "--mask-prob"),
        (["--leave-unmasked-prob", 0.6, "--random-token-prob", 0.6], "--leave-unmasked-prob"),
        (["--random-token-prob", -0.1], "--random-token-prob"),
        (["--tokens-per-sample", 1], "--tokens-per-sample"),
    ],
)
def test_wrong_options_are_named(build, flags, said):
    with pytest.raises(SystemExit, match=said):
        build("electra", "--criterion", "electra", *flags)


@pytest.fixture
def broken(tmp_path, data_bin, build):
    """A copy of the data-bin to damage, and a function that loads it."""
    folder = tmp_path / "data-bin"
    shutil.copytree(data_bin, folder)

    def load(split="train"):
        task, _, _ = build("electra", "--criterion", "electra")
        task.cfg.data = str(folder)
        task.load_dataset(split)

    return folder, load


def test_batches_smaller_than_a_block_are_refused(build):
    task = build("electra", "--criterion", "electra")[0]
    task.load_dataset("train")
    dataset = task.dataset("train")
    batches = task.get_batch_iterator(dataset, max_tokens=32).next_epoch_itr()
    assert sum(batch["nsentences"] for batch in batches) == len(dataset)
    with pytest.raises(SystemExit, match=r"--max-tokens .* 31 is less than a block of 32 tokens"):
        task.get_batch_iterator(dataset, max_tokens=31)


@pytest.mark.parametrize(
    "name, flag, value", [("max_sentences", "--batch-size", 0), ("num_workers", "--num-workers", -1)]
)
def test_invalid_numbers_for_batches(build, name, flag, value):
    task = build("electra")[0]
    task.load_dataset("train")
    with pytest.raises(SystemExit, match=f"{flag}.* must be .*, not {value}$"):
        task.get_batch_iterator(task.dataset("train"), **{"max_sentences": 8, name: value})


@pytest.mark.parametrize("criterion", ["masked_lm", "cross_entropy"])
def test_a_criterion_that_does_not_train_the_discriminator(build, criterion):
    with pytest.raises(SystemExit, match=rf"--criterion {criterion} .* give one of electra, .*mlm_sent_kl"):
        build("electra", "--criterion", criterion)


def test_a_missing_split(broken):
    folder, load = broken
    (folder / "train.idx").unlink()
    with pytest.raises(SystemExit, match=r"train.bin .*python -m tn_fairseq\.preprocessing binarize"):
        load()


def test_a_truncated_index(broken):
    folder, load = broken
    index = folder / "train.idx"
    whole = index.read_bytes()
    for size in (0, 5, 17, 20, 60, len(whole) - 1):
        index.write_bytes(whole[:size])
        with pytest.raises(SystemExit, match=r"train\.idx.*python -m tn_fairseq\.preprocessing binarize"):
            load()


def test_an_index_of_something_else(broken):
    folder, load = broken
    (folder / "train.idx").write_bytes(b"something else" * 10)
    with pytest.raises(SystemExit, match=r"train\.idx.*python -m tn_fairseq\.preprocessing binarize"):
        load()


def test_truncated_data(broken):
    folder, load = broken
    data = folder / "train.bin"
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(SystemExit, match=r"train\.bin.*python -m tn_fairseq\.preprocessing binarize"):
        load()


def test_an_empty_split(broken, dictionary):
    folder, load = broken
    write_split(folder, "train", dictionary, [])
    with pytest.raises(SystemExit, match=r"train"):
        load()


def test_a_folder_without_a_dictionary(build, tmp_path):
    with pytest.raises(SystemExit, match=r"dict.txt.*python -m tn_fairseq\.preprocessing binarize"):
        task = build("electra", "--criterion", "electra")[0]
        task.cfg.data = str(tmp_path)
        ElectraTask.setup_task(task.cfg)
