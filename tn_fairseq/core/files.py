"""Reading with one-line errors, and writing files and folders completely or not at all.

Temporary files have fixed hidden names. If a command is killed, the next one that writes to the same place deletes
them. A lock keeps it from deleting the files of a command that is still running.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from safetensors import SafetensorError

from .errors import InputError, first_line

if TYPE_CHECKING:
    from torch import Tensor

# files that are taken for text, by their first bytes
OTHER_FILES = {
    b"PK\x03\x04": "a ZIP archive or an Excel file",
    b"PK\x05\x06": "a ZIP archive or an Excel file",
    b"\x1f\x8b": "compressed with gzip",
    b"\xfd7zXZ": "compressed with xz",
    b"BZh": "compressed with bzip2",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"\xff\xfe\0\0": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
# in a folder that a command fills
LOCK, STAGING = ".tn_fairseq-lock", ".tn_fairseq-unfinished"


def read_bytes(path: str | Path, remedy: str) -> bytes:
    """The content of a file; raises InputError if it cannot be read, with ``remedy``, which says how to fix that."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; {remedy}") from None


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file, in hexadecimal; raises InputError if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; give a file that you can read") from None


def read_text(path: str | Path, remedy: str, encoding: str = "utf-8") -> str:
    """The text of a file, with its line endings; the encoding utf-8-sig drops a byte order mark.

    Raises InputError as ``read_bytes`` does, and if the file is not UTF-8, with what it is, or the line number.
    """
    content = read_bytes(path, remedy)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        for mark, kind in OTHER_FILES.items():
            if content.startswith(mark):
                advice = "unpack it" if kind.startswith("compressed") else "save it as text in UTF-8"
                raise InputError(f"{path}: not UTF-8, but {kind}; {advice}, or {remedy}") from None
        start = error.start + len(content) - len(error.object)  # error.object lacks the byte order mark
        line = content.count(b"\n", 0, start) + 1
        raise InputError(f"{path}, line {line}: not UTF-8 (byte {start}); convert it to UTF-8, or {remedy}") from None


def read_json(path: str | Path, remedy: str, encoding: str = "utf-8") -> Any:
    """The content of a JSON file; raises InputError as ``read_text`` does, and if it is not valid JSON."""
    text = read_text(path, remedy, encoding)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not valid JSON ({error.msg}); {remedy}") from None
    except (ValueError, RecursionError) as error:  # a number with thousands of digits, or thousands of nested brackets
        raise InputError(f"{path}: not valid JSON ({first_line(error)}); {remedy}") from None


def json_type(value: Any) -> str:
    """What JSON calls the type of a value that ``json`` has read."""
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")


def read_json_object(path: str | Path, remedy: str, encoding: str = "utf-8") -> dict[str, Any]:
    """The object in a JSON file; raises InputError as ``read_json`` does, and if it is not an object."""
    content = read_json(path, remedy, encoding)
    if not isinstance(content, dict):
        raise InputError(f"{path}: a JSON {json_type(content)}, not an object; {remedy}")
    return content


@contextmanager
def write_atomically(path: str | Path, advice: str = "name another place with --output") -> Iterator[Path]:
    """Yield a temporary path next to ``path`` to write a file or folder to, and rename it at the end.

    An old file stays in place until then, and if writing fails. A folder must be new, or the old one empty. Waits for
    another process that is writing to the same path. Raises InputError with the ``advice`` if it cannot be written.
    """
    path = Path(path).absolute()  # "." has no name
    with _one_line(path, advice):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        with locked(path.with_name(f".{path.name}.lock")), replacing(path, temporary, advice):
            yield temporary


def write_text(path: Path, text: str) -> None:
    """Write a text file as UTF-8, completely or not at all; raises InputError if it cannot be written."""
    with write_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def replacing(path: Path, temporary: Path, advice: str) -> Iterator[Path]:
    """Yield ``temporary`` to write a file or folder to, and rename it to ``path`` at the end.

    Raises InputError with the ``advice`` if that fails. Deletes what is at ``temporary`` before and after.
    """
    with _one_line(path, advice):
        _remove(temporary)
        try:
            yield temporary
            sync(temporary)
            os.replace(temporary, path)
        finally:
            _remove(temporary)


@contextmanager
def write_folder(folder: Path, flag: str) -> Iterator[Path]:
    """Yield a staging folder inside ``folder`` to write files to; ``publish`` moves them into ``folder``.

    Deletes the staging folder at the end, and ``folder`` as well if it is new and empty. Raises InputError that names
    ``flag`` if ``folder`` cannot be written or another process is writing to it.
    """
    staging = folder / STAGING
    is_new = not folder.exists()
    refusal = f"{folder}: another run is writing there; wait for it, or give another {flag}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / LOCK, refusal):
            _remove(staging)
            staging.mkdir()
            try:
                yield staging
            finally:
                _remove(staging)
    except OSError as error:
        place = Path(error.filename or folder)
        theirs, ours = place.absolute(), folder.absolute()
        if not (theirs.is_relative_to(ours) or ours.is_relative_to(theirs)):
            raise
        raise InputError(f"{place}: {error.strerror}; give a {flag} you can write to, with enough room") from None
    finally:
        if is_new:
            with suppress(OSError):
                folder.rmdir()


def publish(staging: Path, folder: Path, last: str, old: Iterable[Path] = ()) -> None:
    """Move everything in ``staging`` into ``folder``, and ``last`` at the end, because it marks a complete folder.

    First discards the old ``last`` and then the paths in ``old``, so that no reader sees a mix of old and new.
    """
    new = sorted(path.name for path in staging.iterdir() if path.name != last)
    sync(staging)  # before old files are deleted, because the disk may be full or the machine may crash
    discard([folder / last, *old, *(folder / name for name in new)], staging)
    folder.mkdir(exist_ok=True)
    for name in new:
        os.replace(staging / name, folder / name)
    _sync_one(folder)
    os.replace(staging / last, folder / last)


def discard(paths: Iterable[Path], staging: Path) -> None:
    """Move the files and folders that exist into ``staging``, which is deleted later.

    A move is atomic, whereas a folder that is being deleted is incomplete for a while.
    """
    trash = Path(tempfile.mkdtemp(dir=staging))
    for number, path in enumerate(paths):
        with suppress(FileNotFoundError):
            os.replace(path, trash / str(number))


def sync(path: Path) -> None:
    """Flush a file, or a folder with everything in it, to the disk."""
    for inner in path.rglob("*") if path.is_dir() else ():
        _sync_one(inner)
    _sync_one(path)


def _sync_one(path: Path) -> None:
    """Flush a file, or a folder's list of entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if not path.is_dir():  # not every file system supports this for folders
            raise
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path, refusal: str | None = None, patience: float = 0, inherited: bool = False) -> Iterator[int]:
    """Lock the file ``path``, and yield its descriptor; the system unlocks it if this process is killed.

    An ``inherited`` lock also belongs to the processes that this one forks or gives the descriptor to, until all of
    them have ended. If another process has locked the file, raises InputError with ``refusal`` after ``patience``
    seconds if a refusal is given, and waits otherwise.
    """
    lock = fcntl.flock if inherited else fcntl.lockf
    end = time.monotonic() + patience
    with ExitStack() as stack:
        while True:
            file = stack.enter_context(open(path, "a"))
            if not _has_locked(lock, file, refusal, end):
                break  # a file system without locks
            # A process that has just ended may have deleted the file; the next process would then lock a new one.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(path), os.fstat(file.fileno())):
                    break
        try:
            yield file.fileno()
        finally:
            if not inherited:  # other processes may still hold it
                path.unlink(missing_ok=True)


def _has_locked(lock: Callable[[IO, int], object], file: IO, refusal: str | None, end: float) -> bool:
    """Wait for the lock of a file; False if the file system has no locks. Raises InputError as ``locked`` does."""
    while True:
        try:
            lock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if refusal else 0))
            return True
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                return False
            if time.monotonic() >= end:
                raise InputError(refusal) from None
            time.sleep(0.5)


@contextmanager
def _one_line(path: Path, advice: str) -> Iterator[None]:
    try:
        yield
    except (OSError, SafetensorError, RuntimeError) as error:
        # torch wraps an OSError in a RuntimeError
        cause = error if isinstance(error, OSError) else error.__context__
        if type(error) is RuntimeError and not (isinstance(cause, OSError) or "PytorchStreamWriter" in str(error)):
            raise  # of what computes the content
        reason = getattr(cause, "strerror", None) or first_line(error)
        raise InputError(f"{path}: cannot be written ({reason}); {advice}") from None


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink()


def save_tensors(tensors: dict[str, "Tensor"], path: Path, metadata: dict[str, str]) -> None:
    """Write a safetensors file with the default permissions; safetensors would let only the owner read it."""
    path.touch()
    mode = path.stat().st_mode  # follows the umask, which cannot be read without setting it
    from safetensors.torch import save_file  # takes a second to import, which --help does not need

    save_file(tensors, path, metadata)
    path.chmod(mode)


def is_unicode(text: str) -> bool:
    """Whether a text is valid Unicode; JSON can hold half a surrogate pair, which no tokenizer accepts."""
    return text == text.encode(errors="replace").decode()


def member(parent: Any, key: str, kind: type, place: str, remedy: str) -> Any:
    """A member of a JSON object; raises InputError, with its ``place`` and the ``remedy``, if it is of another kind."""
    value = parent.get(key) if isinstance(parent, dict) else None
    if type(value) is not kind:
        expected = {str: "a string", list: "a list", int: "an integer", dict: "an object"}[kind]
        raise InputError(f"{place}{key}: must be {expected}; {remedy}")
    if isinstance(value, str) and not is_unicode(value):
        raise InputError(f"{place}{key}: holds half a surrogate pair; {remedy}")
    return value
