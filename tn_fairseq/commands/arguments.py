"""Parsers of command lines, and types of their arguments."""

import argparse


def command_parser(command: str, description: str | None) -> argparse.ArgumentParser:
    """A parser without options, which keeps the lines of its description; ``command`` is the name in GROUPS."""
    form = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=f"tn-fairseq {command}", description=description, formatter_class=form)


def positive(text: str) -> int:
    """A positive integer; raises argparse.ArgumentTypeError for anything else."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, not {text}")
    return int(text)


def share(text: str) -> float:
    """A number above 0 and at most 1; raises argparse.ArgumentTypeError for anything else."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 1, not {text}")
    return value
