"""Distillation, compared with loops over positions and words."""

import logging
import math
from copy import deepcopy

import pytest
import torch
from files import refused
from helpers import (
    FAMILIES,
    MASKED_LM_ONLY,
    first_batch,
    refused_training,
    save_random_model,
    synonyms_of,
    train_here,
    write_data_bin,
)

from tn_fairseq.core.configuration import training_config
from tn_fairseq.data.data_bin import count_symbols
from tn_fairseq.objectives import functional

CRITERION = ["--criterion", "mlm_distillation"]


def naive_target(gold, logits, weight, temperature, words, synonyms):
    """The target of one position, word by word."""
    kept = {"all": lambda v: True, "synonyms": lambda v: v in synonyms, "others": lambda v: v not in synonyms}[words]
    scores = {v: math.exp(x / temperature) for v, x in enumerate(logits.tolist()) if v == gold or kept(v)}
    total = sum(scores.values())
    return [weight * scores.get(v, 0.0) / total + (1 - weight) * (v == gold) for v in range(len(logits))]


@pytest.mark.parametrize(
    "family, words, weight, temperature",
    [
        *[(family, "all", 1, 1) for family in FAMILIES],
        ("electra", "synonyms", 0.7, 2),
        ("bert", "others", 0.3, 0.5),
        ("roberta", "synonyms", 1, 1),
    ],
)
def test_loss_gradient_and_log_are_those_of_a_loop(build, synonym_table, family, words, weight, temperature):
    """Every word of the toy language has nine synonyms. The criterion's teacher reads the same masked text."""
    flags = ["--distillation-words", words, "--distillation-weight", weight, "--distillation-temperature", temperature]
    flags += ["--synonym-table", synonym_table, *MASKED_LM_ONLY[family], "--task", "electra"]
    task, model, criterion = build(family, *CRITERION, *flags, "--sample-break-mode", "complete")
    model.eval()
    batch = first_batch(task)
    masked = batch["target"].ne(task.dictionary.pad())
    logits = model(**batch["net_input"], masked_tokens=masked)[0]
    with torch.no_grad():
        (teacher,) = criterion.objective.teacher
        teacher_logits = teacher(**batch["net_input"], masked_tokens=masked)[0]
    gold = batch["target"][masked].tolist()
    targets = []
    for target, row in zip(gold, teacher_logits):
        synonyms = {task.dictionary.index(word) for word in synonyms_of(task.dictionary[target])}
        targets.append(naive_target(target, row, weight, temperature, words, synonyms))
    expected = -(torch.tensor(targets) * logits.log_softmax(dim=1)).sum()
    loss, sample_size, log = criterion(model, batch)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-4)
    assert sample_size == len(gold)
    for name, parameter in model.named_parameters():
        theirs, ours = (
            torch.autograd.grad(x, parameter, retain_graph=True, allow_unused=True)[0] for x in (expected, loss)
        )
        if theirs is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, msg=name)
    rows, probabilities = range(len(gold)), teacher_logits.softmax(dim=1)
    torch.testing.assert_close(log["teacher_gold"], probabilities[rows, gold].sum())
    torch.testing.assert_close(log["teacher_prediction"], probabilities[rows, logits.argmax(dim=1)].sum())
    torch.testing.assert_close(log["nll"], -logits.detach().log_softmax(dim=1)[rows, gold].sum())


def test_a_teacher_that_is_certain_of_the_gold_word_gives_plain_masked_lm(build):
    task, model, criterion = build("bert", *CRITERION)
    batch = first_batch(task)
    masked = batch["target"].ne(task.dictionary.pad())
    certain = 1e4 * torch.nn.functional.one_hot(batch["target"][masked], len(task.dictionary)).float()
    criterion.objective.teacher = [lambda **inputs: (certain, None)]
    criterion.objective.ready = lambda teacher, device: teacher
    loss, _, log = criterion(model.eval(), batch)
    torch.testing.assert_close(loss.detach(), log["nll"])
    _, _, plain = build("bert", "--criterion", "mlm")
    expected, _, _ = plain(model, batch)
    for name, parameter in model.named_parameters():
        ours, theirs = (torch.autograd.grad(x, parameter, retain_graph=True)[0] for x in (loss, expected))
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_student_as_its_own_teacher_gets_no_gradient(dtype):
    logits = (3 * torch.randn(9, 50, generator=torch.Generator().manual_seed(1))).to(dtype).requires_grad_()
    functional.distillation(logits, torch.arange(9), logits, weight=1.0).losses.sum().backward()
    assert logits.grad.eq(0).all()


def test_all_words_are_synonyms_and_others_if_only_one_of_them_has_mass():
    logits = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))
    targets, synonyms = torch.tensor([0, 1, 2]), torch.tensor([[3, 4], [5, -1], [-1, -1]])
    has_mass = torch.zeros(3, 8, dtype=torch.bool).scatter_(1, targets.unsqueeze(1), True)
    in_table = torch.tensor([[3, 4], [5, 5]])
    has_mass[:2] = has_mass[:2].scatter(1, in_table, True)
    only = logits.masked_fill(~has_mass, -math.inf)
    assert torch.equal(functional.only_synonyms(only, targets, synonyms), only)
    assert torch.equal(functional.only_synonyms(logits, targets, synonyms), only)
    others = logits.masked_fill(has_mass & ~torch.nn.functional.one_hot(targets, 8).bool(), -math.inf)
    assert torch.equal(functional.without_synonyms(others, targets, synonyms), others)
    assert torch.equal(functional.without_synonyms(logits, targets, synonyms), others)
    assert logits.isfinite().all()  # the teacher's logits stay as they are


def test_a_shuffled_teacher_keeps_the_gold_words_value_and_moves_all_others():
    """Word v gets the value of order[(v + shift) mod 5]: with shift 1, of 4, 1, 3, 0 and 2."""
    logits = torch.tensor([[10.0, 11.0, 12.0, 13.0, 14.0]] * 3)
    order, targets = torch.tensor([2, 4, 1, 3, 0]), torch.tensor([0, 3, 1])
    moved = functional.shuffle_wrong_words(logits, targets, order, torch.tensor([1, 1, 0]))
    # word 3 would have got the value of word 0, so it takes that of word 4, which was meant for word 0
    assert moved[0].tolist() == [10, 11, 13, 14, 12]
    assert moved[1].tolist() == [14, 11, 10, 13, 12]
    # shift 0: of 2, 4, 1, 3 and 0
    assert moved[2].tolist() == [12, 11, 14, 13, 10]


def test_a_shuffled_word_can_be_anywhere():
    places = {
        functional.shuffle_wrong_words(
            torch.arange(6.0).unsqueeze(0), torch.tensor([2]), torch.randperm(6), torch.tensor([shift])
        )[0]
        .tolist()
        .index(4.0)
        for shift in range(6)
        for _ in range(20)
    }
    assert places == {0, 1, 3, 4, 5}


def test_smoothing_has_the_entropy_of_the_target():
    """Two words that are equally likely: the target (3/4, 1/4) has the entropy of half a share of smoothing."""
    teacher = torch.tensor([[math.log(3.0), 0.0], [0.0, 0.0], [50.0, 0.0]])
    targets = torch.tensor([0, 0, 0])
    entropy = functional.target_entropy(teacher, targets, weight=1.0)
    by_hand = 0.75 * math.log(4 / 3) + 0.25 * math.log(4)
    torch.testing.assert_close(entropy, torch.tensor([by_hand, math.log(2), 0.0]))
    share = functional.smoothing_with_entropy(entropy, torch.tensor([0.5, 0.5]), targets)
    torch.testing.assert_close(share, torch.tensor([0.5, 1.0, 0.0]), atol=1e-3, rtol=0)
    # with half of the weight, the target of the first position is (7/8, 1/8), which is a quarter of a share
    half = functional.target_entropy(teacher, targets, weight=0.5)[:1]
    share = functional.smoothing_with_entropy(half, torch.tensor([0.5, 0.5]), targets[:1])
    torch.testing.assert_close(share, torch.tensor([0.25]), atol=1e-3, rtol=0)


def test_the_target_of_smoothing_is_made_of_the_frequencies_of_the_training_text(build, data_bin):
    task, model, criterion = build("bert", *CRITERION, "--distillation-control", "unigram")
    batch = first_batch(task)
    counts = torch.zeros(len(task.dictionary))
    task.load_dataset("train")
    for line in count_lines(task, data_bin):
        for token in line.tolist():
            counts[token] += token >= task.dictionary.nspecial
    assert torch.equal(torch.from_numpy(count_symbols(data_bin / "train", task.dictionary)).float(), counts)
    frequencies = counts / counts.sum()
    torch.testing.assert_close(criterion.objective.frequencies, frequencies)
    assert criterion.half().objective.frequencies.dtype == torch.float32
    criterion.float()

    masked = batch["target"].ne(task.dictionary.pad())
    with torch.no_grad():
        logits = model.eval()(**batch["net_input"], masked_tokens=masked)[0]
        teacher_logits = criterion.objective.teacher[0](**batch["net_input"], masked_tokens=masked)[0]
    gold = batch["target"][masked]
    entropy = functional.target_entropy(teacher_logits, gold, 1.0)
    share = functional.smoothing_with_entropy(entropy, frequencies, gold).unsqueeze(1)
    target = share * frequencies + (1 - share) * torch.nn.functional.one_hot(gold, len(frequencies))
    reached = share.squeeze(1) < 1
    assert reached.any()
    torch.testing.assert_close(torch.special.entr(target).sum(dim=1)[reached], entropy[reached], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(criterion(model, batch)[0].detach(), -(target * logits.log_softmax(dim=1)).sum())


def count_lines(task, data_bin):
    from fairseq.data import data_utils

    return data_utils.load_indexed_dataset(str(data_bin / "train"), task.dictionary)


def test_the_shuffle_depends_on_the_position_only(build):
    """Two batches of four sequences have the losses of one of eight, as two workers do."""
    task, model, criterion = build("bert", *CRITERION, "--distillation-control", "shuffled", "--task", "electra")
    task.load_dataset("train")
    dataset = task.dataset("train")
    losses = [
        criterion(model.eval(), dataset.collater([dataset[index] for index in some]))[0]
        for some in (range(8), range(4), range(4, 8))
    ]
    torch.testing.assert_close(losses[0], losses[1] + losses[2])


def test_the_teacher_is_not_trained_saved_or_in_training_mode(build, teacher):
    task, model, criterion = build("bert", *CRITERION)
    assert not list(criterion.parameters()) and not criterion.state_dict()
    criterion.train()
    criterion(model.train(), first_batch(task))[0].backward()
    (loaded,) = criterion.objective.teacher
    assert not loaded.training and all(parameter.grad is None for parameter in loaded.parameters())


def test_a_teacher_that_is_no_better_is_said_once(build, caplog):
    task, model, criterion = build("bert", *CRITERION)
    worse = deepcopy(model)
    with torch.no_grad():
        for parameter in worse.parameters():
            parameter.mul_(30)  # certain, and wrong
    criterion.objective.teacher = [worse]
    for _ in range(25):
        criterion(model, first_batch(task))
    assert sum("not below the model's" in message for message in caplog.messages) == 1


def test_one_more_tensor_of_logits_is_saved(build):
    """The teacher's logits; the gradient is computed from them."""
    task, model, criterion = build("bert", *CRITERION)
    batch, saved = first_batch(task), {}

    def keep(tensor):
        if tensor.dim() == 2 and tensor.size(1) == len(task.dictionary):
            saved[tensor.data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        criterion(model, batch)
    assert len(saved) == 2


def test_bfloat16_on_a_cpu_follows_float32(data_bin, teacher, tmp_path):
    flags = [*FAMILIES["bert"].split(), *CRITERION, "--distillation-teacher", teacher, "--max-update", 3]
    exact, rounded = (train_here(data_bin, tmp_path / str(len(more)), *flags, *more) for more in ([], ["--bf16"]))
    for one, other in zip(exact["train_inner"], rounded["train_inner"]):
        assert float(other["loss"]) == pytest.approx(float(one["loss"]), rel=5e-2)
        assert other["loss"] != one["loss"]


def test_a_second_model_that_does_not_fit_is_refused(build, data_bin, synonym_table, tmp_path):
    """As a teacher and as a judge: the error names the flag, and the file."""
    flags = [*FAMILIES["bert"].split(), "--tokens-per-sample", 32]
    other = write_data_bin(tmp_path / "other", words=["alpha", "beta"])
    torch.save({"weight": torch.ones(2)}, tmp_path / "weights.pt")
    save_random_model(tmp_path / "other.pt", training_config([other, *flags]), seed=1)
    short = [data_bin, *flags, "--max-positions", 16, "--tokens-per-sample", 16]
    save_random_model(tmp_path / "short.pt", training_config(short), seed=1)
    for criterion, flag in (
        ("mlm_distillation", "--distillation-teacher"),
        ("mlm_hard_correction", "--correction-judge"),
    ):
        words = ["bert", "--criterion", criterion, "--synonym-table", synonym_table, flag]
        for name, named in (
            ("missing.pt", "No such file"),
            ("weights.pt", "model"),
            ("other.pt", "dictionary"),
            ("short.pt", "--tokens-per-sample"),
        ):
            message = refused(build, *words, tmp_path / name)
            assert f"{flag} {tmp_path / name}" in message and named in message


@pytest.mark.parametrize(
    "task, flags, named",
    [
        ("electra", "", "--distillation-teacher"),
        ("electra", "--distillation-words synonyms", "--synonym-table"),
        ("electra", "--distillation-teacher ema --store-ema", "--distillation-weight"),
        ("electra", "--distillation-teacher ema --distillation-weight 0.5", "--store-ema"),
        ("masked_lm", "--distillation-teacher ema --distillation-weight 0.5 --store-ema", "--task electra"),
    ],
)
def test_a_criterion_without_a_teacher_is_refused(data_bin, tmp_path, task, flags, named):
    words = ["--task", task, "--arch", "bert_tiny", *CRITERION, *flags.split()]
    assert named in refused_training(data_bin, tmp_path / "save", *words)


def test_validation_without_the_moving_average_is_plain(build):
    task, model, criterion = build("bert", *CRITERION, "--distillation-teacher", "ema", "--distillation-weight", 0.5)
    batch = first_batch(task)
    with torch.no_grad():
        loss, _, log = criterion(model.eval(), batch)
        torch.testing.assert_close(loss, log["nll"])
        logged = criterion(model, {**batch, "ema_model": model})[2]
    assert logged["teacher_gold"] > 0 and "teacher_gold" not in log


def test_a_teacher_in_the_students_folder_is_allowed_but_said(data_bin, teacher, tmp_path, caplog):
    own = tmp_path / "run" / "teacher.pt"
    own.parent.mkdir()
    own.write_bytes(teacher.read_bytes())
    flags = [*FAMILIES["bert"].split(), *CRITERION, "--max-update", 1]
    with caplog.at_level(logging.WARNING):
        train_here(data_bin, tmp_path / "other", *flags, "--distillation-teacher", own)
        assert "is in --save-dir" not in caplog.text
        train_here(data_bin, tmp_path / "run", *flags, "--distillation-teacher", own)
    assert f"--distillation-teacher {own}: is in --save-dir" in caplog.text
