"""Decompress files as their own programs do: several streams in one file, padding between them, and no silent ends."""

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import IO, Any

GZIP, XZ, BZIP2, ZSTD = "gzip", "xz", "bzip2", "Zstandard"
ZSTD_MODULE = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
READ_BYTES = 1 << 16  # of a compressed file at a time


class _Streams(io.RawIOBase):
    """Several compressed streams with zero bytes between them; Python's own readers silently end there."""

    def __init__(self, stream: IO[bytes], new: Callable[[], Any]):
        self._stream, self._new = stream, new
        self._decompressor = new()
        self._started = False  # whether this stream has any data

    def read1(self, size: int) -> bytes:
        """Some bytes; none at the end. Raises EOFError for a truncated file."""
        while True:
            if self._decompressor.eof:
                rest = (self._decompressor.unused_data or self._stream.read(READ_BYTES)).lstrip(b"\0")
                while not rest:
                    data = self._stream.read(READ_BYTES)
                    if not data:
                        return b""
                    rest = data.lstrip(b"\0")
                self._decompressor = self._new()
            elif self._decompressor.needs_input:
                rest = self._stream.read(READ_BYTES)
                if not rest and not self._started:
                    return b""  # an empty file
                if not rest:
                    raise EOFError("Compressed file ended before the end-of-stream marker was reached")
            else:
                rest = b""
            self._started = True
            data = self._decompressor.decompress(rest, size)
            if data:
                return data


def _open_zstd(stream: IO[bytes]) -> Any:
    # not with zstandard, which ends silently after the first frame and where the file was truncated
    zstd = import_module(ZSTD_MODULE)
    return zstd.open(stream, options={zstd.DecompressionParameter.window_log_max: 31})  # files of zstd --long


_OPEN: dict[str, Callable[[IO[bytes]], Any]] = {
    GZIP: gzip.open,
    XZ: lambda stream: _Streams(stream, lzma.LZMADecompressor),
    BZIP2: lambda stream: _Streams(stream, bz2.BZ2Decompressor),
    ZSTD: _open_zstd,
}


class Decompressed(io.RawIOBase):
    """The content of a compressed file up to its end or to the first ``damage``."""

    def __init__(self, stream: IO[bytes], compression: str):
        self._file = _OPEN[compression](stream)
        self.damage: BaseException | None = None

    def readable(self) -> bool:
        """Whether it can be read, as BufferedReader asks."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes; 0 at the end."""
        try:
            data = self._file.read1(len(buffer)) if self.damage is None else b""
        except Exception as error:
            if not is_damage(error):
                raise
            self.damage, data = error, b""
        buffer[: len(data)] = data
        return len(data)


def is_damage(error: BaseException) -> bool:
    """Whether a decompressor or pyarrow has found damage; other errors are those of the file system."""
    if isinstance(error, OSError):  # gzip, bz2 and pyarrow raise it without a number
        return error.errno is None and not isinstance(error, TimeoutError)
    module = type(error).__module__
    return (
        isinstance(error, (EOFError, MemoryError, zlib.error, lzma.LZMAError))
        or "zstd" in module
        or "pyarrow" in module
    )
