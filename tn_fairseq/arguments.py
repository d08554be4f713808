"""Types of command-line arguments."""

import argparse


def positive(text: str) -> int:
    """A positive integer; raises argparse.ArgumentTypeError for anything else."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, not {text}")
    return int(text)
