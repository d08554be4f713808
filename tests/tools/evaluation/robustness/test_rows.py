"""The numbers of the report, computed by hand, and their layout."""

from pathlib import Path

import numpy as np
import pytest

from tn_fairseq.tools.evaluation import bootstrap
from tn_fairseq.tools.evaluation.robustness.attacks import Attack, Example
from tn_fairseq.tools.evaluation.robustness.robustness_report import robustness_text
from tn_fairseq.tools.evaluation.robustness.scores import attack_rows
from tn_fairseq.tools.reporting.comparison import Comparison, corrected

CONTEXTS = ["a tom b", "c runs", "in may", "x y"]
GOLDS = [("tom",), ("runs",), ("may", "in May"), ("y",)]
ORIGINALS = [Example(("?", context), golds) for context, golds in zip(CONTEXTS, GOLDS)]
ATTACKED = [Example(("?", f"{context} z"), golds) for context, golds in zip(CONTEXTS, GOLDS)]


def attack_of(originals=ORIGINALS, attacked=ATTACKED) -> Attack:
    return Attack("swap", Path("swap.json"), originals, attacked, 5, None)


def predictions(original: list[str], attacked: list[str], attack: Attack = attack_of()) -> dict:  # noqa: B008
    return dict(zip([one.texts for one in (*attack.originals, *attack.attacked)], original + attacked, strict=True))


# EM 3 of 4 -> 1 of 4; F1 3 + 2/3 of 4 -> 1 + 2/3 of 4
PLAIN = predictions(["Tom", "runs", "in may", "x y"], ["tom", "z", "c", "x y"])
# EM 2 of 4 -> 2 of 4
CORRECTED = predictions(["tom", "runs", "z", "z"], ["the tom", "z", "May!", "z"])


def rows_of(
    attack: Attack, groups: dict[str, list[dict]], baseline: str | None = None
) -> dict[tuple[str, str], Comparison]:
    """The rows by checkpoint and measure."""
    return {(row.name, row.measure): row for row in attack_rows(attack, groups, baseline)}


def of(
    rows: dict[tuple[str, str], Comparison], name: str, score: str = "EM", field: str = "value"
) -> list[float | None]:
    """A field of the original and the attacked score, and of the drop."""
    return [getattr(rows[name, f"{score} {kind}"], field) for kind in ("original", "attacked", "drop")]


def test_scores_and_drops():
    rows = rows_of(attack_of(), {"plain": [PLAIN], "corrected": [CORRECTED]}, "plain")
    assert of(rows, "plain") == [75, 25, 50] and of(rows, "corrected") == [50, 50, 0]
    assert of(rows, "plain", "F1")[:2] == pytest.approx((100 * (3 + 2 / 3) / 4, 100 * (1 + 2 / 3) / 4))
    assert of(rows, "corrected", field="difference") == [-25, 25, -50]
    assert of(rows, "corrected", field="baseline") == ["plain"] * 3
    assert of(rows, "plain", field="difference") == of(rows, "plain", field="seed_sd") == [None] * 3
    row = rows["plain", "EM drop"]
    assert (row.data, row.items, row.seeds, row.unit) == ("SQuAD under swap", 4, 1, "%")


def test_seeds_are_averaged():
    rows = rows_of(attack_of(), {"both": [PLAIN, CORRECTED]})
    assert of(rows, "both") == [62.5, 37.5, 25] and rows["both", "EM drop"].seeds == 2
    assert of(rows, "both", field="seed_sd")[1:] == pytest.approx([25 / 2**0.5, 50 / 2**0.5])


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
    rows = rows_of(attack, groups, "plain")
    drop, attacked = rows["other", "EM drop"], rows["other", "EM attacked"]
    assert drop.difference_low == drop.difference_high == 0
    assert attacked.difference_high - attacked.difference_low > 8
    # the drop varies less than the two scores
    original, _, drop = (
        high - low for low, high in zip(of(rows, "plain", field="low"), of(rows, "plain", field="high"))
    )
    assert drop < 6 < original


def test_questions_on_one_context_are_resampled_together(monkeypatch):
    """More questions on the same contexts, answered alike, narrow no interval, though each is attacked differently."""
    monkeypatch.setattr(bootstrap, "RESAMPLES", 100)
    right = np.random.default_rng(1).random((2, 100)) < [[0.8], [0.5]]
    found = []
    for questions in (1, 3):
        sides = [
            [Example((f"question {n}", f"context {n % 100}{attack.format(n)}"), ("y",)) for n in range(100 * questions)]
            for attack in ("", " z{}")
        ]
        answers = ["y" if one else "z" for side in right for one in np.tile(side, questions)]
        attack = attack_of(*sides)
        rows = rows_of(attack, {"plain": [predictions(answers[: 100 * questions], answers[100 * questions :], attack)]})
        drop = rows["plain", "EM drop"]
        found.append([*of(rows, "plain"), drop.low, drop.high])
    assert found[1] == pytest.approx(found[0]) and found[0][4] - found[0][3] > 15


def test_what_is_undefined_is_none():
    single = rows_of(attack_of(ORIGINALS[:1], ATTACKED[:1]), {"plain": [PLAIN]})["plain", "EM drop"]
    assert single.value == 0 and single.low is single.high is None


def test_the_table():
    rows = corrected(attack_rows(attack_of(), {"plain": [PLAIN], "corrected": [CORRECTED, PLAIN]}, "plain"))
    lines = robustness_text([attack_of()], rows, show_paper=True).splitlines()
    assert lines[0].split() == "seeds items value sd difference p Holm".split()
    titles = [
        f"SQuAD under swap: {score} {kind} (%)" for score in ("EM", "F1") for kind in ("original", "attacked", "drop")
    ]
    assert [line for line in lines if line.endswith("(%)")] == titles
    assert lines[1] == titles[0] and lines[2].startswith("  plain") and "75.00 ± " in lines[2]
    assert lines[3].split()[:4] == ["corrected", "2", "4", "62.50"] and "17.68" in lines[3] and "-12.50 ± " in lines[3]
    drop = next(row for row in rows if (row.name, row.measure) == ("corrected", "EM drop"))
    assert f"-25.00 ± {(drop.difference_high - drop.difference_low) / 2:.2f}" in lines[9]
    assert "SQuAD under swap: 4 of 5 questions" in lines
    paper = lines[lines.index("from the paper (not ours): SQuAD") :]
    assert paper[2].split() == "AddSentenceDiverse, ELECTRA-small 293 80.55 25.60 54.95 85.10 26.43 58.67".split()
    assert len(paper) == 1 + 1 + 6 + 2 and "differences below about 7 EM" in paper[-1]
    alone = robustness_text([attack_of()], attack_rows(attack_of(), {"plain": [PLAIN]}))
    assert "paper" not in alone and "from the baseline" not in alone
    assert max(map(len, lines)) <= 120
