"""Checkpoints are written completely or not at all, even if the disk fails."""

import errno
import os
from unittest.mock import Mock

import pytest
import torch
from fairseq import checkpoint_utils
from files import refused

from tn_fairseq.fairseq_patches import durable_checkpoints


def save(path, tmp_path):
    durable_checkpoints.save({"weight": torch.arange(3.0)}, str(path))


def copy(path, tmp_path):
    (tmp_path / "source").write_bytes(b"a checkpoint")
    assert durable_checkpoints.copy(str(tmp_path / "source"), str(path), overwrite=True)


@pytest.mark.parametrize("write", [save, copy])
def test_the_content_is_synced_before_the_rename(tmp_path, write, monkeypatch):
    fsync, replace = os.fsync, os.replace
    synced = {}  # the size of each file by inode number
    renamed = []

    def record_fsync(descriptor):
        fsync(descriptor)
        status = os.fstat(descriptor)
        synced[status.st_ino] = status.st_size

    def record_replace(source, target):
        status = os.stat(source)
        renamed.append((str(target), synced.get(status.st_ino), status.st_size))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    path = tmp_path / "checkpoint_last.pt"
    write(path, tmp_path)
    size = path.stat().st_size
    assert renamed == [(str(path), size, size)] and size > 0


@pytest.mark.parametrize("write", [save, copy])
@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failing_disk_keeps_the_previous_checkpoint(tmp_path, write, failing, monkeypatch):
    path = tmp_path / "checkpoint_last.pt"
    path.write_bytes(b"the checkpoint before")

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, failing, fail)
    assert "checkpoint_last.pt: cannot be written (No space left" in refused(write, path, tmp_path)
    assert path.read_bytes() == b"the checkpoint before"
    assert {other.name for other in tmp_path.iterdir()} <= {path.name, "source"}


def test_a_checkpoint_that_cannot_be_read_is_not_replaced_by_an_older_one(tmp_path, monkeypatch):
    for name in ("checkpoint_1_1.pt", "checkpoint_last.pt"):
        save(tmp_path / name, tmp_path)

    last = str(tmp_path / "checkpoint_last.pt")
    for failure, reason in (
        (PermissionError(errno.EACCES, os.strerror(errno.EACCES)), "Permission denied"),
        (RuntimeError("unable to mmap 8 bytes from file: Cannot allocate memory (12)"), "too little memory to read it"),
    ):
        monkeypatch.setattr(torch, "load", Mock(side_effect=failure))
        with pytest.raises(SystemExit, match=rf"^error: .*checkpoint_last.pt: .*{reason}"):
            checkpoint_utils.load_checkpoint_to_cpu(last)
