"""Errors that any command may meet."""

import errno

import pytest
from files import refused
from helpers import end_loaders
from torch.utils.data import DataLoader

from tn_fairseq.core.errors import InputError, one_line_errors


def test_a_full_disk_gets_one_line_and_other_errors_of_the_system_pass():
    @one_line_errors()
    def fail(code: int) -> None:
        raise OSError(code, "No space left on device")

    expected = "error: No space left on device; make room, and run the same command again"
    assert refused(fail, errno.ENOSPC) == refused(fail, errno.EDQUOT) == expected
    with pytest.raises(OSError):
        fail(errno.EIO)


class Invalid:
    """A dataset whose only item is invalid."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> None:
        raise InputError("a\nb: is empty; fill it")


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_a_loader_process_gets_one_line(workers):
    message = refused(one_line_errors()(list), DataLoader(Invalid(), num_workers=workers))
    end_loaders()
    assert message == r"error: a\nb: is empty; fill it"
