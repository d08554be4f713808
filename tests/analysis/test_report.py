"""The report appears whole or not at all; what it says is tested where the real command runs."""

import os
import sys
from pathlib import Path

import pytest

from tn_fairseq.analysis.report import FILES, _publish, _staging, _table_names
from tn_fairseq.errors import InputError


def test_an_interrupted_run_leaves_the_earlier_report_as_it_was(tmp_path):
    (tmp_path / "cases.html").write_text("earlier")
    with pytest.raises(KeyboardInterrupt), _staging(tmp_path) as folder:
        (folder / "cases.html").write_text("half")
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["cases.html"]
    assert (tmp_path / "cases.html").read_text() == "earlier"


def test_an_interrupted_run_leaves_no_folder_that_was_not_there(tmp_path):
    with pytest.raises(RuntimeError), _staging(tmp_path / "new") as folder:
        (folder / "pairs.csv").write_text("half")
        raise RuntimeError
    assert not (tmp_path / "new").exists()


def test_a_new_report_replaces_all_of_an_earlier_one_and_nothing_else(tmp_path):
    for name in (*FILES, "notes.txt"):
        (tmp_path / name).write_text("earlier")
    with _staging(tmp_path) as folder:
        (folder / "pairs.csv").write_text("new")
        _publish(folder, tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"pairs.csv": "new", "notes.txt": "earlier"}


def test_an_output_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for output in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nothing")):
        with pytest.raises(InputError, match="--output .*: cannot be written"), _staging(output):
            pytest.fail("ran")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_a_full_disk_is_named_and_another_files_fault_is_not_blamed_on_the_output(tmp_path):
    with (
        pytest.raises(InputError, match="No space left"),
        _staging(tmp_path / "new"),
        open("/dev/full", "w", buffering=1) as full,
    ):
        full.write("x\n")
    with pytest.raises(FileNotFoundError), _staging(tmp_path / "new"):
        (tmp_path / "elsewhere").read_text()


def test_tables_go_by_the_names_of_their_files_unless_two_share_one(tmp_path):
    assert _table_names([tmp_path / "wordnet.safetensors", tmp_path / "glove.safetensors"]) == ["wordnet", "glove"]
    same = [tmp_path / "a" / "t.safetensors", tmp_path / "b" / "t.safetensors"]
    assert _table_names(same) == list(map(str, same))
