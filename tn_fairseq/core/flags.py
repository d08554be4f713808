"""What argparse says about wrong flags, in one line and with the names of similar ones."""

import argparse
import difflib
import re
from collections.abc import Collection


def explain(parser: argparse.ArgumentParser, message: str, otherwise: str) -> str:
    """argparse's message, with names that are similar to the wrong one, or else ``otherwise``."""
    choice = re.fullmatch(r"argument ([^:]+): invalid choice: '(.*?)' \(choose from (.*)\)", message, re.DOTALL)
    unknown = re.fullmatch(r"unrecognized arguments: (.*)", message, re.DOTALL)
    if choice:
        names = re.findall(r"[^\s',]+", choice[3])  # Python 3.12.8 and later print them without quotes
        return f"{choice[1].partition('/')[0]} {choice[2]}: unknown; {similar(choice[2], names)}"
    if unknown:
        flag = next((word for word in unknown[1].split() if word.startswith("-")), unknown[1])
        close = difflib.get_close_matches(flag.partition("=")[0], list(parser._option_string_actions), 2, 0.7)
        advice = f"did you mean {' or '.join(close)}?" if close else otherwise
        return f"unrecognized arguments: {unknown[1]}; {advice}"
    return message


def similar(given: str, names: Collection[str]) -> str:
    """Advice that has the names that are similar to what was given, or else all."""
    by_lowercase = {name.lower(): name for name in names}
    close = [by_lowercase[name] for name in difflib.get_close_matches(given.lower(), by_lowercase)]
    return f"did you mean {' or '.join(close)}?" if close else f"give one of {', '.join(names)}"
