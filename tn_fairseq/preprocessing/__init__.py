"""Convert raw text into the files that fairseq-train reads. See ``python -m tn_fairseq.preprocessing --help``."""

import argparse

from ..errors import PREPROCESSING


def command_parser(command: str, description: str | None) -> argparse.ArgumentParser:
    """A parser without options."""
    form = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=f"{PREPROCESSING} {command}", description=description, formatter_class=form)
