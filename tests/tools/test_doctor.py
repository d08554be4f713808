"""`tn-fairseq look doctor`: a line for each check, also if torch or fairseq is missing or damaged."""

import sys
from pathlib import Path

import pytest
import torch
from files import refused
from helpers import PLUGIN, run_command

from tn_fairseq.__main__ import main
from tn_fairseq.core.dictionary import load_dictionary
from tn_fairseq.fairseq_patches import replacing
from tn_fairseq.tools import doctor


def lines(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> dict[str, tuple[str, str]]:
    """The mark and the text of each check, by its name."""
    try:
        main(["doctor", *map(str, words)])
        found = 0
    except SystemExit as stop:
        found = stop.code
    assert found == code
    printed = capsys.readouterr()
    assert not printed.err
    split = [(line[:8].strip(), line[8:22].strip(), line[22:].strip()) for line in printed.out.splitlines()]
    return {name: (mark, text) for mark, name, text in split}


@pytest.fixture(autouse=True)
def no_other_packages(monkeypatch):
    """Leave out what the machine of the test may lack; each has a test of its own."""
    monkeypatch.setattr(doctor, "_command", lambda: "bin/fairseq-train")
    monkeypatch.setattr(doctor, "_wordnet", lambda: "3.0")


def write_checkpoint(path: Path, symbols: int) -> Path:
    embeddings = {"embeddings.word_embeddings.weight": torch.zeros(symbols, 2)}
    torch.save({"cfg": {"model": {"_name": "bert_tiny"}}, "model": embeddings}, path)
    return path


def test_a_complete_installation(capsys):
    found = lines(capsys)
    assert f"--user-dir {PLUGIN}" in found["tn_fairseq"][1]
    *checks, (_, (_, more)) = found.items()
    assert [name for name, (mark, _) in checks if mark == "ok"] == ["WordNet", "fairseq-train", "fairseq", "tn_fairseq"]
    assert "collect_env" in more and len(checks) == 4


def test_files_that_fit_together_and_files_that_do_not(capsys, data_bin, synonym_table, tmp_path):
    size = len(load_dictionary(data_bin / "dict.txt"))
    fitting = write_checkpoint(tmp_path / "fitting.pt", size)
    found = lines(capsys, "--data", data_bin, "--checkpoint", fitting, "--synonym-table", synonym_table)
    assert f"{data_bin}: dictionary of {size} symbols" in found["data"][1] and "train, valid" in found["data"][1]
    assert "bert_tiny" in found["checkpoint"][1] and "FAILED" not in {mark for mark, _ in found.values()}
    other = write_checkpoint(tmp_path / "other.pt", size + 1)
    found = lines(capsys, "--data", data_bin, "--checkpoint", other, "--synonym-table", synonym_table, code=1)
    assert found["checkpoint"][0] == "FAILED" and found["synonym table"][0] == "ok"
    assert f"{data_bin} and {other} have different dictionaries" in found["checkpoint"][1]
    found = lines(capsys, "--data", tmp_path / "nowhere", "--synonym-table", tmp_path, code=1)
    assert str(tmp_path / "nowhere") in found["data"][1] and "is a folder" in found["synonym table"][1]


@pytest.mark.parametrize("missing", ["torch", "fairseq"])
def test_a_package_that_cannot_be_imported(missing, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    found = lines(capsys, code=1)
    assert found["fairseq"][0] == "FAILED" and "tn_fairseq" not in found
    assert f"{missing} cannot be imported" in found["fairseq"][1]


def test_two_fairseqs_and_a_function_replaced_again(monkeypatch):
    monkeypatch.setattr(doctor, "version_of", lambda name: "1" if name in ("ve-fairseq", "fairseq") else None)
    assert "ve-fairseq and fairseq are installed into the same folder; pip uninst" in refused(doctor._fairseq)
    owner, name, _ = replacing.REPLACED[0]
    monkeypatch.setattr(owner, name, lambda: None)
    assert f"{name} of fairseq" in refused(doctor._plugin)


def test_an_environment_that_is_not_active(monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "is not on PATH; activate this one: source " in refused(doctor._command)


def test_the_command_with_damaged_packages(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise OSError('libtorch_cpu.so: cannot open shared object file')\n")
    (tmp_path / "nltk.py").write_text("raise ImportError('damaged')\n")  # which takes seconds to import, if it is not
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{PLUGIN.parent}")
    run = run_command("tn-fairseq", "look", "doctor", cwd=tmp_path, fresh=True)
    assert run.code == 1 and "Traceback" not in run.output
    assert "FAILED  WordNet        damaged" in run.stdout
    assert "FAILED  fairseq        torch cannot be imported (libtorch_cpu.so: " in run.stdout
