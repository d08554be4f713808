"""Parsers of command lines, and types of their arguments."""

import argparse
import sys
from typing import Any, NoReturn

from ..core.flags import explain


def command_parser(command: str, description: str | None) -> argparse.ArgumentParser:
    """A parser without options, which keeps the lines of its description; ``command`` is the name in GROUPS."""
    form = argparse.RawDescriptionHelpFormatter
    return OneLineParser(prog=f"tn-fairseq {command}", description=description, formatter_class=form)


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line; a wrong option comes before a missing one, because it may be the same."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def parse_known_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = list(sys.argv[1:] if args is None else args)  # from Python 3.13 on, it does not call the other
        return super().parse_known_intermixed_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Exit with the message and code 2."""
        flags = [word.partition("=")[0] for word in self._given if word.startswith("--")]
        known = tuple(self._option_string_actions)
        wrong = [flag for flag in flags if not any(name.startswith(flag) for name in known)]
        if wrong and "required" in message:
            message = f"unrecognized arguments: {wrong[0]}"
        self.exit(2, f"error: {explain(self, message, f'{self.prog} --help lists the options')}\n")


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
