import pytest
import torch
from fairseq import tasks
from fairseq.data import indexed_dataset
from fairseq.logging import metrics
from files import refused
from helpers import FAMILIES
from safetensors.torch import save_file

from tn_fairseq.core.configuration import training_config
from tn_fairseq.criterions.squad import SquadCriterion
from tn_fairseq.tasks.squad import HEAD

# a question, a window of text, and the first and last position of the answer, with <s> at position 0
WINDOWS = [("noun0 noun1", "verb0 verb1 verb2", (5, 6)), ("noun3", "adjective0 adjective1", (0, 0))]


@pytest.fixture
def squad_bin(data_bin, dictionary, tmp_path):
    (tmp_path / "dict.txt").write_text((data_bin / "dict.txt").read_text())
    for split in ("train", "valid"):
        builder = indexed_dataset.make_builder(str(tmp_path / f"{split}.bin"), "mmap", vocab_size=len(dictionary))
        for question, text, _ in WINDOWS:
            ids = [dictionary.encode_line(words, add_if_not_exist=False) for words in (question, text)]
            builder.add_item(torch.cat(ids))
        builder.finalize(str(tmp_path / f"{split}.idx"))
        save_file({"answer": torch.tensor([answer for *_, answer in WINDOWS])}, tmp_path / f"{split}.safetensors")
    return tmp_path


@pytest.fixture
def build_squad(build, squad_bin):
    """Build (task, model, criterion) for the two windows; the folder is fairseq-train's first argument."""

    def build_all(family="bert", *flags):
        arch = FAMILIES[family].split("--arch")[1].split()
        cfg = training_config([squad_bin, "--task", "squad", "--criterion", "squad", "--arch", *arch, *flags])
        torch.manual_seed(1)
        task = tasks.setup_task(cfg.task)
        return task, task.build_model(cfg.model), task.build_criterion(cfg.criterion)

    return build_all


def both_windows(task, split="train"):
    task.load_dataset(split)
    dataset = task.dataset(split)
    return dataset.collater([dataset[0], dataset[1]])


def test_a_batch_holds_windows_after_bos_and_both_ends_of_the_answer(build_squad, dictionary):
    task, _, _ = build_squad()
    batch = both_windows(task)
    for row, number in enumerate(batch["id"].tolist()):
        question, text, answer = WINDOWS[number]
        words = ["<s>", *question.split(), "</s>", *text.split(), "</s>"]
        tokens = batch["net_input"]["src_tokens"][row]
        assert tokens[: len(words)].tolist() == [dictionary.index(word) for word in words]
        assert tokens[len(words) :].eq(dictionary.pad()).all()
        assert batch["target"][row].tolist() == list(answer)
    assert batch["nsentences"] == 2 and batch["ntokens"] == 8 + 6


@pytest.mark.parametrize("family", ["bert", "electra"])
def test_the_loss_is_the_mean_of_both_ends_cross_entropies_without_padding(build_squad, family):
    task, model, criterion = build_squad(family)
    model.eval()
    batch = both_windows(task)
    loss, sample_size, log = criterion(model, batch)
    logits, _ = model(batch["net_input"]["src_tokens"], classification_head_name=HEAD)
    expected, correct = 0.0, 0
    for row, number in enumerate(batch["id"].tolist()):
        length, answer = batch["net_input"]["src_lengths"][row], WINDOWS[number][2]
        lprobs = logits[row, :length].log_softmax(dim=0)  # (T, 2)
        expected -= (lprobs[answer[0], 0] + lprobs[answer[1], 1]) / 2
        correct += lprobs.argmax(dim=0).tolist() == list(answer)
    torch.testing.assert_close(loss, expected)
    assert sample_size == 2 and log["correct"] == correct and log["sample_size"] == 2
    loss.backward()
    assert model.classification_heads[HEAD].output.weight.grad.abs().sum() > 0


def test_metrics_are_ratios_of_sums(build_squad):
    log = {"loss": torch.tensor(4 * 0.6931472), "correct": torch.tensor(1), "sample_size": 2}
    with metrics.aggregate(new_root=True) as shown:
        SquadCriterion.reduce_metrics([log, log])
    assert shown.get_smoothed_values() == {"loss": 2.0, "accuracy": 50.0}


def test_the_order_depends_on_the_seed(build_squad):
    task, orders = build_squad()[0], set()
    for seed in range(8):
        task.cfg.seed = seed
        task.load_dataset("train")
        orders.add(tuple(task.dataset("train").ordered_indices()))
    assert orders == {(0, 1), (1, 0)}


def test_what_does_not_fit_is_refused(build_squad, squad_bin):
    assert "roberta" in refused(build_squad, "roberta")
    task, _, _ = build_squad()
    assert "test.bin" in refused(task.load_dataset, "test")
    save_file({"answer": torch.zeros(5, 2, dtype=torch.long)}, squad_bin / "train.safetensors")
    assert "5 answers" in refused(task.load_dataset, "train")
    (squad_bin / "train.safetensors").write_bytes(b"no tensors")
    assert "train.safetensors" in refused(task.load_dataset, "train")
    task.cfg.max_positions = 7
    assert "--max-positions" in refused(task.load_dataset, "valid")
