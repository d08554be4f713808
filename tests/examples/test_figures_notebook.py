"""The notebook of figures runs on the published results of the study, and keeps the figure of such a run."""

import base64
import json

import nbformat
import pytest
from helpers import PLUGIN
from nbclient import NotebookClient

NOTEBOOK = PLUGIN.parent / "examples" / "study" / "figures.ipynb"


def figures(notebook: nbformat.NotebookNode) -> list[bytes]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [base64.b64decode(one.data["image/png"]) for one in outputs if "image/png" in one.get("data", {})]


def test_the_figure_in_the_repository_is_small_and_from_no_machine():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    (figure,) = figures(notebook)
    assert len(figure) < 80_000 and str(PLUGIN.parent) not in json.dumps(notebook)


@pytest.mark.skipif(not (NOTEBOOK.parent / "results" / "comparisons.csv").exists(), reason="no published results")
def test_the_notebook_runs():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells[1::2]:
        cell.outputs = []
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    assert len(figures(notebook)) == 1
