"""Numerical limits: half precision, NaN gradients, and a corpus of one word."""

import math
import re

import pytest
import torch
from fairseq.data import Dictionary
from helpers import FAMILIES, FEWER_RUNS, PAPER, refused_training, write_split, write_table
from integration.test_workers import by_itself, every_criterion

from tn_fairseq.core.dictionary import load_dictionary


def test_a_diverging_run_stops_with_one_line_that_names_the_update(data_bin, tmp_path, caplog, capfd):
    caplog.set_level("INFO")
    flags = [*FAMILIES["electra"].split(), "--criterion", "electra", "--lr", 1e30, "--clip-norm", 0]
    error = refused_training(data_bin, tmp_path, *flags)
    updates = [record for record in caplog.records if record.name == "train_inner"]
    assert f"update {len(updates) + 1}" in error and updates
    printed = "".join(capfd.readouterr()) + caplog.text
    assert "norms:" not in printed and "gradients:" not in printed  # fairseq prints them for every parameter


HALF = ["--fp16", "--fp16-no-flatten-grads"]
TOLERANCES = {
    "fp16": {"nll_loss": 1e-3, "loss": 5e-3, "gnorm": 2e-2},
    "bf16": {"nll_loss": 4e-3, "loss": 1e-2, "gnorm": 5e-2},
}


@pytest.mark.slow
def test_half_precisions_follow_float32(data_bin, synonym_table, teacher, tmp_path):
    every = every_criterion(synonym_table, teacher, updates=2)
    runs = {name: every[name] for name in map(".".join, FEWER_RUNS)}
    scale = 8.0
    precisions = {"float32": [], "fp16": [*HALF, "--fp16-init-scale", int(scale)], "bf16": ["--bf16"]}
    # full blocks: one prediction matters less
    common = ["--warmup-updates", 0, "--sample-break-mode", "none"]
    # fp16 only with the paper's objectives
    pairs = [(name, p) for name in runs for p in precisions if p != "fp16" or name.partition(".")[2] in PAPER]
    trained = by_itself(tmp_path, data_bin, {f"{n} {p}": [*runs[n], *common, *precisions[p]] for n, p in pairs})
    for name, precision in pairs:
        if precision == "float32":
            continue
        exact, rounded = trained[f"{name} float32"], trained[f"{name} {precision}"]
        weights = rounded.state["model"]
        assert weights.keys() == exact.state["model"].keys()
        for key, tensor in weights.items():
            assert torch.isfinite(tensor).all(), (name, key)
            if precision == "fp16":
                assert torch.equal(tensor, tensor.half().to(tensor.dtype)), (name, key)
            else:  # the model runs in bfloat16, but weights and moments are float32
                assert tensor.dtype == exact.state["model"][key].dtype, (name, key)
        if precision == "fp16":
            assert rounded.state["last_optimizer_state"]["loss_scale"] == scale
        else:
            assert any(not torch.equal(tensor, exact.state["model"][key]) for key, tensor in weights.items())
            assert any(not torch.equal(tensor, tensor.bfloat16().to(tensor.dtype)) for tensor in weights.values())
            moments = rounded.state["last_optimizer_state"]["state"].values()
            assert all(moment["exp_avg"].dtype == torch.float32 for moment in moments)
            assert rounded.state["cfg"]["common"]["bf16"]
        for kind, updates in (("train_inner", 2), ("valid", 1)):
            records = [trainings.run.records(kind) for trainings in (exact, rounded)]
            assert len(records[0]) == len(records[1]) == updates
            prefix = "valid_" if kind == "valid" else ""
            # a prediction that changes because of a rounded logit changes the loss and its gradient by more than the
            # precision's 0.05% or 0.4%
            for key, tolerance in TOLERANCES[precision].items():
                if prefix + key in records[0][0]:
                    shown = [[float(record[prefix + key]) for record in part] for part in records]
                    assert shown[1] == pytest.approx(shown[0], rel=tolerance), (name, kind, key)


def test_at_the_minimum_loss_scale_a_run_stops_with_one_line(data_bin, tmp_path, caplog):
    flags = [*FAMILIES["bert"].split(), "--criterion", "electra", *HALF]
    with caplog.at_level("INFO"):
        error = refused_training(data_bin, tmp_path, *flags, "--fp16-init-scale", 1 << 30, "--min-loss-scale", 1 << 28)
    assert error.startswith(f"error: update 1: Minimum loss scale reached ({2.0**28})")
    assert caplog.text.count("overflow detected") == 1
    assert f"ignoring gradient, at update 1, setting loss scale to: {2.0**29}\n" in caplog.text
    assert "train_inner" not in caplog.text


@pytest.mark.slow
def test_a_corpus_of_one_word_is_learned_despite_many_overflows(tmp_path):
    """The loss scale rises and falls, weights stay finite, and the model learns."""
    data, updates = tmp_path / "data", 30
    data.mkdir()
    (data / "dict.txt").write_text("word 1\n")
    for split in ("train", "valid"):
        write_split(data, split, Dictionary.load(str(data / "dict.txt")), [["word"] * 9] * 400)
    table = write_table(tmp_path / "t.safetensors", load_dictionary(data / "dict.txt"), {})
    every = every_criterion(table, tmp_path / "no teacher", updates)
    runs = {name: every[name] for name in ("bert.electra", "roberta.mlm_soft_reg", "electra.mlm_hard_correction")}
    flags = [*HALF, "--fp16-init-scale", 1 << 15, "--fp16-scale-window", 2, "--total-num-update", 2 * updates]
    trained = by_itself(tmp_path, data, {name: [*run, *flags] for name, run in runs.items()})
    for name, (run, state) in trained.items():
        skipped = [int(update) for update in re.findall(r"overflow.* at update (\d+),", run.output)]
        assert skipped == sorted(skipped) and skipped[0] == 1 and skipped[-1] > 1, name
        records = run.records("train_inner")
        assert [int(record["num_updates"]) for record in records] == list(range(1, updates + 1))
        assert all(math.isfinite(float(record[key])) for record in records for key in ("loss", "nll_loss", "gnorm"))
        assert all(torch.isfinite(tensor).all() for tensor in state["model"].values())
        assert float(run.records("valid")[-1]["valid_mlm_accuracy"]) > 80, name
        assert float(records[-1]["nll_loss"]) < float(records[0]["nll_loss"]) / 2, name
