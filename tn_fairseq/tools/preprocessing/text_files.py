"""Find the files with text in folders, by patterns and on any file system of fsspec, and open them.

A file is what its name says: the last suffix is its compression, and the suffix below that its format.
"""

import bz2
import gzip
import logging
import lzma
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from ...core.errors import InputError, first_line
from ...core.packages import require

TEXT, JSON, CSV, TSV, PARQUET, ARROW = FORMATS = ("text", "json", "csv", "tsv", "parquet", "arrow")
_SUFFIXES = {".jsonl": JSON, ".ndjson": JSON, ".feather": ARROW, **{f".{name}": name for name in FORMATS[1:]}}
ZSTD_MODULE = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
CONVERT = "repair it, give its --format, or convert it as in docs/prepare-data.md#text-in-other-formats"


def _open_zstd(packed: IO[bytes]) -> IO[bytes]:
    # not with zstandard, which ends silently after the first frame and where the file was truncated
    zstd = import_module(ZSTD_MODULE)
    return zstd.open(packed, options={zstd.DecompressionParameter.window_log_max: 31})  # files of zstd --long


_DECOMPRESS: dict[str, Callable] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open, ".zst": _open_zstd}


@dataclass(frozen=True)
class TextFile:
    """A file with text; ``size`` is its size in bytes, or 0 if that is unknown.

    Raises InputError if a library that reads it is missing.
    """

    name: str  # in messages
    path: str
    size: int
    system: Any = None  # of fsspec; None for a file that Python opens
    named_format: str | None = None  # by the user

    def __post_init__(self) -> None:
        if self.compression == ".zst":
            require(ZSTD_MODULE, self.name, "zstd")

    @property
    def compression(self) -> str | None:
        """The suffix of the name if it is that of a compression."""
        suffix = self._split()[1]
        return suffix if suffix in _DECOMPRESS else None

    @property
    def format(self) -> str:
        """The format that the user or else the name says."""
        stem, suffix = self._split()
        return self.named_format or _SUFFIXES.get(os.path.splitext(stem)[1] if self.compression else suffix, TEXT)

    @contextmanager
    def open(self) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """Open the file to read its content, and its bytes, which are the same unless it is compressed."""
        with open(self.path, "rb") if self.system is None else self.system.open(self.path, "rb") as packed:
            yield packed if self.compression is None else _DECOMPRESS[self.compression](packed), packed

    def _split(self) -> tuple[str, str]:
        # without the query of a web address
        return os.path.splitext(re.sub(r"^(https?://[^?]*)\?.*", r"\1", self.path.lower()))


def find_files(
    inputs: Iterable[str | Path], named_format: str | None = None, no_pipes: str | None = None
) -> list[TextFile]:
    """The files of all inputs, in order: files, folders, patterns and addresses.

    ``no_pipes`` is the reason why the files must be regular. Raises InputError if there is no such file, if a folder
    has files of several formats, and as ``TextFile`` does.
    """
    text_files: list[TextFile] = []
    for name in map(str, inputs):
        try:
            files = _find(name, named_format)
        except Exception as error:
            raise refusal(name, error, "give a text file") from None
        if not files:
            raise InputError(f"{name}: no file there; give text files")
        for file in files:
            if no_pipes and file.system is None and not os.path.isfile(file.path):
                raise InputError(f"{file.name}: not a regular file, but {no_pipes}; write the text to a file")
            if file.format != files[0].format:
                mixed = " and ".join(f"{one.format} ({os.path.basename(one.path)})" for one in (files[0], file))
                raise InputError(f"{name}: has {mixed}; give --format, or a pattern such as '*.jsonl'")
        text_files += files
    return text_files


def refusal(place: str, error: Exception, remedy: str) -> InputError:
    """The error of a library or a file system as an InputError; each of them has errors of its own."""
    if isinstance(error, InputError):
        return error
    reason = getattr(error, "strerror", None) or first_line(error).rstrip(" .")
    if isinstance(error, FileNotFoundError):  # the message of some file systems is only the path
        reason = "No such file or directory"
    if isinstance(error, ImportError):
        remedy = "install what is missing with pip"
    elif "://" in place:
        remedy = f"check the address and the network, or {remedy}"
    return InputError(f"{place}: {reason}; {remedy}")


def _find(name: str, named_format: str | None) -> list[TextFile]:
    """The files of an input, without those whose names, or whose folders, say that they are not data."""
    system, path = None, name
    if "://" in name and not os.path.exists(name):
        logging.root.setLevel(logging.WARNING)  # fairseq sets it to DEBUG, and file systems log each request
        system, path = url_to_fs(name)
        system = None if isinstance(system, LocalFileSystem) else system
    there = system or LocalFileSystem()
    exists, is_folder = (os.path.exists, os.path.isdir) if system is None else (system.exists, system.isdir)
    if is_folder(path):
        root, infos = path, there.find(path, detail=True)
    elif any(sign in path for sign in "*?[") and not exists(path):
        root = re.split(r"[*?[]", path, maxsplit=1)[0].rpartition("/")[0]
        infos = there.glob(path, detail=True)
    else:
        size = os.stat(path).st_size if system is None else system.info(path)["size"] or 0
        return [TextFile(name, path, size, system, named_format)]
    root = there._strip_protocol(root) if root or system is None else ""
    files = []
    for found in sorted(infos):
        if re.search(r"(^|/)[._]", found.removeprefix(root)):  # such as .git and _SUCCESS
            continue
        is_file = infos[found]["type"] == "file" if system else os.path.isfile(found)
        if system is None and os.path.islink(found) and not is_file:
            raise InputError(f"{found}: a link that does not lead to a file; delete it, or give the folder it leads to")
        if is_file:
            address = system.unstrip_protocol(found) if system else found
            files.append(TextFile(address, found, infos[found]["size"] or 0, system, named_format))
    return files
