"""Output that appears whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from .errors import InputError


@contextmanager
def write_whole(path: str | Path) -> Iterator[Path]:
    """Lend a temporary path beside ``path`` for a file or folder to be written to, and rename it at the end.

    What was there before stays until then, and for good if the writing fails. Raises InputError where it does.
    """
    path = Path(path).absolute()  # "." has no name
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, path)
    except (OSError, SafetensorError, RuntimeError) as error:  # torch says RuntimeError where the disk is full
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InputError(f"{path}: cannot be written ({reason}); name another place with --output") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        with suppress(OSError):
            temporary.unlink()


def save_tensors(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str]) -> None:
    """Write a safetensors file with the permissions of any other new file; safetensors would keep it to its owner."""
    path.touch()
    mode = path.stat().st_mode  # as the umask has it, which itself can only be read by setting it
    save_file(tensors, path, metadata)
    path.chmod(mode)
