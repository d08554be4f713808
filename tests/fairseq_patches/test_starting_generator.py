"""When a run loads an existing generator, and which runs are refused."""

from argparse import Namespace

import pytest

from tn_fairseq.errors import InputError
from tn_fairseq.fairseq_patches.starting_generator import is_new, start


def run(save_dir, **options) -> Namespace:
    return Namespace(
        **{"save_dir": str(save_dir), "restore_file": "checkpoint_last.pt", "continue_once": None, **options}
    )


def test_a_run_is_new_until_it_has_a_checkpoint(tmp_path):
    trainer, shard = Namespace(checkpoint_suffix=""), Namespace(checkpoint_suffix="-shard0")
    assert is_new(run(tmp_path), trainer)
    assert not is_new(run(tmp_path, restore_file="other.pt"), trainer)
    assert not is_new(run(tmp_path, continue_once="other.pt"), trainer)
    (tmp_path / "checkpoint_last.pt").touch()
    assert not is_new(run(tmp_path), trainer) and is_new(run(tmp_path), shard)


def test_a_new_generator_cannot_be_frozen(build):
    _, model, _ = build("electra")
    start(model, None, None)
    model.cfg.freeze_generator = True
    with pytest.raises(InputError, match="^--freeze-generator would freeze an untrained generator; give one with --ge"):
        start(model, None, None)
    start(model, "imported.pt", None)


def test_two_generators_are_refused(build):
    _, model, _ = build("electra")
    model.cfg.generator_checkpoint = "generator.pt"
    with pytest.raises(InputError, match="^--finetune-from-model imported.pt has a generator, too; give only that, or"):
        start(model, "imported.pt", None)
