"""Killed runs, full disks, and damaged checkpoints."""

import re
import shutil

import pytest
import torch
from files import contents
from helpers import CRITERIA, FAMILIES, Bomb, prepare_training, refused_training, train_here
from interruption import assert_same_end, check_that_kills_change_nothing, full_disk

from tn_fairseq.fairseq_patches import durable_checkpoints

FLAGS = [*FAMILIES["electra"].split(), "--criterion", "electra"]
LAST = ("checkpoint_last.pt", "checkpoint_1_6.pt", "checkpoint_best.pt")


def test_a_killed_run_ends_like_an_uninterrupted_one(data_bin, synonym_table, tmp_path):
    flags = [*FLAGS[:-1], "mlm_hard_correction", "--synonym-table", synonym_table]
    check_that_kills_change_nothing(data_bin, tmp_path, flags, kills=1, seed=10)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, data_bin):
    folder = tmp_path_factory.mktemp("trained")
    prepare_training(data_bin, folder, *FLAGS, "--save-interval-updates", 2)()
    return folder


def test_checkpoints_that_a_run_cannot_resume_from(trained, data_bin, tmp_path):
    folder, before = copy_of(trained, tmp_path / "trained"), contents(trained)
    for flags, named in (
        (["--criterion", "mlm_soft_reg"], "SoftRegularizationCriterion"),
        (["--optimizer", "adam"], "FairseqAdam"),
    ):
        error = refused_training(data_bin, folder, *FLAGS, *flags)
        assert named in error and "--finetune-from-model" in error and "--save-dir" in error
    assert contents(folder) == before


def copy_of(folder, path):
    return shutil.copytree(folder, path, dirs_exist_ok=True)


def damage(path, kind, trap):
    content = bytearray(path.read_bytes())
    if kind == "cut off":
        content = content[: len(content) // 2]
    elif kind == "a bit flipped":
        content[len(content) // 2] ^= 1
    elif kind == "empty":
        content = b""
    path.write_bytes(content)
    if kind == "a pickle that runs code":
        torch.save(Bomb(trap), path)


@pytest.mark.parametrize("kind", ["a bit flipped", "empty", "a pickle that runs code"])
def test_every_kind_of_damage_is_detected(trained, tmp_path, caplog, kind):
    folder = copy_of(trained, tmp_path)
    for name in LAST:
        damage(folder / name, kind, tmp_path / "trap")
    with caplog.at_level("WARNING"):
        state = durable_checkpoints.load(str(folder / "checkpoint_last.pt"))
    assert state["optimizer_history"][-1]["num_updates"] == 4
    fault = "holds Python objects" if kind == "a pickle that runs code" else "damaged"
    assert f"checkpoint_last.pt: {fault}" in caplog.text and "checkpoint_1_4.pt instead" in caplog.text
    with pytest.raises(SystemExit, match=f"checkpoint_best.pt: {fault}"):  # a named checkpoint is never replaced
        durable_checkpoints.load(str(folder / "checkpoint_best.pt"))
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("suffix, others", [("-shard0", "-shard10"), ("", "-shard0")])
def test_only_the_same_part_replaces_a_damaged_part(trained, tmp_path, suffix, others):
    last = tmp_path / f"checkpoint_last{suffix}.pt"
    last.write_bytes(b"damaged")
    for name in ("checkpoint_1_4", "checkpoint_best", "checkpoint1", "checkpoint.best_loss_2.0001"):
        (tmp_path / f"{name}{others}.pt").write_bytes((trained / "checkpoint_1_4.pt").read_bytes())
    with pytest.raises(SystemExit, match=f"{last.name}: damaged, and no complete checkpoint has its suffix"):
        durable_checkpoints.load(str(last))
    for name in ("checkpoint_1_2", "checkpoint_best", "checkpoint1", "checkpoint.best_loss_2.0001"):
        other = tmp_path / f"{name}{suffix}.pt"
        other.write_bytes((trained / "checkpoint_1_2.pt").read_bytes())
        assert durable_checkpoints.load(str(last))["optimizer_history"][-1]["num_updates"] == 2
        other.unlink()


def test_a_sharded_checkpoint_is_restored_by_the_name_without_a_suffix(trained, data_bin, tmp_path, caplog):
    flags = [*FLAGS, "--restore-file", tmp_path / "x.pt", "--checkpoint-suffix=-shard0", "--max-update", 5]
    (tmp_path / "x.pt").write_bytes((trained / "checkpoint_1_4.pt").read_bytes())
    error = refused_training(data_bin, tmp_path / "refused", *flags)  # fairseq would start with new weights
    assert f"--restore-file {tmp_path}/x-shard0.pt does not exist" in error
    (tmp_path / "x.pt").rename(tmp_path / "x-shard0.pt")
    with caplog.at_level("INFO"):
        prepare_training(data_bin, tmp_path / "new", *flags)()
    assert "x-shard0.pt (epoch 1 @ 4 updates)" in caplog.text
    state = durable_checkpoints.load(str(tmp_path / "new" / "checkpoint_last-shard0.pt"))
    assert state["optimizer_history"][-1]["num_updates"] == 5


def test_the_previous_checkpoint_replaces_a_damaged_last_one(trained, data_bin, tmp_path, caplog):
    folder = copy_of(trained, tmp_path)
    for name in LAST:
        damage(folder / name, "cut off", None)
    prepare_training(data_bin, folder, *FLAGS)()
    assert caplog.text.count("checkpoint_1_4.pt instead, which has 4 updates") == 1
    assert_same_end(trained, folder)


def test_a_full_disk_stops_the_run_with_one_line_and_keeps_the_last_checkpoint(trained, data_bin, tmp_path):
    folder, before = copy_of(trained, tmp_path), contents(trained)
    run = prepare_training(data_bin, folder, *FLAGS, "--max-update", 8)
    with full_disk(max(map(len, before.values())) // 2), pytest.raises(SystemExit) as caught:
        run()
    assert re.search(r"^error: .*checkpoint_\w+\.pt: cannot be written \(File too large\)", str(caught.value))
    assert contents(folder) == before
    assert train_here(data_bin, folder, *FLAGS, "--max-update", 8)["train_inner"][0]["num_updates"] == "7"


@pytest.mark.soak
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("family", ["electra", "bert"])
def test_twenty_kills_change_nothing(family, criterion, data_bin, synonym_table, teacher, tmp_path):
    """Prints where each attempt ended."""
    flags = [*FAMILIES[family].split(), "--criterion", criterion, "--synonym-table", synonym_table]
    flags += ["--distillation-teacher", teacher] if criterion == "mlm_distillation" else []
    attempts = check_that_kills_change_nothing(data_bin, tmp_path, flags, kills=20, seed=len(criterion))
    print(f"\n{family} {criterion}: resumed from updates {attempts.resumed}")
    print("\n".join(f"  {end}" for end in attempts.ends))
