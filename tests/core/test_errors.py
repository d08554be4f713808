"""Errors that any command may meet."""

import errno

import pytest
from preprocessed import refused

from tn_fairseq.core.errors import one_line_errors


def test_a_full_disk_gets_one_line_and_other_errors_of_the_system_pass():
    @one_line_errors()
    def fail(code: int) -> None:
        raise OSError(code, "No space left on device")

    expected = "error: No space left on device; make room, and run the same command again"
    assert refused(fail, errno.ENOSPC) == refused(fail, errno.EDQUOT) == expected
    with pytest.raises(OSError):
        fail(errno.EIO)
