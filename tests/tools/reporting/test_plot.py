"""Panels: their texts, and what is left out."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from tn_fairseq.tools.reporting.comparison import Comparison, draw_comparisons

NAMES = ("plain $x$", "corrected")
MEASURES = {
    ("swords", "leniency", "", ""): 1.0,
    ("swords", "GAP", "", "%"): 1.0,
    ("swords", "row", "wordnet", "%"): 1.0,
    ("word embeddings", "mean cosine", "", ""): None,
    ("BLiMP", "accuracy", "", "%"): 1.0,
    ("BLiMP", "accuracy by phenomenon", "binding", "%"): 1.0,
}
PANELS = {"swords: leniency", "swords: GAP (%)", "swords: row, wordnet (%)", "word embeddings: mean cosine"}


def test_a_panel_for_each_measure(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [
        Comparison(
            name=name,
            data=data,
            measure=measure,
            part=part,
            unit=unit,
            detail=" by " in measure,
            seeds=1,
            value=2.0,
            low=low,
            high=3.0,
        )
        for name in NAMES
        for (data, measure, part, unit), low in MEASURES.items()
    ]
    draw_comparisons(rows, tmp_path / "plot.svg")
    root = ElementTree.parse(tmp_path / "plot.svg").getroot()
    texts = {"".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")}
    panels = PANELS | {"BLiMP: accuracy (%)"}
    assert texts >= {*panels, *NAMES} and not [text for text in texts if "phenomenon" in text]
    groups = [element.get("id", "").split("_")[0] for element in root.iter("{http://www.w3.org/2000/svg}g")]
    assert groups.count("axes") == len(panels)  # empty panels are not drawn
    assert groups.count("LineCollection") == 8
    lines = [element.get("d") for element in root.iter("{http://www.w3.org/2000/svg}path")]
    assert re.search(r"\.\d\d\b", "".join(lines)) and not re.search(r"\.\d{3}", "".join(lines))
