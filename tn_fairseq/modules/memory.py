"""How freed memory is kept on a CPU."""

import ctypes
import platform

# of glibc's malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
MMAP_THRESHOLD, TRIM_THRESHOLD = 1 << 25, (1 << 31) - 1  # bytes


def keep_freed_memory() -> None:
    """Let glibc keep what one step frees for the next, instead of having the kernel clear the same pages at every step.

    Blocks of more than 32 MB still go back at once, for between smaller ones they would leave holes. Elsewhere than on
    glibc nothing happens.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD)
        libc.mallopt(_M_TRIM_THRESHOLD, TRIM_THRESHOLD)
