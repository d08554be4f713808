"""The notebook runs from its first cell to its last, and its outputs in the repository are of such a run."""

import json
import re

import nbformat
import pytest
from helpers import PLUGIN
from nbclient import NotebookClient

NOTEBOOK = PLUGIN.parent / "examples" / "false_negatives.ipynb"
LAST = re.compile(r"The teacher finds \d+% of the plain student's wrong words at least as likely as the masked word\.")


def printed(notebook: nbformat.NotebookNode) -> str:
    """What the cells printed."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "".join(output.text for output in outputs if output.output_type == "stream")


def test_the_outputs_are_complete_small_and_without_errors():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    kinds = {output.output_type for cell in code for output in cell.outputs}
    assert kinds == {"stream", "display_data"} and LAST.search(printed(notebook))
    assert NOTEBOOK.stat().st_size < 300_000
    assert str(PLUGIN.parent) not in json.dumps(notebook)  # no path of a machine


@pytest.mark.slow
def test_the_notebook_runs():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    client = NotebookClient(notebook, timeout=800, resources={"metadata": {"path": str(NOTEBOOK.parent)}})
    client.execute()  # raises CellExecutionError if a cell fails
    assert LAST.search(printed(notebook))
    plots = [
        output for cell in notebook.cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})
    ]
    assert len(plots) == 1
