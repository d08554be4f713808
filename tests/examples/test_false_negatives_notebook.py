"""The notebook runs from its first cell to its last, and its outputs in the repository are of such a run."""

import json
import re
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from helpers import OBJECTS, PLUGIN, SUBJECTS, VERBS

NOTEBOOK = PLUGIN.parent / "examples" / "false_negatives.ipynb"
LAST = re.compile(r"The teacher finds \d+% of the plain student's wrong words at least as likely as the masked word\.")
SMALLER = {"EVERY = 80, 20": "EVERY = 2, 1", "held_out[:192]": "held_out[:16]", "topk(400)": "topk(40)"}


def test_the_outputs_are_complete_small_and_without_errors():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    outputs = [output for cell in code for output in cell.outputs]
    assert {output.output_type for output in outputs} == {"stream", "display_data"}
    assert LAST.search("".join(output.get("text", "") for output in outputs))
    assert NOTEBOOK.stat().st_size < 300_000
    assert str(PLUGIN.parent) not in json.dumps(notebook)  # no path of a machine


def write_corpus(words: list[str]) -> None:
    """A short text in place of that of all of WordNet."""
    documents = [" ".join(sentence) for sentence in product(SUBJECTS, VERBS, OBJECTS)] * 5
    for split in ("train", "valid"):
        (Path(words[1]) / f"{split}.txt").write_text("\n\n".join(documents))


def test_the_notebook_runs(monkeypatch, capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("transformers")
    monkeypatch.chdir(NOTEBOOK.parent)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "wordnet_corpus", SimpleNamespace(main=write_corpus))
    pyplot.switch_backend("agg")
    source = "\n".join(cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code")
    for size, smaller in SMALLER.items():
        assert size in source
        source = source.replace(size, smaller)
    exec(source.removeprefix("%%capture\n"), {})
    assert LAST.search(capsys.readouterr().out)
    assert len(pyplot.get_fignums()) == 1
    pyplot.close("all")
    del sys.modules["train"]  # a neighbor of the notebook
