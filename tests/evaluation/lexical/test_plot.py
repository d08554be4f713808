"""The plot of the measures: its texts, and what is left out."""

import xml.etree.ElementTree as ElementTree

import pytest

from tn_fairseq.evaluation.lexical.plot import draw_measures


def row(checkpoint: str, data: str, measure: str, part: str = "", low: float | None = 1.0) -> dict:
    about = {"checkpoint": checkpoint, "data": data, "measure": measure, "part": part}
    return about | {"value": 2.0, "low": low, "high": None if low is None else 3.0}


ROWS = [
    row(name, *key)
    for name in ("plain $x$", "corrected")
    for key in (
        ("swords", "leniency"),
        ("swords", "GAP"),
        ("swords", "row", "wordnet"),
        ("pairs", "Spearman"),
        ("word embeddings", "mean cosine", "", None),
        ("BLiMP", "accuracy"),
        ("BLiMP", "accuracy by phenomenon", "binding"),
    )
]


def test_a_panel_for_each_measure(tmp_path):
    pytest.importorskip("matplotlib")
    draw_measures(ROWS, tmp_path / "plot.svg")
    root = ElementTree.parse(tmp_path / "plot.svg").getroot()
    texts = {"".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")}
    panels = {"swords: leniency", "swords: GAP (%)", "row of wordnet (%)", "pairs: Spearman", "mean cosine"}
    assert texts >= {*panels, "BLiMP: accuracy (%)", "plain $x$", "corrected"}
    assert not [text for text in texts if "binding" in text or "phenomenon" in text]
    groups = [element.get("id", "") for element in root.iter("{http://www.w3.org/2000/svg}g")]
    assert sum(name.startswith("axes_") for name in groups) == 6  # empty panels are not drawn
