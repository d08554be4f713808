"""The plot of the scores: its texts, and what is left out."""

import xml.etree.ElementTree as ElementTree

import pytest

from tn_fairseq.evaluation.robustness.plot import draw_robustness


def row(attack: str, score: str, checkpoint: str, low: float | None = 1.0, original: float | None = 4.0) -> dict:
    high = None if low is None else 3.0
    found = {"attack": attack, "data": "SQuAD", "score": score, "checkpoint": checkpoint}
    for key, value in (("original", original), ("attacked", 2.0)):
        found |= {key: value, f"{key}_low": low, f"{key}_high": high}
    return found


ROWS = [
    *(row("swap", score, name) for score in ("EM", "F1") for name in ("plain $x$", "corrected")),
    row("adversarial", "accuracy", "plain $x$", None, None),
]


def test_a_panel_for_each_attack_and_score(tmp_path):
    pytest.importorskip("matplotlib")
    draw_robustness(ROWS, tmp_path / "plot.svg")
    root = ElementTree.parse(tmp_path / "plot.svg").getroot()
    texts = {"".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")}
    panels = {"swap: SQuAD, EM (%)", "swap: SQuAD, F1 (%)", "adversarial: SQuAD, accuracy (%)"}
    assert texts >= {*panels, "plain $x$", "corrected"}
    groups = [element.get("id", "") for element in root.iter("{http://www.w3.org/2000/svg}g")]
    assert sum(name.startswith("axes_") for name in groups) == 3  # empty panels are not drawn
