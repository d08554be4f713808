"""The notebook of figures runs on the published results of the study."""

import nbformat
import pytest
from helpers import PLUGIN

NOTEBOOK = PLUGIN.parent / "examples" / "study" / "figures.ipynb"


def test_the_notebook_runs(monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(NOTEBOOK.parent)
    pyplot.switch_backend("agg")
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    exec("\n".join(cell.source for cell in cells if cell.cell_type == "code"), {})
    assert len(pyplot.get_fignums()) == 1
    pyplot.close("all")
