"""Find the files with text: in folders, by patterns, and on any file system of fsspec."""

import bz2
import gzip
import logging
import lzma
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from ..errors import InputError, first_line
from ..packages import require

JSON, PARQUET, ARROW, PLAIN = "JSON Lines", "Parquet", "Arrow", "plain text"
KINDS = {".json": JSON, ".jsonl": JSON, ".ndjson": JSON, ".parquet": PARQUET, ".arrow": ARROW}
ARCHIVES = (".tar", ".tgz", ".txz", ".zip", ".7z", ".rar")


def _open_zstd(stream: IO[bytes]) -> Any:
    # not with zstandard, which ends silently after the first frame and where the file was truncated
    from backports import zstd

    return zstd.open(stream, options={zstd.DecompressionParameter.window_log_max: 31})  # files of zstd --long


COMPRESSIONS: dict[str, Callable] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open, ".zst": _open_zstd}


@dataclass(frozen=True)
class TextFile:
    """A file with text; ``size`` is its size in bytes, or 0 if that is unknown."""

    name: str  # in messages
    path: str
    size: int
    system: Any = None  # of fsspec; None for a file that Python opens

    @property
    def _address(self) -> str:
        """The path in lower case; of a web address without its query, if what is before it names a format."""
        path = self.path.lower()
        before = path.partition("?")[0]
        is_named = path.startswith(("http://", "https://")) and before.endswith((*KINDS, *COMPRESSIONS, *ARCHIVES))
        return before if is_named else path

    @property
    def compression(self) -> str | None:
        """The suffix that says how the file is compressed."""
        suffix = os.path.splitext(self._address)[1]
        return suffix if suffix in COMPRESSIONS else None

    @property
    def unpacked(self) -> str:
        """The address without the suffix of the compression, in lower case."""
        return self._address.removesuffix(self.compression or "")

    @property
    def kind(self) -> str:
        """What is in the file, according to its suffix."""
        return KINDS.get(os.path.splitext(self.unpacked)[1], PLAIN)

    def open(self) -> IO[bytes]:
        """Open the file to read its bytes."""
        return open(self.path, "rb") if self.system is None else self.system.open(self.path, "rb")


def find_files(inputs: Iterable[str | Path]) -> list[TextFile]:
    """The files of all inputs, in order: files, folders, patterns and addresses.

    Raises InputError if there is no such file, or if a library that reads one of them is missing.
    """
    files = [file for name in inputs for file in _find(str(name))]
    for file in files:
        if file.unpacked.endswith(ARCHIVES):
            raise InputError(f"{file.name}: an archive of several files; unpack it and give its files")
        if file.kind in (PARQUET, ARROW):
            require("pyarrow", file.name, "parquet")
        if file.compression == ".zst":
            require("backports.zstd", file.name, "zstd")
    return files


def check_regular(files: Iterable[TextFile], reason: str) -> None:
    """Raises InputError with the reason if a file is not a regular one, such as a pipe."""
    for file in files:
        if file.system is None and not os.path.isfile(file.path):
            raise InputError(f"{file.name}: not a regular file, but {reason}; write the text to a file")


def reason_of(error: BaseException) -> str:
    """What an error of a file system says, in one line."""
    if isinstance(error, FileNotFoundError):  # the message of some file systems is only the path
        return "No such file or directory"
    return getattr(error, "strerror", None) or first_line(error)


def _find(name: str) -> list[TextFile]:
    system, path = None, name
    try:
        if "://" in name and not os.path.exists(name):
            logging.root.setLevel(logging.WARNING)  # fairseq sets it to DEBUG, and file systems log each request
            system, path = url_to_fs(name)
            system = None if isinstance(system, LocalFileSystem) else system
        there = system or LocalFileSystem()
        exists, is_folder = (os.path.exists, os.path.isdir) if system is None else (system.exists, system.isdir)
        if is_folder(path):
            return _in_folder(name, there.find(path, detail=True), there._strip_protocol(path), system)
        if any(sign in path for sign in "*?[") and not exists(path):
            fixed = re.split(r"[*?[]", path, maxsplit=1)[0].rpartition("/")[0]
            shows_hidden = _is_hidden(path[len(fixed) :])
            root = there._strip_protocol(fixed) if fixed else os.getcwd() if system is None else ""
            found = {
                match: about
                for match, about in there.glob(path, detail=True).items()
                if shows_hidden or not _is_hidden(match.removeprefix(root))
            }
        elif system is None:
            return [TextFile(name, path, os.stat(path).st_size)]
        else:
            found = {path: system.info(path)}
    except InputError:
        raise
    except ImportError as error:
        raise InputError(f"{name}: {reason_of(error)}; install what is missing with pip") from None
    except Exception as error:  # each file system has errors of its own
        remedy = "check the address and the network" if "://" in name else "give a text file"
        raise InputError(f"{name}: {reason_of(error)}; {remedy}") from None
    return _files(name, found, system)


def _files(name: str, found: dict[str, dict], system: Any) -> list[TextFile]:
    for path in found:
        if system is None and os.path.islink(path) and not os.path.exists(path):
            raise InputError(f"{path}: a link to a file that does not exist; repair it, or delete it")
    files = [
        TextFile(system.unstrip_protocol(path) if system else path, path, found[path]["size"] or 0, system)
        for path in sorted(found)
        # fsspec gives a local link the type "other"
        if found[path]["type"] == "file" or (system is None and os.path.isfile(path))
    ]
    if not files:
        raise InputError(f"{name}: no file there; give text files")
    return files


def _is_hidden(path: str) -> bool:
    """Whether the name of the file or of a folder says that it is not data, as in .git and _SUCCESS."""
    return any(part.startswith((".", "_")) for part in path.split("/"))


def _in_folder(name: str, found: dict[str, dict], root: str, system: Any) -> list[TextFile]:
    """All files of a folder except hidden ones, which must be of one kind; of a saved data set, those with the data."""
    inside = {path: path[len(root) :].strip("/") for path in found}
    if "dataset_dict.json" in inside.values():
        splits = sorted({inner.partition("/")[0] for inner in inside.values() if "/" in inner})
        raise InputError(f"{name}: contains the splits {', '.join(splits)}; give the folder of one split")
    is_saved = "state.json" in inside.values()  # by save_to_disk of the library datasets
    kept = {
        path: found[path]
        for path, inner in inside.items()
        if not _is_hidden(inner)
        # the library keeps the results of map and filter there, too
        and (not is_saved or (inner.endswith(".arrow") and not inner.startswith("cache-")))
    }
    for path in kept:
        if system is None and os.path.isdir(path):
            raise InputError(f"{path}: a link to a folder, which is not followed; give the folder that it leads to")
    files = _files(name, kept, system)
    first = files[0]
    for file in files:
        if file.kind != first.kind:
            mixed = f"{first.kind} ({os.path.basename(first.path)}) and {file.kind} ({os.path.basename(file.path)})"
            raise InputError(f"{name}: a folder with {mixed}; give the files, or a pattern such as '{name}/*.jsonl'")
    return files
