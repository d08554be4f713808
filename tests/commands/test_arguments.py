"""Types of command-line arguments."""

import argparse

import pytest

from tn_fairseq.commands.arguments import positive, share


def test_positive_numbers():
    assert [positive(text) for text in ("1", "12", "007")] == [1, 12, 7]


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", "", "1_0"])
def test_anything_else_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match=f"^must be a positive integer, not {text}$"):
        positive(text)


def test_shares():
    assert [share(text) for text in ("1", "0.5", "1e-3")] == [1, 0.5, 0.001]


@pytest.mark.parametrize("text", ["0", "-0.1", "1.01", "nan", "inf", "x", ""])
def test_what_is_no_share_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match=f"^must be above 0 and at most 1, not {text}$"):
        share(text)
