"""Draws of a teacher: their folder, and training with them."""

import json
import random
import shutil
import signal
import subprocess

import numpy as np
import pytest
import torch
from files import refused
from helpers import FAMILIES, MASKED_LM_ONLY, refused_training, start_command, train_here, write_data_bin

from tn_fairseq.__main__ import main
from tn_fairseq.core.draws import Draws, draw
from tn_fairseq.data import drawn_folder
from tn_fairseq.data.drawn_folder import DrawnFolder
from tn_fairseq.objectives import functional

LENGTH = ["--tokens-per-sample", "32"]
CRITERION = ["--criterion", "mlm_distillation"]
BERT = [*FAMILIES["bert"].replace("masked_lm", "electra").split(), "--dropout", 0, "--attention-dropout", 0]


def teach(data, teacher, output, *flags: object) -> DrawnFolder:
    main(["data", "teach", str(data), "--teacher", str(teacher), "--output", str(output), *LENGTH, *map(str, flags)])
    return DrawnFolder.read(output)


@pytest.fixture(scope="module")
def drawn(data_bin, teacher, tmp_path_factory):
    return teach(data_bin, teacher, tmp_path_factory.mktemp("teach") / "draws", "--versions", 2)


def files(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith(".")}


def test_a_certain_teacher_gives_plain_masked_lm_and_all_probabilities_the_complete_teacher():
    logits, theirs = (torch.randn(4, 30, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    targets, weight, logits = torch.tensor([3, 1, 29, 0]), 0.6, logits.requires_grad_()
    certain = torch.stack([targets, torch.zeros_like(targets)], dim=1), torch.tensor([[1.0, 0.0]] * 4)
    every = torch.arange(30).expand(4, -1), theirs.softmax(dim=1)
    teacher, sums, _ = functional.distillation(logits, targets, theirs, weight)
    for (words, shares), expected in ((certain, functional.masked_lm(logits, targets)), (every, teacher)):
        losses, found = functional.distillation_from_draws(logits, targets, words, shares, weight)
        torch.testing.assert_close(losses, expected)
        gradients = [torch.autograd.grad(one.sum(), logits, retain_graph=True)[0] for one in (losses, expected)]
        torch.testing.assert_close(*gradients)
    torch.testing.assert_close(found, sums)


def test_the_mean_gradient_is_that_of_the_teacher():
    """Over many sets of draws, within five standard errors."""
    logits, theirs = (2 * torch.randn(6, 40, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    targets, sets = torch.tensor([3, 1, 29, 0, 7, 7]), 200

    def gradient(losses) -> torch.Tensor:
        return torch.autograd.grad(losses.sum(), logits)[0]

    logits.requires_grad_()
    expected = gradient(functional.distillation(logits, targets, theirs, 0.8).losses)
    found = torch.zeros_like(expected)
    for seed in range(sets):
        uniform = torch.rand(6, 50, generator=torch.Generator().manual_seed(seed))
        words, counts = draw(theirs, uniform).padded(50)
        found += gradient(functional.distillation_from_draws(logits, targets, words, counts / 50, 0.8)[0]) / sets
    q = theirs.softmax(dim=1)
    error = 0.8 * (q * (1 - q) / (50 * sets)).sqrt()
    assert ((found - expected).abs() <= 5 * error + 1e-6).all()


def test_masks_are_those_of_a_run_and_draws_those_of_its_teacher(build, drawn):
    flags = ["--task", "electra", *CRITERION]
    task, _, _ = build("bert", *flags, "--distillation-draws", drawn.path)
    assert task.draws == str(drawn.path)
    task.load_dataset("train")
    plain, _, with_teacher = build("bert", *flags)
    plain.load_dataset("train")
    for epoch, version in ((1, 1), (2, 2), (3, 1)):
        task.dataset("train").set_epoch(epoch)
        plain.dataset("train").set_epoch(version)
        ours, theirs = (data.dataset("train").collater([5, 0, 9]) for data in (task, plain))
        assert torch.equal(ours["net_input"]["src_tokens"], theirs["net_input"]["src_tokens"])
        words, counts = ours["draws"]
        assert (counts.sum(dim=1) == 50).all() and len(words) == len(ours["masked_indices"])
        (teacher,) = with_teacher.objective.teacher
        probabilities = teacher(**theirs["net_input"], masked_tokens=theirs["target"].ne(1))[0].softmax(dim=1)
        likely = (probabilities.gather(1, words) * (counts > 0)).sum(dim=1)
        assert likely.mean() > 0.8  # the draws cover most of the probability


def training_losses(data, folder, drawn, *flags) -> list[str]:
    records = train_here(data, folder, *BERT, *CRITERION, "--distillation-draws", drawn.path, *flags)
    return [(one["loss"], one["nll_loss"]) for one in records["train_inner"]]


def test_a_run_resumes_on_draws_as_if_it_had_not_stopped(data_bin, drawn, tmp_path):
    whole = training_losses(data_bin, tmp_path / "whole", drawn, "--max-update", 6)
    begun = training_losses(data_bin, tmp_path / "begun", drawn, "--max-update", 3)
    rest = training_losses(data_bin, tmp_path / "begun", drawn, "--max-update", 6)
    assert begun + rest == whole


def test_batches_of_other_sizes_have_the_same_loss(build, drawn):
    flags = ["--task", "electra", *CRITERION, "--distillation-draws", drawn.path]
    task, model, criterion = build("bert", *flags)
    task.load_dataset("train")
    data = task.dataset("train")
    losses = [
        criterion(model.eval(), data.collater(list(some)))[0].item() for some in (range(8), range(3), range(3, 8))
    ]
    assert losses[0] == pytest.approx(losses[1] + losses[2], rel=1e-5)


@pytest.mark.parametrize("family", ["electra", "roberta"])  # other tests train bert
def test_every_family_trains_on_draws_and_validates_without(family, data_bin, drawn, tmp_path):
    flags = [*FAMILIES[family].replace("masked_lm", "electra").split(), *MASKED_LM_ONLY[family], *CRITERION]
    records = train_here(data_bin, tmp_path, *flags, "--distillation-draws", drawn.path, "--max-update", 3)
    assert all("teacher_gold_probability" in one for one in records["train_inner"])
    (valid,) = records["valid"]
    assert valid["valid_loss"] == valid["valid_nll_loss"] or family == "electra"


def test_shards_write_what_one_process_writes(data_bin, teacher, drawn, tmp_path, monkeypatch):
    monkeypatch.setattr(drawn_folder, "SMALLEST", 20)
    monkeypatch.setattr(drawn_folder, "PARTS", 5)
    whole = teach(data_bin, teacher, tmp_path / "whole")
    assert len(whole.parts()) > 3
    words = ["data", "teach", str(data_bin), "--teacher", str(teacher), "--output", str(tmp_path / "parts"), *LENGTH]
    main([*words, "--shard", "2/2"])
    assert "not complete" in refused(DrawnFolder.read, tmp_path / "parts")
    main([*words, "--shard", "1/2"])
    assert files(tmp_path / "parts") == files(tmp_path / "whole")
    # the draws do not depend on the size of the files
    for block in (0, 30, 100):
        one, other = (folder.of(1, np.array([block])) for folder in (whole, drawn))
        assert np.array_equal(one.words, other.words) and np.array_equal(one.counts, other.counts)


@pytest.mark.slow
def test_killed_at_random_it_continues_to_the_same_bytes(data_bin, teacher, tmp_path):
    expected = files(teach(data_bin, teacher, tmp_path / "whole", "--versions", 3).path)
    rng, folder = random.Random(1), tmp_path / "killed"
    command = ["tn-fairseq", "data", "teach", data_bin, "--teacher", teacher, "--output", folder, *LENGTH]
    for kill in range(11):
        process = start_command(
            *command, "--versions", 3, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, fresh=True
        )
        seen = len(list(folder.glob("*.npy")))
        while kill < 10 and process.poll() is None:
            if len(list(folder.glob("*"))) > seen + rng.choice([0, 1]):
                process.send_signal(signal.SIGKILL)
                break
        process.wait()
        # a run that was killed never looks complete, unless it was
        if (folder / "draws.json").exists() and files(folder) != expected:
            assert "not complete" in refused(DrawnFolder.read, folder)
    assert files(folder) == expected


def test_a_word_takes_the_bytes_that_it_needs(drawn, tmp_path):
    words = sum(len(drawn.of(v, np.arange(n)).words) for v, n in zip((1, 2), drawn.header["blocks"]))
    total = sum(path.stat().st_size for path in drawn.path.glob("*.npy"))
    assert drawn.bytes_of_word == 3 and total <= 3 * words + 8 * (sum(drawn.header["blocks"]) + 2) + 2 * 128
    header = {"draws": 4, "blocks": [2], "symbols": 1 << 17, "size": 2}  # more than 16 bits
    folder = DrawnFolder.begin(tmp_path / "draws", header)
    folder.write(1, 0, np.array([1, 1]), Draws(np.array([99_999, 3, 70_000]), np.array([3, 1, 4])))
    assert folder.of(1, np.array([1, 0])).words.tolist() == [70_000, 99_999, 3]


def test_two_folders_of_data_take_turns(data_bin, teacher, tmp_path):
    other = write_data_bin(tmp_path / "other", sentences=200)
    both = f"{data_bin}:{other}"
    command = ["data", "teach", both, "--teacher", str(teacher), "--output", str(tmp_path / "draws"), *LENGTH]
    assert "--versions 1: an epoch reads one of 2 folders" in refused(main, command)
    main([*command, "--versions", "2"])
    assert len(set(DrawnFolder.read(tmp_path / "draws").header["blocks"])) == 2
    flags = [*BERT, *CRITERION, "--distillation-draws", tmp_path / "draws", "--max-epoch", 2]
    assert train_here(both, tmp_path / "run", *flags)["train_inner"]


# flags of training, and what the error must name
REFUSED = [
    (["--tokens-per-sample", 16], "--tokens-per-sample 32, not 16"),
    (["--mask-prob", 0.2], "--mask-prob 0.15, not 0.2"),
    (["--mask-whole-words"], "--mask-whole-words"),
    (["--seed", 2], "--mask-seed 1, not 2"),
    (["--final-mask-prob", 0.3, "--max-update", 2], "--final-mask-prob"),
    (["--distillation-teacher", "teacher.pt"], "--distillation-draws and --distillation-teacher"),
    (["--distillation-temperature", 2], "without --distillation-teacher"),
    (["--task", "masked_lm"], "with --task electra"),
]


@pytest.mark.parametrize(("flags", "named"), REFUSED)
def test_training_with_other_masks_is_refused(flags, named, data_bin, drawn, tmp_path):
    command = [*BERT, *CRITERION, "--distillation-draws", drawn.path, *LENGTH, *flags]
    assert named in refused_training(data_bin, tmp_path, *command)


def test_other_text_and_damaged_folders_are_refused(data_bin, drawn, teacher, tmp_path):
    def error(data=data_bin, folder=drawn.path) -> str:
        return refused_training(data, tmp_path / "run", *BERT, *CRITERION, "--distillation-draws", folder)

    assert "was made with another text" in error(write_data_bin(tmp_path / "data", sentences=399))
    assert "was made with another dictionary" in error(write_data_bin(tmp_path / "words", words=["a", "b", "c"]))
    assert "draws.json: No such file" in error(folder=tmp_path)
    copy = shutil.copytree(drawn.path, tmp_path / "copy")
    (copy / "1-000.npy").write_bytes((copy / "1-000.npy").read_bytes()[:-9])
    assert "1-000.npy: damaged" in error(folder=copy)
    (copy / "2-000.npy").unlink()
    assert f"{copy}: not complete (50%)" in error(folder=copy)
    (copy / "draws.json").write_text(json.dumps({"draws": 5}))
    assert "draws.json: has no valid" in error(folder=copy)


def test_invalid_commands_are_refused(data_bin, drawn, teacher, tmp_path, monkeypatch):
    def error(*flags: object, output=tmp_path / "new") -> str:
        words = ["data", "teach", data_bin, "--teacher", teacher, "--output", output, *LENGTH, *flags]
        return refused(main, list(map(str, words)))

    assert "another draws" in error("--draws", 9, "--versions", 2, output=drawn.path)
    assert "another options" in error("--mask-prob", 0.3, "--versions", 2, output=drawn.path)
    for flags in (("--draws", 256), ("--shard", "9/8"), ("--mask-prob", 0), ("--tokens-per-sample", 4000)):
        assert flags[0] in error(*flags)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: shutil._ntuple_diskusage(9, 9, 9))
    assert str(tmp_path / "new") in error()
    assert not (tmp_path / "new").exists()
