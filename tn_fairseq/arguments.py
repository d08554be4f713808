"""Parsers of command lines, and types of their arguments."""

import argparse


def command_parser(command: str, description: str | None) -> argparse.ArgumentParser:
    """A parser without options, which keeps the lines of its description."""
    form = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=command, description=description, formatter_class=form)


def positive(text: str) -> int:
    """A positive integer; raises argparse.ArgumentTypeError for anything else."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, not {text}")
    return int(text)
