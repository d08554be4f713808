"""Types of command-line arguments."""

import argparse

import pytest

from tn_fairseq.arguments import positive


def test_positive_numbers():
    assert [positive(text) for text in ("1", "12", "007")] == [1, 12, 7]


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", "", "1_0"])
def test_anything_else_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match=f"^must be a positive integer, not {text}$"):
        positive(text)
