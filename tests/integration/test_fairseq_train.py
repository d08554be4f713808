"""Every criterion on every model family: golden curves and exact resume, some through the real command line."""

import json
import os
from pathlib import Path

import pytest
from helpers import FAMILIES, RUNS, fairseq_train, train_here, write_data_bin
from interruption import assert_same_end

GOLDENS = Path(__file__).parent.parent / "goldens"
UPDATES = 6  # of a golden curve
CURVE = ["loss", "nll_loss", "mlm_accuracy", "false_negative_rate", "soft_reg", "sent_kl", "synonym_gain", "rtd_loss"]
CURVE += ["teacher_gold_probability", "teacher_prediction_probability"]


@pytest.fixture
def flags(run, synonym_table, teacher):
    family, criterion = run
    more = ["--distillation-teacher", teacher] if criterion == "mlm_distillation" else []
    return [*FAMILIES[family].split(), "--criterion", criterion, "--synonym-table", synonym_table, *more]


@pytest.fixture(scope="module")
def three_epochs(tmp_path_factory):
    """A corpus of five or six batches, so that 14 updates end in the third epoch."""
    data = write_data_bin(tmp_path_factory.mktemp("three-epochs"), sentences=68)
    return [data, "--batch-size", 4, "--max-update", 14, "--save-interval-updates", 7]


SEGMENTS = ["--batch-size", 5]  # of which there are more than blocks
DEFAULTS = [("bert", "electra"), ("electra", "mlm_hard_correction"), ("roberta", "mlm_soft_reg")]


def train(data, folder, *flags):
    """Train through the command line, with fairseq's default --num-workers 1."""
    result = fairseq_train(data, folder, *flags)
    assert result.code == 0, result.output
    return {kind: result.records(kind) for kind in ("train_inner", "valid")}


@pytest.mark.parametrize("run", RUNS, ids="-".join)
def test_trains_along_its_golden_curve(run, flags, data_bin, tmp_path):
    """The curves change only if the computation changes. TN_FAIRSEQ_WRITE_GOLDENS=1 writes new curves, which a commit
    must explain.
    """
    records = (train if run in DEFAULTS else train_here)(data_bin, tmp_path, *flags)["train_inner"]
    assert [int(record["num_updates"]) for record in records] == list(range(1, UPDATES + 1))
    curve = {key: [float(record[key]) for record in records] for key in CURVE if key in records[0]}
    assert "false_negative_rate" in curve
    path = GOLDENS / f"{'.'.join(run)}.json"
    if os.environ.get("TN_FAIRSEQ_WRITE_GOLDENS"):
        path.write_text(json.dumps(curve, indent=1) + "\n")
    golden = json.loads(path.read_text())
    assert list(curve) == list(golden)
    for key, values in golden.items():
        # fairseq logs three decimals, and processors sum in different orders
        assert curve[key] == pytest.approx(values, rel=2e-3, abs=2e-3), key


@pytest.mark.parametrize("run", DEFAULTS, ids="-".join)
def test_resumes_exactly_in_later_epochs(run, flags, three_epochs, tmp_path):
    """A run stopped in epochs two and three ends with the weights, moments and log of an uninterrupted run."""
    data, *lengths = three_epochs
    lengths += SEGMENTS if "electra_tiny" in flags else []
    whole = train(data, tmp_path / "whole", *flags, *lengths)
    assert {record["epoch"] for record in whole["train_inner"]} == {1, 2, 3}
    expected = [forget_time(record) for record in whole["train_inner"]]
    restore = ["--restore-file", tmp_path / "whole" / "checkpoint_2_7.pt"]
    second = train(data, tmp_path / "resumed", *flags, *lengths, *restore, "--max-update", 13)
    assert [forget_time(record) for record in second["train_inner"]] == expected[7:13]
    third = train(data, tmp_path / "resumed", *flags, *lengths)
    assert [forget_time(record) for record in third["train_inner"]] == expected[13:]
    assert forget_time(third["valid"][-1]) == forget_time(whole["valid"][-1])
    assert_same_end(tmp_path / "whole", tmp_path / "resumed")


def test_resumes_exactly_with_a_schedule_of_masks_and_documents_in_blocks(three_epochs, tmp_path):
    data, *lengths = three_epochs
    flags = [*FAMILIES["electra"].split(), "--criterion", "electra", *lengths, "--sample-break-mode", "none"]
    flags += ["--document-attention", "--mask-whole-words", "--mask-prob", 0.3, "--final-mask-prob", 0.1]
    whole = train_here(data, tmp_path / "whole", *flags)
    masked = [float(record["replaced_rate"]) for record in whole["train_inner"]]
    assert sum(masked[:4]) > 1.5 * sum(masked[-4:])
    train_here(data, tmp_path / "resumed", *flags, "--restore-file", tmp_path / "whole" / "checkpoint_2_7.pt")
    assert_same_end(tmp_path / "whole", tmp_path / "resumed")


def test_resumes_exactly_with_a_judge(synonym_table, three_epochs, tmp_path):
    """The judge is a model of another kind and accepts some of the corrections."""
    data, *lengths = three_epochs
    train_here(data, tmp_path / "judge", *FAMILIES["bert"].split(), "--criterion", "mlm", "--max-update", 1)
    flags = [*FAMILIES["electra"].split(), "--criterion", "mlm_hard_correction", "--synonym-table", synonym_table]
    judge = tmp_path / "judge" / "checkpoint_last.pt"
    flags += ["--correction-judge", judge, "--correction-judge-threshold", 0.45, *lengths, *SEGMENTS]
    whole = train_here(data, tmp_path / "whole", *flags)
    shares = [float(record["judge_agreement"]) for record in whole["train_inner"]]
    assert min(shares) < max(shares)
    train_here(data, tmp_path / "resumed", *flags, "--restore-file", tmp_path / "whole" / "checkpoint_2_7.pt")
    assert_same_end(tmp_path / "whole", tmp_path / "resumed")


@pytest.mark.parametrize("family", ["bert", "electra"])
def test_resumes_exactly_with_the_moving_average_as_the_teacher(family, synonym_table, three_epochs, tmp_path):
    data, *lengths = three_epochs
    flags = ["--task", "electra", *FAMILIES[family].split()[2:], "--criterion", "mlm_distillation", *lengths, *SEGMENTS]
    flags += ["--distillation-teacher", "ema", "--distillation-weight", 0.5, "--store-ema", "--ema-decay", 0.8]
    whole = train_here(data, tmp_path / "whole", *flags)
    differences = [abs(float(record["loss"]) - float(record["nll_loss"])) for record in whole["train_inner"]]
    assert min(differences) > 0
    train_here(data, tmp_path / "resumed", *flags, "--restore-file", tmp_path / "whole" / "checkpoint_2_7.pt")
    assert_same_end(tmp_path / "whole", tmp_path / "resumed")


def test_the_number_of_loader_processes_changes_nothing(synonym_table, three_epochs, tmp_path):
    data, *lengths = three_epochs
    flags = [*FAMILIES["electra"].split(), "--criterion", "mlm_hard_correction", "--synonym-table", synonym_table]
    train_here(data, tmp_path / "0", *flags, *lengths)
    for workers in (1, 2):
        train(data, tmp_path / str(workers), *flags, *lengths, "--num-workers", workers)
        assert_same_end(tmp_path / "0", tmp_path / str(workers))


def forget_time(record: dict) -> dict:
    """The record without times, and without the best loss, which differs for a run that started later."""
    clock = ("wps", "ups", "wall", "train_wall", "best_loss")
    return {key: value for key, value in record.items() if not key.removeprefix("valid_").startswith(clock)}
