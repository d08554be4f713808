"""Panels: their texts, and what is left out."""

import xml.etree.ElementTree as ElementTree

import pytest

from tn_fairseq.tools.evaluation.lexical.results import draw_measures
from tn_fairseq.tools.evaluation.robustness.robustness_report import draw_robustness

NAMES = ("plain $x$", "corrected")
MEASURES = [
    {"checkpoint": name, "data": data, "measure": measure, "part": part, "value": 2.0, "low": low, "high": 3.0}
    for name in NAMES
    for data, measure, part, low in (
        ("swords", "leniency", "", 1.0),
        ("swords", "GAP", "", 1.0),
        ("swords", "row", "wordnet", 1.0),
        ("pairs", "Spearman", "", 1.0),
        ("word embeddings", "mean cosine", "", None),
        ("BLiMP", "accuracy", "", 1.0),
        ("BLiMP", "accuracy by phenomenon", "binding", 1.0),
    )
]
SCORES = [
    {"attack": attack, "data": "SQuAD", "score": score, "checkpoint": name, "original": original, "attacked": 2.0}
    | {f"{key}_{end}": value for key in ("original", "attacked") for end, value in (("low", low), ("high", 3.0))}
    for attack, score, name, low, original in (
        *(("swap", score, name, 1.0, 4.0) for score in ("EM", "F1") for name in NAMES),
        ("adversarial", "accuracy", NAMES[0], None, None),
    )
]
MEASURED = {"swords: leniency", "swords: GAP (%)", "row of wordnet (%)", "pairs: Spearman", "mean cosine"}
SCORED = {"swap: SQuAD, EM (%)", "swap: SQuAD, F1 (%)", "adversarial: SQuAD, accuracy (%)"}


@pytest.mark.parametrize(
    ("draw", "rows", "panels", "intervals"),
    [(draw_measures, MEASURES, MEASURED | {"BLiMP: accuracy (%)"}, 10), (draw_robustness, SCORES, SCORED, 8)],
)
def test_a_panel_for_each_measure(tmp_path, draw, rows, panels, intervals):
    pytest.importorskip("matplotlib")
    draw(rows, tmp_path / "plot.svg")
    root = ElementTree.parse(tmp_path / "plot.svg").getroot()
    texts = {"".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert texts >= {*panels, *NAMES} and not [text for text in texts if "phenomenon" in text]
    groups = [element.get("id", "").split("_")[0] for element in root.iter("{http://www.w3.org/2000/svg}g")]
    assert groups.count("axes") == len(panels)  # empty panels are not drawn
    assert groups.count("LineCollection") == intervals
