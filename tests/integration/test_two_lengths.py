"""Short sequences first, then long ones: which positions each part of the training reaches."""

from helpers import FAMILIES, train_here

from tn_fairseq.checkpoints import load_checkpoint

POSITIONS = "embeddings.position_embeddings.weight"


def test_long_sequences_train_the_positions_that_short_ones_do_not_reach(data_bin, tmp_path):
    flags = [*FAMILIES["electra"].split(), "--criterion", "electra", "--weight-decay", 0]
    short, long = tmp_path / "short", tmp_path / "long"
    train_here(data_bin, short, *flags, "--tokens-per-sample", 16, "--save-interval-updates", 2)
    before, after = (load_checkpoint(short / name)["model"] for name in ("checkpoint_1_2.pt", "checkpoint_last.pt"))
    moved = (before[POSITIONS] != after[POSITIONS]).any(dim=1)
    assert moved[:16].all() and not moved[16:].any() and after["trained_positions"] == 16

    train_here(data_bin, long, *flags, "--finetune-from-model", short / "checkpoint_last.pt")
    final = load_checkpoint(long / "checkpoint_last.pt")["model"]
    moved = (final[POSITIONS] != after[POSITIONS]).any(dim=1)
    assert moved[:32].all() and not moved[32:].any() and final["trained_positions"] == 32
