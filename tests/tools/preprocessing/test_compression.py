"""Compressed files with several parts are read as their own programs read them."""

import bz2
import gzip
import io
import lzma
import random
import shutil
import subprocess

import pytest
from helpers import zstd

from tn_fairseq.tools.preprocessing.compression import BZIP2, GZIP, XZ, ZSTD, Decompressed

SKIPPED = (0x184D2A50).to_bytes(4, "little") + (4).to_bytes(4, "little") + b"size"  # a frame that pzstd writes
# the compression, its function, what may be between two parts, and the program
KINDS = [
    (GZIP, gzip.compress, b"", "gzip"),
    (XZ, lzma.compress, bytes(8), "xz"),
    (BZIP2, bz2.compress, b"", "bzip2"),
    (ZSTD, zstd.compress, SKIPPED, "zstd"),
]
every_kind = pytest.mark.parametrize(("kind", "compress", "between", "program"), KINDS, ids=[kind[0] for kind in KINDS])


def read(content: bytes, kind: str) -> tuple[bytes, BaseException | None]:
    unpacked = Decompressed(io.BytesIO(content), kind)
    return io.BufferedReader(unpacked).read(), unpacked.damage


@every_kind
def test_parts_with_padding_are_all_read(kind, compress, between, program):
    parts = [random.Random(seed).randbytes(100_000) for seed in range(3)]
    content = b"".join(compress(part) + between for part in parts)
    assert read(content, kind) == (b"".join(parts), None)
    if shutil.which(program):
        run = subprocess.run([program, "-dc"], input=content, capture_output=True, check=True)
        assert run.stdout == b"".join(parts)


@every_kind
def test_what_follows_a_part_and_is_no_part_is_damage(kind, compress, between, program):
    found, damage = read(compress(b"the cat") + between + b"something else", kind)
    assert found == b"the cat" and damage is not None
    found, damage = read(compress(b"the cat") + compress(b"the mat" * 1000)[:-5], kind)
    assert found.startswith(b"the cat") and damage is not None


def test_the_format_before_xz():
    assert read(lzma.compress(b"the cat", lzma.FORMAT_ALONE), XZ) == (b"the cat", None)
