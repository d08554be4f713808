"""``--compile-model``: the same model and checkpoints, and no recompilation for other lengths."""

from functools import partialmethod

import pytest
import torch
from helpers import FAMILIES, first_batch, prepare_training
from interruption import assert_equal
from torch._dynamo.utils import counters

from tn_fairseq.core.checkpoints import load_checkpoint
from tn_fairseq.modules.transformer_encoder import TransformerLayer

SMALL = ["--encoder-layers", 1, "--generator-layers", 1]
NO_DROPOUT = ["--criterion", "electra", "--dropout", 0, "--attention-dropout", 0, *SMALL]


@pytest.fixture
def without_code(monkeypatch):
    """Trace the layers as ``torch.compile`` does, but do not generate code, which takes minutes."""
    monkeypatch.setattr(TransformerLayer, "compile", partialmethod(TransformerLayer.compile, backend="eager"))


@pytest.fixture
def both(build):
    """The same ELECTRA twice: uncompiled and compiled."""
    torch._dynamo.reset()
    counters.clear()
    task, eager, criterion = build("electra", *NO_DROPOUT)
    _, compiled, _ = build("electra", *NO_DROPOUT, "--compile-model")
    return task, eager, compiled, criterion


@pytest.mark.slow
def test_names_losses_and_gradients_are_the_same(both):
    task, eager, compiled, criterion = both
    assert eager.state_dict().keys() == compiled.state_dict().keys()
    compiled.load_state_dict(eager.state_dict())
    batch, found = first_batch(task), []
    for model in (eager, compiled):
        torch.manual_seed(1)  # for the generator's draws
        loss, _, _ = criterion(model, batch)
        loss.backward()
        found.append([loss.detach(), *(parameter.grad for parameter in model.parameters())])
    assert counters["stats"]["unique_graphs"] > 0  # it was compiled
    for ours, theirs in zip(*found):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_lengths_and_batch_sizes_do_not_recompile(without_code, both):
    _, _, compiled, _ = both
    generator = torch.Generator().manual_seed(1)

    def run(rows: int, length: int, padded: bool) -> None:
        tokens = torch.randint(4, 100, (rows, length), generator=generator)
        if padded:
            tokens[0, -1] = compiled.padding_index
        hidden, _ = compiled(tokens, features_only=True)
        hidden.sum().backward()

    for padded in (False, True):
        run(4, 16, padded)
    graphs = counters["stats"]["unique_graphs"]
    assert graphs > 0
    for rows, length in ((4, 24), (3, 16), (8, 31), (5, 7), (2, 32), (6, 30)):
        for padded in (False, True):
            run(rows, length, padded)
    assert counters["stats"]["unique_graphs"] == graphs


def test_a_compiled_run_resumes_exactly_and_can_continue_uncompiled(without_code, data_bin, tmp_path):
    def train(name: str, *flags: object) -> dict:
        base = [*FAMILIES["electra"].split(), "--criterion", "electra", "--num-workers", 0, *SMALL]
        prepare_training(data_bin, tmp_path / name, *base, "--disable-validation", *flags)()
        return load_checkpoint(tmp_path / name / "checkpoint_last.pt")

    whole = train("whole", "--compile-model", "--max-update", 4, "--save-interval-updates", 2)
    middle = "--restore-file", tmp_path / "whole" / "checkpoint_1_2.pt"
    assert_equal(train("resumed", "--compile-model", "--max-update", 4, *middle)["model"], whole["model"])
    assert train("uncompiled", "--max-update", 3, *middle)["optimizer_history"][-1]["num_updates"] == 3
