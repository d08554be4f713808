"""Find the files with text: in folders, by patterns, and on any file system of fsspec."""

import io
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from ...core.errors import InputError, first_line
from .recognition import HEAD, NAMES, NEED_SEEKING, Content, recognize


@dataclass(frozen=True)
class TextFile:
    """A file with text; ``size`` is its size in bytes, or 0 if that is unknown."""

    name: str  # in messages
    path: str
    size: int
    system: Any = None  # of fsspec; None for a file that Python opens
    content: Content = Content()  # noqa: RUF009, is immutable
    pipe: IO[bytes] | None = None  # kept open, because it can be read only once

    @property
    def address(self) -> str:
        """The path in lower case; of a web address without its query, if what is before it names a format."""
        path = self.path.lower()
        before = path.partition("?")[0]
        return before if path.startswith(("http://", "https://")) and before.endswith(NAMES) else path

    def open(self) -> IO[bytes]:
        """Open the file to read its bytes."""
        if self.pipe is not None:
            return self.pipe
        return open(self.path, "rb") if self.system is None else self.system.open(self.path, "rb")

    def recognized(self, text_field: str | None) -> "TextFile":
        """The same file with its content; raises InputError as ``recognize`` does, and for a pipe that must not be."""
        if self.system is not None or os.path.isfile(self.path):
            # the block size, because many file systems read megabytes ahead
            opened = self.open() if self.system is None else self.system.open(self.path, "rb", block_size=HEAD)
            with opened as stream:
                return replace(self, content=recognize(self.name, self.address, stream, text_field))
        pipe = _Pipe(self.path)
        stream = io.BufferedReader(pipe)
        content = recognize(self.name, self.address, stream, text_field)
        if content.kind in NEED_SEEKING:
            raise InputError(
                f"{self.name}: not a regular file, but {content.kind} is read in parts; write it to a file"
            )
        stream.detach()
        pipe.rewind()
        return replace(self, content=content, pipe=io.BufferedReader(pipe))


class _Pipe(io.RawIOBase):
    """A pipe whose first bytes can be read twice: what was read before ``rewind``."""

    def __init__(self, path: str):
        self._stream = open(path, "rb")  # noqa: SIM115, closed with the process
        self._first, self._keeps, self._position = io.BytesIO(), True, 0

    def rewind(self) -> None:
        self._first.seek(0)
        self._keeps, self._position = False, 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        data = b"" if self._keeps else self._first.read(len(buffer))
        data = data or self._stream.read1(len(buffer))
        if self._keeps:
            self._first.write(data)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def find_files(
    inputs: Iterable[str | Path], text_field: str | None = None, no_pipes: str | None = None
) -> list[TextFile]:
    """The files of all inputs, in order: files, folders, patterns and addresses, with their content.

    ``text_field`` is the column or field that was asked for, and ``no_pipes`` the reason why the files must be regular.
    Raises InputError if there is no such file, if a file of a folder is of another kind, and as ``recognized`` does.
    """
    text_files: list[TextFile] = []
    for name in map(str, inputs):
        with _one_line(name):
            files, is_folder = _find(name)
        for file in files:
            if no_pipes and file.system is None and not os.path.isfile(file.path):
                raise InputError(f"{file.name}: not a regular file, but {no_pipes}; write the text to a file")
            with _one_line(file.name):
                text_files.append(file.recognized(text_field))
        if is_folder:
            _check_kinds(name, text_files[-len(files) :])
    return text_files


def _check_kinds(name: str, files: Sequence[TextFile]) -> None:
    for file in files:
        if file.content.kind != files[0].content.kind:
            mixed = " and ".join(f"{one.content.kind} ({os.path.basename(one.path)})" for one in (files[0], file))
            raise InputError(f"{name}: a folder with {mixed}; give the files, or a pattern such as '{name}/*.jsonl'")


@contextmanager
def _one_line(name: str) -> Iterator[None]:
    """Turn the errors of file systems into InputError; each file system has errors of its own."""
    try:
        yield
    except InputError:
        raise
    except ImportError as error:
        raise InputError(f"{name}: {reason_of(error)}; install what is missing with pip") from None
    except Exception as error:
        remedy = "check the address and the network" if "://" in name else "give a text file"
        raise InputError(f"{name}: {reason_of(error)}; {remedy}") from None


def reason_of(error: BaseException) -> str:
    """What an error of a file system says, in one line."""
    if isinstance(error, FileNotFoundError):  # the message of some file systems is only the path
        return "No such file or directory"
    return getattr(error, "strerror", None) or first_line(error)


def _find(name: str) -> tuple[list[TextFile], bool]:
    """The files of an input, and whether it is a folder."""
    system, path = None, name
    if "://" in name and not os.path.exists(name):
        logging.root.setLevel(logging.WARNING)  # fairseq sets it to DEBUG, and file systems log each request
        system, path = url_to_fs(name)
        system = None if isinstance(system, LocalFileSystem) else system
    there = system or LocalFileSystem()
    exists, is_folder = (os.path.exists, os.path.isdir) if system is None else (system.exists, system.isdir)
    if is_folder(path):
        return _in_folder(name, there.find(path, detail=True), there._strip_protocol(path), system), True
    if any(sign in path for sign in "*?[") and not exists(path):
        fixed = re.split(r"[*?[]", path, maxsplit=1)[0].rpartition("/")[0]
        shows_hidden = _is_hidden(path[len(fixed) :])
        root = there._strip_protocol(fixed) if fixed else os.getcwd() if system is None else ""
        infos = {
            match: about
            for match, about in there.glob(path, detail=True).items()
            if shows_hidden or not _is_hidden(match.removeprefix(root))
        }
    elif system is None:
        return [TextFile(name, path, os.stat(path).st_size)], False
    else:
        infos = {path: system.info(path)}
    return _files(name, infos, system), False


def _files(name: str, infos: dict[str, dict], system: Any) -> list[TextFile]:
    for path in infos:
        if system is None and os.path.islink(path) and not os.path.exists(path):
            raise InputError(f"{path}: a link to a file that does not exist; repair it, or delete it")
    files = [
        TextFile(system.unstrip_protocol(path) if system else path, path, infos[path]["size"] or 0, system)
        for path in sorted(infos)
        # fsspec gives a local link the type "other"
        if infos[path]["type"] == "file" or (system is None and os.path.isfile(path))
    ]
    if not files:
        raise InputError(f"{name}: no file there; give text files")
    return files


def _is_hidden(path: str) -> bool:
    """Whether the name of the file or of a folder says that it is not data, as in .git and _SUCCESS."""
    return any(part.startswith((".", "_")) for part in path.split("/"))


def _in_folder(name: str, infos: dict[str, dict], root: str, system: Any) -> list[TextFile]:
    """All files of a folder except hidden ones; of a saved data set, those with the data."""
    inside = {path: path[len(root) :].strip("/") for path in infos}
    if "dataset_dict.json" in inside.values():
        splits = sorted({inner.partition("/")[0] for inner in inside.values() if "/" in inner})
        raise InputError(f"{name}: contains the splits {', '.join(splits)}; give the folder of one split")
    is_saved = "state.json" in inside.values()  # by save_to_disk of the library datasets
    kept = {
        path: infos[path]
        for path, inner in inside.items()
        if not _is_hidden(inner)
        # the library keeps the results of map and filter there, too
        and (not is_saved or (inner.endswith(".arrow") and not inner.startswith("cache-")))
    }
    for path in kept:
        if system is None and os.path.isdir(path):
            raise InputError(f"{path}: a link to a folder, which is not followed; give the folder that it leads to")
    return _files(name, kept, system)
