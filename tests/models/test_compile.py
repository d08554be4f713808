"""``--compile-model``: the same model and checkpoints, and no recompilation for other lengths."""

import pytest
import torch
from helpers import FAMILIES, fairseq_train, first_batch
from torch._dynamo.utils import counters

NO_DROPOUT = ["--criterion", "electra", "--dropout", 0, "--attention-dropout", 0]


@pytest.fixture
def both(build):
    """The same ELECTRA twice: uncompiled and compiled."""
    torch._dynamo.reset()
    task, eager, criterion = build("electra", *NO_DROPOUT)
    _, compiled, _ = build("electra", *NO_DROPOUT, "--compile-model")
    return task, eager, compiled, criterion


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


def test_lengths_and_batch_sizes_do_not_recompile(both):
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
    for rows, length in ((4, 24), (3, 16), (8, 31), (5, 7), (2, 32), (6, 30)):
        for padded in (False, True):
            run(rows, length, padded)
    assert counters["stats"]["unique_graphs"] == graphs


def test_a_compiled_run_resumes_exactly_and_can_continue_uncompiled(data_bin, tmp_path):
    flags = [*FAMILIES["electra"].split(), "--criterion", "electra"]
    whole = fairseq_train(
        data_bin, tmp_path / "whole", *flags, "--compile-model", "--max-update", 4, "--save-interval-updates", 2
    )
    assert whole.code == 0, whole.output
    middle = tmp_path / "whole" / "checkpoint_1_2.pt"
    resumed = fairseq_train(
        data_bin, tmp_path / "resumed", *flags, "--compile-model", "--max-update", 4, "--restore-file", middle
    )
    assert resumed.code == 0, resumed.output
    states = [torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=True) for name in ("whole", "resumed")]
    for name, tensor in states[0]["model"].items():
        assert torch.equal(tensor, states[1]["model"][name]), name
    eager = fairseq_train(data_bin, tmp_path / "eager", *flags, "--max-update", 3, "--restore-file", middle)
    assert eager.code == 0 and eager.records("train_inner")[0]["num_updates"] == "3", eager.output
