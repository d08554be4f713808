"""bfloat16 on a CPU: exact resumption, and one precision per run."""

import copy

import pytest
import torch
from files import refused
from helpers import FAMILIES, train_here
from interruption import assert_same_end

from tn_fairseq.fairseq_patches import bf16

FLAGS = [*FAMILIES["bert"].split(), "--task", "electra", "--criterion", "mlm_hard_correction"]


@pytest.fixture
def train(data_bin, synonym_table, tmp_path):
    """Train in this process in a folder of the given name."""
    return lambda name, *flags: train_here(data_bin, tmp_path / name, *FLAGS, "--synonym-table", synonym_table, *flags)


def test_a_resumed_run_is_exact(train, tmp_path):
    train("full", "--bf16", "--max-update", 3)
    train("parts", "--bf16", "--max-update", 2)
    train("parts", "--bf16", "--max-update", 3)
    assert_same_end(tmp_path / "full", tmp_path / "parts")


@pytest.mark.parametrize(("first", "second"), [(["--bf16"], []), ([], ["--bf16"])])
def test_another_precision_is_refused(train, tmp_path, first, second):
    train("run", *first, "--max-update", 1)
    assert "--bf16" in refused(train, "run", *second, "--max-update", 2)
    start = ["--finetune-from-model"] if first else ["--reset-optimizer", "--reset-meters", "--restore-file"]
    train("new", *second, "--max-update", 1, *start, tmp_path / "run" / "checkpoint_last.pt")


def test_only_the_model_runs_under_autocast_and_its_copy_has_a_forward_of_its_own(build):
    _, model, _ = build("electra")
    bf16.run_under_autocast(model)
    logits, _ = model(torch.full((2, 5), 7))
    assert logits.dtype == torch.bfloat16 and not torch.is_autocast_enabled("cpu")
    average = copy.deepcopy(model)
    assert average.forward.__self__ is average


def test_a_cpu_without_fast_bf16_gets_one_warning(train, monkeypatch, caplog):
    monkeypatch.setattr(bf16, "has_fast_bf16", lambda: False)
    train("float32", "--max-update", 1)
    assert "slower" not in caplog.text
    train("slow", "--bf16", "--max-update", 1, "--store-ema")
    assert caplog.text.count("this CPU has neither AMX nor AVX512-BF16, so --bf16 is slower than float32") == 1
