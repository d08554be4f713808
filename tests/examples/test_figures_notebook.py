"""The notebook of figures runs on the published results of the study, and keeps the figure of such a run."""

import base64
import json

import nbformat
import pytest
from helpers import PLUGIN

NOTEBOOK = PLUGIN.parent / "examples" / "study" / "figures.ipynb"


def test_the_figure_in_the_repository_is_small_and_from_no_machine():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    found = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    (figure,) = [base64.b64decode(data["image/png"]) for data in found if "image/png" in data]
    assert len(figure) < 80_000 and str(PLUGIN.parent) not in json.dumps(notebook)


def test_the_notebook_runs(monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(NOTEBOOK.parent)
    pyplot.switch_backend("agg")
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    exec("\n".join(cell.source for cell in cells if cell.cell_type == "code"), {})
    assert len(pyplot.get_fignums()) == 1
    pyplot.close("all")
