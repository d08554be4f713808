"""Every criterion on every model family: golden curves in this process, and exact resume, also through the command."""

import json
import os
from pathlib import Path

import pytest
from helpers import FAMILIES, RUNS, run_command, train_here, training_flags, write_data_bin
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


def train(data, folder, *flags):
    """Train through the command line, with fairseq's default --num-workers 1."""
    result = run_command("fairseq-train", *training_flags(data, folder), *flags)
    assert result.code == 0, result.output
    return {kind: result.records(kind) for kind in ("train_inner", "valid")}


@pytest.mark.parametrize("run", RUNS, ids="-".join)
def test_trains_along_its_golden_curve(run, flags, data_bin, tmp_path):
    """The curves change only if the computation changes. TN_FAIRSEQ_WRITE_GOLDENS=1 writes new curves, which a commit
    must explain.
    """
    records = train_here(data_bin, tmp_path, *flags)["train_inner"]
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


def numbers(records: dict, key: str) -> list[float]:
    return [float(record[key]) for record in records["train_inner"]]


HARD = "--criterion mlm_hard_correction --synonym-table TABLE"
EMA = "--criterion mlm_distillation --distillation-teacher ema --distillation-weight 0.5 --store-ema --ema-decay 0.8"
MASKS = "--sample-break-mode none --document-attention --mask-whole-words --mask-prob 0.3 --final-mask-prob 0.1"
# what is resumed: the family, the flags, and what the complete run must have logged
RESUMED = {
    "roberta": ("roberta", "--criterion mlm_soft_reg", None),
    "the command, with a judge": (
        "electra",
        f"{HARD} --correction-judge TEACHER --correction-judge-threshold 0.45",
        lambda log: min(numbers(log, "judge_agreement")) < max(numbers(log, "judge_agreement")),
    ),
    "a schedule of masks": (
        "electra",
        f"--criterion electra {MASKS}",
        lambda log: sum(numbers(log, "replaced_rate")[:4]) > 1.5 * sum(numbers(log, "replaced_rate")[-4:]),
    ),
    "a moving average as the teacher": (
        "bert",
        f"--task electra {EMA}",
        lambda log: all(map(float.__ne__, numbers(log, "loss"), numbers(log, "nll_loss"))),
    ),
}


@pytest.mark.parametrize("what", RESUMED)
def test_resumes_exactly_in_later_epochs(what, three_epochs, synonym_table, teacher, tmp_path):
    """A run stopped in epochs two and three ends with the weights, moments and log of an uninterrupted run."""
    family, flags, logged = RESUMED[what]
    data, *lengths = three_epochs
    lengths += SEGMENTS if (family == "electra" or "--task" in flags) and MASKS not in flags else []
    stop = ["--max-update", 13] if MASKS not in flags else []  # which would change the schedule
    files = {"TABLE": synonym_table, "TEACHER": teacher}
    flags = [*FAMILIES[family].split(), *(files.get(word, word) for word in flags.split())]
    run = train if what.startswith("the command") else train_here
    whole = run(data, tmp_path / "whole", *flags, *lengths)
    assert {record["epoch"] for record in whole["train_inner"]} == {1, 2, 3} and (logged is None or logged(whole))
    expected = [forget_time(record) for record in whole["train_inner"]]
    restore = ["--restore-file", tmp_path / "whole" / "checkpoint_2_7.pt"]
    parts = [run(data, tmp_path / "resumed", *flags, *lengths, *restore, *stop)]
    if stop:
        assert len(parts[0]["train_inner"]) == 6
        parts.append(run(data, tmp_path / "resumed", *flags, *lengths))
    assert [forget_time(record) for part in parts for record in part["train_inner"]] == expected[7:]
    assert forget_time(parts[-1]["valid"][-1]) == forget_time(whole["valid"][-1])
    assert_same_end(tmp_path / "whole", tmp_path / "resumed")


def test_the_number_of_loader_processes_changes_nothing(synonym_table, three_epochs, tmp_path):
    data, *lengths = three_epochs
    flags = [*FAMILIES["electra"].split(), "--criterion", "mlm_hard_correction", "--synonym-table", synonym_table]
    train_here(data, tmp_path / "0", *flags, *lengths)
    train(data, tmp_path / "2", *flags, *lengths, "--num-workers", 2)
    assert_same_end(tmp_path / "0", tmp_path / "2")


def forget_time(record: dict) -> dict:
    """The record without times, and without the best loss, which differs for a run that started later."""
    clock = ("wps", "ups", "wall", "train_wall", "best_loss")
    return {key: value for key, value in record.items() if not key.removeprefix("valid_").startswith(clock)}
