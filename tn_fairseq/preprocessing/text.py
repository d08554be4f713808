"""Read text: UTF-8, one sentence (or paragraph) per line, with blank lines between documents."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from ..errors import InputError

# Large enough that the overhead per chunk is negligible, small enough that the library's encodings stay in the cache.
CHUNK_BYTES = 1 << 18


@dataclass(frozen=True)
class Chunk:
    """Some complete lines of a file, as bytes."""

    path: Path
    offset: int
    data: bytes

    def __str__(self) -> str:
        return f"{self.path}, from byte {self.offset}"

    def lines(self) -> list[str]:
        """The lines without line endings (LF or CRLF) and without a byte order mark.

        Raises InputError with the offset in the file if the bytes are not UTF-8.
        """
        try:
            text = self.data.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self.path}: not UTF-8 at byte {self.offset + error.start}; convert it, for example with iconv"
            ) from None
        if self.offset == 0:
            text = text.removeprefix("\ufeff")
        return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def text_bytes(paths: Iterable[Path]) -> int:
    """Total size of the files; raises InputError if one is missing or is a folder."""
    total = 0
    for path in paths:
        try:
            total += path.stat().st_size
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; give a text file") from None
        if path.is_dir():
            raise InputError(f"{path}: is a folder; give the text files in it")
    return total


def read_chunks(paths: Iterable[Path], title: str) -> Iterator[Chunk]:
    """Read the files in order, in chunks of complete lines; shows a progress bar with the title."""
    with tqdm(total=text_bytes(paths), unit="B", unit_scale=True, desc=title, disable=None) as progress:
        for path in paths:
            try:
                with open(path, "rb") as file:
                    offset = 0
                    while data := file.read(CHUNK_BYTES) + file.readline():
                        yield Chunk(path, offset, data)
                        offset += len(data)
                        progress.update(len(data))
            except OSError as error:
                raise InputError(f"{path}: {error.strerror}; give a readable text file") from None
