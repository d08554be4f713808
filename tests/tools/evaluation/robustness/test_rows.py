"""The numbers of the report, computed by hand, and their layout."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score, matthews_corrcoef

from tn_fairseq.tools.evaluation import bootstrap
from tn_fairseq.tools.evaluation.robustness.attacks import Attack, Example
from tn_fairseq.tools.evaluation.robustness.robustness_report import attack_rows, text

CONTEXTS = ["a tom b", "c runs", "in may", "x y"]
GOLDS = [("tom",), ("runs",), ("may", "in May"), ("y",)]
ORIGINALS = [Example(("?", context), golds) for context, golds in zip(CONTEXTS, GOLDS)]
ATTACKED = [Example(("?", f"{context} z"), golds) for context, golds in zip(CONTEXTS, GOLDS)]


def attack_of(originals=ORIGINALS, attacked=ATTACKED, total=5, data="SQuAD") -> Attack:
    return Attack("swap", Path("swap.json"), data, data, originals, attacked, total, None)


def predictions(original: list[str], attacked: list[str], attack: Attack = attack_of()) -> dict:  # noqa: B008
    return dict(zip([one.texts for one in (*attack.originals, *attack.attacked)], original + attacked, strict=True))


# EM 3 of 4 -> 1 of 4; F1 3 + 2/3 of 4 -> 1 + 2/3 of 4
PLAIN = predictions(["Tom", "runs", "in may", "x y"], ["tom", "z", "c", "x y"])
# EM 2 of 4 -> 2 of 4
CORRECTED = predictions(["tom", "runs", "z", "z"], ["the tom", "z", "May!", "z"])


def test_scores_and_drops():
    plain, corrected, plain_f1, _ = attack_rows(attack_of(), {"plain": [PLAIN], "corrected": [CORRECTED]}, "plain")
    assert (plain["original"], plain["attacked"], plain["drop"]) == (75, 25, 50)
    assert (corrected["original"], corrected["attacked"], corrected["drop"]) == (50, 50, 0)
    assert (plain_f1["original"], plain_f1["attacked"]) == pytest.approx((100 * (3 + 2 / 3) / 4, 100 * (1 + 2 / 3) / 4))
    differences = [corrected[f"{key}_difference"] for key in ("original", "attacked", "drop")]
    assert differences == [-25, 25, -50] and corrected["baseline"] == "plain"
    assert plain["drop_difference"] is plain["baseline"] is plain["drop_seed_sd"] is None
    assert (plain["examples"], plain["total"], plain["seeds"], plain["score"]) == (4, 5, 1, "EM")


def test_seeds_are_averaged():
    em, _ = attack_rows(attack_of(), {"both": [PLAIN, CORRECTED]})
    assert (em["original"], em["attacked"], em["drop"], em["seeds"]) == (62.5, 37.5, 25, 2)
    assert em["drop_seed_sd"] == pytest.approx(50 / 2**0.5) and em["attacked_seed_sd"] == pytest.approx(25 / 2**0.5)


def test_intervals_are_paired(monkeypatch):
    """A checkpoint that is right on other questions, but loses as many, has the same drop in every resample."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 200)
    rng = np.random.default_rng(1)
    attack = attack_of(*([Example((side, str(number)), ("y",)) for number in range(500)] for side in "ab"))
    lost = rng.random(500) < 0.1
    groups = {}
    for name in ("plain", "other"):
        right = (rng.random(500) < 0.5) | lost  # what is lost was right
        groups[name] = [predictions(*(np.where(one, "y", "z").tolist() for one in (right, right & ~lost)), attack)]
    plain, other, *_ = attack_rows(attack, groups, "plain")
    assert other["drop_difference_low"] == other["drop_difference_high"] == 0
    assert other["attacked_difference_high"] - other["attacked_difference_low"] > 8
    # the drop varies less than the two scores
    assert plain["drop_high"] - plain["drop_low"] < 6 < plain["original_high"] - plain["original_low"]


@pytest.mark.parametrize(("task", "place"), [("SQuAD", 1), ("QNLI", 1), ("MNLI", 0), ("RTE", 0)])
def test_examples_with_one_context_are_resampled_together(task, place, monkeypatch):
    """More questions on the same contexts, answered alike, narrow no interval, though each is attacked differently."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 100)
    right = np.random.default_rng(1).random((2, 100)) < [[0.8], [0.5]]
    rows = []
    for questions in (1, 3):
        sides = []
        for attack in ("", " z{}"):
            texts = [(f"question {n}", f"context {n % 100}{attack.format(n)}") for n in range(100 * questions)]
            sides.append([Example(text if place else text[::-1], ("y",)) for text in texts])
        answers = ["y" if one else "z" for side in right for one in np.tile(side, questions)]
        attack = attack_of(*sides, data=task)
        found = predictions(answers[: 100 * questions], answers[100 * questions :], attack)
        row, *_ = attack_rows(attack, {"plain": [found]})
        rows.append([row[key] for key in ("original", "attacked", "drop", "drop_low", "drop_high")])
    assert rows[1] == pytest.approx(rows[0]) and rows[0][4] - rows[0][3] > 15


def test_metrics_of_all_examples_together(monkeypatch):
    """F1 of MRPC, Matthews' correlation of CoLA and their drops, in every resample those of the resampled examples."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 200)
    rng = np.random.default_rng(2)
    golds, before, after = rng.integers(0, 2, (3, 60)).astype(str)
    sides = [[Example((f"{side}{n}",), (gold,)) for n, gold in enumerate(golds)] for side in "ab"]
    for task, names in (("MRPC", ["accuracy", "f1"]), ("CoLA", ["matthews"])):
        attack = attack_of(*sides, data=task)
        plain, same = (predictions(list(one), list(other), attack) for one, other in ((before, after), (before,) * 2))
        found = attack_rows(attack, {"plain": [plain, plain], "same": [same]}, "same")
        assert [row["score"] for row in found[::2]] == names
        row, of_same = found[-2:]
        score = f1_score if task == "MRPC" else matthews_corrcoef
        one, other = (100 * score(golds.astype(int), classes.astype(int)) for classes in (before, after))
        assert (row["original"], row["attacked"], row["drop"]) == pytest.approx((one, other, one - other))
        assert row["original_difference"] == of_same["drop"] == 0
        assert row["drop_difference"] == pytest.approx(one - other)
        assert row["drop_low"] < row["drop"] < row["drop_high"] and of_same["drop_low"] == of_same["drop_high"] == 0
    alone, *_ = attack_rows(attack_of(None, sides[0], data="CoLA"), {"same": [same]})
    assert alone["original"] is alone["drop"] is None and alone["attacked"] == pytest.approx(one)


def test_what_is_undefined_is_none():
    alone, *_ = attack_rows(attack_of(None), {"plain": [PLAIN], "other": [CORRECTED]}, "other")
    assert alone["original"] is alone["drop"] is alone["drop_low"] is None and alone["attacked"] == 25
    assert alone["attacked_low"] < 25 < alone["attacked_high"] and alone["attacked_difference"] == -25
    single, _ = attack_rows(attack_of(ORIGINALS[:1], ATTACKED[:1]), {"plain": [PLAIN]})
    assert single["drop"] == 0 and single["drop_low"] is single["drop_high"] is None
    compared, _ = attack_rows(attack_of(), {"other": [PLAIN]}, "plain")  # the baseline has no run here
    assert compared["baseline"] is None and compared["drop_difference"] is None


def test_the_table():
    rows = attack_rows(attack_of(), {"plain": [PLAIN], "corrected": [CORRECTED, PLAIN]}, "plain")
    lines = text(rows, show_paper=True).splitlines()
    assert lines[0] == "swap: SQuAD, 4 of 5 questions"
    assert lines[1].split() == "seeds EM original EM attacked EM drop F1 original F1 attacked F1 drop".split()
    assert lines[2].startswith("plain") and "75.00 ± " in lines[2] and "50.00 ± " in lines[2]
    assert lines[3].split()[:3] == ["corrected", "2", "62.50"] and lines[4].split()[:2] == ["sd", "17.68"]
    assert lines[5].startswith("  minus plain") and "-12.50 ± " in lines[5] and "+12.50 ± " in lines[5]
    half = (rows[1]["drop_difference_high"] - rows[1]["drop_difference_low"]) / 2
    assert f"-25.00 ± {half:.2f}" in lines[5]
    paper = lines[lines.index("from the paper (not ours): SQuAD") :]
    assert paper[2].split() == "AddSentenceDiverse, ELECTRA-small 293 80.55 25.60 54.95 85.10 26.43 58.67".split()
    assert len(paper) == 1 + 1 + 6 + 2 and "differences below about 7 EM" in paper[-1]
    alone = text(attack_rows(attack_of(), {"plain": [PLAIN]}))
    assert "paper" not in alone and "minus plain" not in alone


def test_columns_without_originals():
    lines = text(attack_rows(attack_of(None, total=4, data="RTE"), {"plain": [PLAIN]})).splitlines()
    assert lines[0] == "swap: RTE, 4 examples" and lines[1].split() == "seeds accuracy attacked".split()
