"""Invalid input gets one line; output is complete or absent, even if killed, refused, or written by two commands."""

import errno
import fcntl
import gzip
import multiprocessing
import os
import shutil
import sys
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary
from files import refused
from interruption import kill_at_every_step
from safetensors.torch import load_file

from tn_fairseq.core.checkpoints import save_checkpoint
from tn_fairseq.core.errors import InputError
from tn_fairseq.core.files import (
    LOCK,
    STAGING,
    discard,
    publish,
    read_json,
    read_json_object,
    read_text,
    save_tensors,
    write_atomically,
    write_folder,
    write_text,
)
from tn_fairseq.core.synonym_table import save_synonym_table
from tn_fairseq.fairseq_patches import durable_checkpoints


@pytest.fixture(params=[0o022, 0o027, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_permissions_of_tensor_files_follow_the_umask(umask, tmp_path):
    path = tmp_path / "model.safetensors"
    save_tensors({"zeros": torch.zeros(3)}, path, {"format": "pt"})
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    assert torch.equal(load_file(path)["zeros"], torch.zeros(3))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        (b"one\ntwo\xff", "utf-8", ", line 2: not UTF-8 (byte 7); convert it to UTF-8, or take another"),
        (b"\xef\xbb\xbfone\ntwo\xff", "utf-8-sig", ", line 2: not UTF-8 (byte 10); convert"),
        ("one".encode("utf-16"), "utf-8", ": not UTF-8, but UTF-16; save it as text in UTF-8, or take another"),
        (gzip.compress(b"{}", mtime=0), "utf-8", ": not UTF-8, but compressed with gzip; unpack it, or take another"),
        (b"", "utf-8", ", line 1: not valid JSON (Expecting value); take another"),
        (b'\xef\xbb\xbf{"a": 1}', "utf-8", ", line 1: not valid JSON (Unexpected UTF-8 BOM"),
        (b'{"a":\n 1,}', "utf-8", ", line 2: not valid JSON"),
        (b"[" * 100_000, "utf-8", ": not valid JSON (maximum recursion"),
        (b"1" * 5000, "utf-8", ": not valid JSON (Exceeds the limit"),
        (b'\xef\xbb\xbf["a"]', "utf-8-sig", ": a JSON array, not an object; take another"),
        (None, "utf-8", ": No such file or directory; take another"),
    ],
)
def test_unreadable_files_are_named_in_one_line(content, encoding, message, tmp_path):
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    found = refused(read_json_object, tmp_path / "file", "take another", encoding)
    assert found.startswith(f"{tmp_path}/file{message}")


def test_only_utf_8_sig_drops_a_byte_order_mark(tmp_path):
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbf1\r\n")
    assert read_text(tmp_path / "file", "") == "\ufeff1\r\n"
    assert read_text(tmp_path / "file", "", "utf-8-sig") == "1\r\n"
    assert read_json(tmp_path / "file", "", "utf-8-sig") == 1


def everything(folder: Path) -> dict[str, bytes | None]:
    """All paths in a folder, including hidden ones, and the content of the files."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def write_tree(path: Path, content: str) -> None:
    """Write a new folder, as the export of a model does."""
    with write_atomically(path) as folder:
        for name in ("one", "two"):
            (folder / name).mkdir(parents=True)
            (folder / name / "file").write_text(content)


def fill(folder: Path, content: str) -> None:
    """Write into a folder, as a report does: the files differ from run to run, and some are folders."""
    with write_folder(folder, "--output") as staging:
        (staging / "inner").mkdir()
        (staging / "inner" / content).write_text(content)
        for name in ("a", "last", content):
            (staging / name).write_text(content)
        publish(staging, folder, last="last", old=[folder / name for name in ("old", "new")])


def save_table(path: Path, content: str) -> None:
    table = torch.full((4, 1), -1 if content == "old" else 3, dtype=torch.int32)
    save_synonym_table(path, table, Dictionary(), {"source": content})


ATOMIC = {
    "text": write_text,
    "synonym table": save_table,
    "checkpoint": lambda path, content: save_checkpoint({"content": content}, path),
    "fairseq-train's checkpoint": lambda path, content: durable_checkpoints.save({"content": content}, str(path)),
}


@pytest.mark.parametrize("kind", ATOMIC)
def test_a_file_killed_at_every_step(kind, tmp_path):
    write, out = ATOMIC[kind], tmp_path / "out" / "file"
    (tmp_path / "out").mkdir()
    write(out, "new")
    new = everything(tmp_path / "out")
    write(out, "old")
    old = everything(tmp_path / "out")
    assert old != new
    seen = []
    for step in kill_at_every_step(partial(write, out, "new")):
        seen.append(out.read_bytes())
        assert len(everything(tmp_path / "out")) <= 3, step
        write(out, "new")
        assert everything(tmp_path / "out") == new, step
        write(out, "old")
        assert everything(tmp_path / "out") == old, step
    assert set(seen) <= {old["file"], new["file"]} and seen[0] == old["file"]
    assert everything(tmp_path / "out") == new


def test_a_new_folder_killed_at_every_step(tmp_path):
    write_tree(tmp_path / "whole" / "out", "new")
    new, steps = everything(tmp_path / "whole"), 0
    for steps in kill_at_every_step(partial(write_tree, tmp_path / "killed" / "out", "new")):
        if (tmp_path / "killed" / "out").exists():
            assert everything(tmp_path / "killed" / "out") == everything(tmp_path / "whole" / "out"), steps
            shutil.rmtree(tmp_path / "killed" / "out")
        write_tree(tmp_path / "killed" / "out", "new")
        assert everything(tmp_path / "killed") == new, steps
        shutil.rmtree(tmp_path / "killed")
    assert steps > 5


def test_filling_a_folder_killed_at_every_step(tmp_path):
    """If the last file exists, the folder holds all files of one run, no others, and what no run wrote."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    fill(out, "new")
    new = everything(out)
    fill(out, "old")
    old = everything(out)
    assert new.keys() == {"notes.txt", "a", "last", "new", "inner", "inner/new"}
    steps = 0
    for steps in kill_at_every_step(partial(fill, out, "new")):
        shown = {name: content for name, content in everything(out).items() if not name.startswith(".")}
        assert shown in (old, new) or "last" not in shown, steps
        fill(out, "new")
        assert everything(out) == new, steps
        fill(out, "old")
        assert everything(out) == old, steps
    assert steps > 10
    assert everything(out) == new


def test_discarded_folders_are_never_incomplete(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "staging").mkdir()
    discard([tmp_path / "a", tmp_path / "missing", tmp_path / "missing" / "too", tmp_path / "b"], tmp_path / "staging")
    assert [path.name for path in tmp_path.iterdir()] == ["staging"]
    assert sorted(path.read_text() for path in tmp_path.rglob("file")) == ["a", "b"]


@contextmanager
def another_process(context, path: Path):
    """Another process that is writing "other" to a path until the yielded event is set."""
    fork = multiprocessing.get_context("fork")
    begun, end = fork.Event(), fork.Event()

    def hold() -> None:
        with context(path) as lent:
            written = lent / "file" if lent.is_dir() else lent
            written.write_text("other")
            begun.set()
            end.wait()
            assert written.read_text() == "other"

    process = fork.Process(target=hold)
    process.start()
    begun.wait()
    yield end
    end.set()
    process.join()
    assert process.exitcode == 0


def test_a_second_writer_of_a_file_waits_for_the_first(tmp_path):
    fork = multiprocessing.get_context("fork")
    path, lockf, waits = tmp_path / "file", fcntl.lockf, fork.Event()

    def lock(file, operation) -> None:
        try:
            lockf(file, operation | fcntl.LOCK_NB)
        except OSError:
            waits.set()
            lockf(file, operation)

    def write_second() -> None:
        fcntl.lockf = lock
        write_text(path, "second")

    with another_process(write_atomically, path) as end:
        second = fork.Process(target=write_second)
        second.start()
        waits.wait()
        assert not path.exists()
        end.set()
        second.join()
        assert second.exitcode == 0
    assert everything(tmp_path) == {"file": b"second"}


def test_a_second_writer_to_a_folder_is_refused(tmp_path):
    with another_process(partial(write_folder, flag="--output"), tmp_path / "out"):
        message = refused(fill, tmp_path / "out", "new")
        assert message.endswith("out: another run is writing there; wait for it, or give another --output")
        assert everything(tmp_path / "out").keys() == {LOCK, STAGING, f"{STAGING}/file"}
    fill(tmp_path / "out", "new")
    assert (tmp_path / "out" / "last").read_text() == "new"


def test_an_interrupted_run_changes_nothing(tmp_path):
    write_text(tmp_path / "file", "earlier")
    fill(tmp_path / "folder", "old")
    before = everything(tmp_path)
    with pytest.raises(KeyboardInterrupt), write_atomically(tmp_path / "file") as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    for folder in (tmp_path / "folder", tmp_path / "new"):
        with pytest.raises(KeyboardInterrupt), write_folder(folder, "--output") as staging:
            (staging / "a").write_text("half")
            raise KeyboardInterrupt
        assert everything(tmp_path) == before


def test_an_unwritable_output_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for output in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nothing"), Path("/proc/nothing/below")):
        with pytest.raises(InputError, match="; give a --output you can write to"), write_folder(output, "--output"):
            pytest.fail("ran")
    for output in (tmp_path / "file" / "below", Path("/proc/nothing")):
        with pytest.raises(InputError, match="cannot be written .*; name another place"), write_atomically(output):
            pytest.fail("ran")
    assert os.listdir(tmp_path) == ["file"]


def test_an_error_in_the_content_is_not_blamed_on_the_file(tmp_path):
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), write_atomically(tmp_path / "file"):
        torch.zeros(2, 3) @ torch.zeros(2, 3)
    assert not (tmp_path / "file").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_a_full_disk_is_reported_and_errors_of_other_files_are_not_blamed_on_the_output(tmp_path):
    with (
        pytest.raises(InputError, match="new: No space left on device; give a --output"),
        write_folder(tmp_path / "new", "--output"),
        open("/dev/full", "w", buffering=1) as full,
    ):
        full.write("x\n")
    with pytest.raises(FileNotFoundError), write_folder(tmp_path / "new", "--output"):
        (tmp_path / "elsewhere").read_text()


@pytest.mark.parametrize("next_run_has_begun", [False, True])
def test_the_lock_file_of_a_run_that_just_ended_is_not_the_lock(tmp_path, next_run_has_begun, monkeypatch):
    lockf, path = fcntl.lockf, tmp_path / LOCK
    attempts = []

    def lock_too_late(file, operation):
        """Between opening and locking the file, the other run ends and deletes it."""
        attempts.append(file)
        if len(attempts) == 1:
            path.unlink()
            if next_run_has_begun:
                path.touch()
        lockf(file, operation)

    def enter() -> None:
        with suppress(InputError), write_folder(tmp_path, "--destdir"):
            os._exit(3)

    monkeypatch.setattr(fcntl, "lockf", lock_too_late)
    for code in (0, 3):  # another process cannot enter before the end, and can after it
        with write_folder(tmp_path, "--destdir") if code == 0 else nullcontext():
            monkeypatch.undo()
            process = multiprocessing.get_context("fork").Process(target=enter)
            process.start()
            process.join()
            assert (process.exitcode, len(attempts)) == (code, 2)


@pytest.mark.parametrize(("code", "refused"), [(errno.EACCES, True), (errno.EAGAIN, True), (errno.ENOLCK, False)])
def test_only_the_lock_of_another_run_stops_a_run(tmp_path, code, refused, monkeypatch):
    def lockf(file, operation):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "lockf", lockf)
    refusal = pytest.raises(InputError, match="another run is writing there") if refused else nullcontext()
    entered = False
    with refusal, write_folder(tmp_path, "--destdir"):
        entered = True
    assert entered == (not refused)
