"""The numbers of the report, computed by hand."""

from pathlib import Path

import numpy as np
import pytest

from tn_fairseq.evaluation import bootstrap
from tn_fairseq.evaluation.robustness.attacks import Attack, Example
from tn_fairseq.evaluation.robustness.results import attack_rows, scores, text, values

CONTEXTS = ["a tom b", "c runs", "in may", "x y"]
ORIGINALS = [
    Example(("?", context), golds) for context, golds in zip(CONTEXTS, [("tom",), ("runs",), ("may", "in May"), ("y",)])
]
ATTACKED = [Example(("?", f"{context} z"), one.golds) for context, one in zip(CONTEXTS, ORIGINALS)]
ATTACK = Attack("swap", Path("swap.json"), "SQuAD", "SQuAD", ORIGINALS, ATTACKED, 5, None)


def predictions(original: list[str], attacked: list[str]) -> dict[tuple[str, str], str]:
    return dict(zip([one.texts for one in (*ORIGINALS, *ATTACKED)], original + attacked, strict=True))


# EM 3 of 4 -> 1 of 4; F1 3 + 2/3 of 4 -> 1 + 2/3 of 4
PLAIN = predictions(["Tom", "runs", "in may", "x y"], ["tom", "z", "c", "x y"])
# EM 2 of 4 -> 2 of 4
CORRECTED = predictions(["tom", "runs", "z", "z"], ["the tom", "z", "May!", "z"])


def rows_of(seeds: dict[str, list], baseline: str | None = None, attack: Attack = ATTACK):
    return [
        row
        for name, score in scores("SQuAD").items()
        for sides in [
            [
                examples and {key: values(score, examples, found) for key, found in seeds.items()}
                for examples in (attack.originals, attack.attacked)
            ]
        ]
        for row in attack_rows(attack, name, *sides, baseline)
    ]


def test_scores_and_drops():
    plain, corrected, plain_f1, _ = rows_of({"plain": [PLAIN], "corrected": [CORRECTED]}, "plain")
    assert (plain["original"], plain["attacked"], plain["drop"]) == (75, 25, 50)
    assert (corrected["original"], corrected["attacked"], corrected["drop"]) == (50, 50, 0)
    assert (plain_f1["original"], plain_f1["attacked"]) == pytest.approx((100 * (3 + 2 / 3) / 4, 100 * (1 + 2 / 3) / 4))
    differences = [corrected[f"{key}_difference"] for key in ("original", "attacked", "drop")]
    assert differences == [-25, 25, -50] and corrected["baseline"] == "plain"
    assert plain["drop_difference"] is plain["baseline"] is plain["drop_seed_sd"] is None
    assert (plain["examples"], plain["total"], plain["seeds"], plain["score"]) == (4, 5, 1, "EM")


def test_seeds_are_averaged():
    (em, _) = rows_of({"both": [PLAIN, CORRECTED]})
    assert (em["original"], em["attacked"], em["drop"], em["seeds"]) == (62.5, 37.5, 25, 2)
    assert em["drop_seed_sd"] == pytest.approx(50 / 2**0.5) and em["attacked_seed_sd"] == pytest.approx(25 / 2**0.5)


def test_intervals_are_paired(monkeypatch):
    """A checkpoint that is right on other questions, but loses as many, has the same drop in every resample."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 200)
    rng = np.random.default_rng(1)
    original = {name: 100.0 * rng.integers(0, 2, (1, 500)) for name in ("plain", "other")}
    attack = Attack("swap", Path("swap.json"), "SQuAD", "SQuAD", ORIGINALS * 125, ATTACKED * 125, 500, None)
    lost = 100.0 * (rng.random((1, 500)) < 0.1)
    attacked = {name: found - lost for name, found in original.items()}
    plain, other = attack_rows(attack, "EM", original, attacked, "plain")
    assert other["drop_difference_low"] == other["drop_difference_high"] == 0
    assert other["attacked_difference_high"] - other["attacked_difference_low"] > 8
    # the drop varies less than the two scores
    assert plain["drop_high"] - plain["drop_low"] < 6 < plain["original_high"] - plain["original_low"]


def test_what_is_undefined_is_none():
    attack = Attack("dev", Path("dev.json"), "SQuAD", "SQuAD", None, ATTACKED, 4, None)
    alone, _ = rows_of({"plain": [PLAIN]}, None, attack)
    assert alone["original"] is alone["drop"] is alone["drop_low"] is None and alone["attacked"] == 25
    assert alone["attacked_low"] < 25 < alone["attacked_high"]
    attack = Attack("swap", Path("swap.json"), "SQuAD", "SQuAD", ORIGINALS[:1], ATTACKED[:1], 4, None)
    single, _ = rows_of({"plain": [PLAIN]}, None, attack)
    assert single["drop"] == 0 and single["drop_low"] is single["drop_high"] is None
    compared, _ = rows_of({"other": [PLAIN]}, "plain")  # the baseline has no run here
    assert compared["baseline"] is None and compared["drop_difference"] is None


def test_the_table():
    monkey = {"plain": [PLAIN], "corrected": [CORRECTED, PLAIN]}
    lines = text(rows_of(monkey, "plain"), show_paper=True).splitlines()
    assert lines[0] == "swap: SQuAD, 4 of 5 questions"
    assert lines[1].split() == "seeds EM original EM attacked EM drop F1 original F1 attacked F1 drop".split()
    assert lines[2].startswith("plain") and "75.00 ± " in lines[2] and "50.00 ± " in lines[2]
    assert lines[3].split()[:3] == ["corrected", "2", "62.50"] and lines[4].split()[:2] == ["sd", "17.68"]
    assert lines[5].startswith("  minus plain") and "-12.50 ± " in lines[5] and "+12.50 ± " in lines[5]
    paper = lines[lines.index("from the paper (not ours): SQuAD") :]
    assert paper[2].split() == "AddSentenceDiverse, ELECTRA-small 293 80.55 25.60 54.95 85.10 26.43 58.67".split()
    assert len(paper) == 1 + 1 + 6 + 2 and "differences below about 7 EM" in paper[-1]
    assert not [line for line in text(rows_of(monkey)).splitlines() if "paper" in line or "minus plain" in line]


def test_columns_without_originals():
    attack = Attack("dev", Path("dev.json"), "RTE", "RTE", None, ATTACKED, 4, None)
    lines = text(rows_of({"plain": [PLAIN]}, None, attack)).splitlines()
    assert lines[0] == "dev: RTE, 4 examples" and lines[1].split() == "seeds EM attacked F1 attacked".split()
