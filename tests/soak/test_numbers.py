"""Longer runs in half precision: the loss scale rises and falls, weights stay finite, and the model learns."""

import math
import re

import pytest
import torch
from fairseq.data import Dictionary
from helpers import FAMILIES, write_split, write_table
from integration.test_workers import by_itself, every_criterion

from tn_fairseq.dictionary import load_dictionary

HALF = ["--fp16", "--fp16-no-flatten-grads"]


@pytest.mark.soak
@pytest.mark.parametrize("family", FAMILIES)
def test_a_corpus_of_one_word_is_learned_despite_many_overflows(family, tmp_path):
    data, updates = tmp_path / "data", 30
    data.mkdir()
    (data / "dict.txt").write_text("word 1\n")
    for split, sentences in (("train", 400), ("valid", 40)):
        write_split(data, split, Dictionary.load(str(data / "dict.txt")), [["word"] * 9] * sentences)
    table = write_table(tmp_path / "t.safetensors", load_dictionary(data / "dict.txt"), {})
    runs = {name: run for name, run in every_criterion(table, updates).items() if name.startswith(family)}
    assert len(runs) == 4
    flags = [*HALF, "--fp16-init-scale", 1 << 15, "--fp16-scale-window", 2, "--total-num-update", 2 * updates]
    trained = by_itself(tmp_path, data, {name: [*run, *flags] for name, run in runs.items()})
    for name, (run, state) in trained.items():
        skipped = [int(update) for update in re.findall(r"overflow.* at update (\d+),", run.output)]
        print(name, "skipped at", skipped)
        assert skipped == sorted(skipped) and skipped[0] == 1 and skipped[-1] > 1, name
        records = run.records("train_inner")
        assert [int(record["num_updates"]) for record in records] == list(range(1, updates + 1))
        assert all(math.isfinite(float(record[key])) for record in records for key in ("loss", "nll_loss", "gnorm"))
        assert all(torch.isfinite(tensor).all() for tensor in state["model"].values())
        assert float(run.records("valid")[-1]["valid_mlm_accuracy"]) > 80, name
        assert float(records[-1]["nll_loss"]) < float(records[0]["nll_loss"]) / 2, name


@pytest.mark.soak
def test_losses_whose_sum_overflows_in_half_precision(data_bin, synonym_table, tmp_path):
    runs = {name: run for name, run in every_criterion(synonym_table, updates=2).items() if name.startswith("electra")}
    flags = ["--batch-size", 128, "--mask-prob", 0.9, "--discriminator-loss-weight", 100, "--warmup-updates", 0]
    assert len(runs) == 4
    exact = by_itself(tmp_path / "float", data_bin, {name: [*run, *flags] for name, run in runs.items()})
    flags += [*HALF, "--fp16-init-scale", 1]
    rounded = by_itself(tmp_path / "half", data_bin, {name: [*run, *flags] for name, run in runs.items()})
    for name in runs:
        assert rounded[name].sums("default")["_loss"] / 2 > torch.finfo(torch.half).max
        losses = [
            [float(record["loss"]) for record in trained[name].run.records("train_inner")]
            for trained in (exact, rounded)
        ]
        assert len(losses[0]) == 2 and losses[1] == pytest.approx(losses[0], rel=1e-3), name
