"""Reuse of freed memory on a CPU."""

import ctypes
import platform

# from glibc's malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
MMAP_THRESHOLD, TRIM_THRESHOLD = 1 << 25, (1 << 31) - 1  # bytes


def keep_freed_memory() -> None:
    """Let glibc reuse freed memory in the next step, so that the kernel need not clear the same pages at every step.

    Blocks of more than 32 MB are still returned at once, because they would leave holes between smaller ones. Does
    nothing without glibc.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD)
        libc.mallopt(_M_TRIM_THRESHOLD, TRIM_THRESHOLD)
