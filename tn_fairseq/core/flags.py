"""What argparse says about wrong flags, in one line and with the names of similar ones."""

import argparse
import difflib
import re


def explain(parser: argparse.ArgumentParser, message: str, otherwise: str) -> str:
    """argparse's message, with names that are similar to the wrong one, or else ``otherwise``."""
    choice = re.fullmatch(r"argument ([^:]+): invalid choice: '(.*?)' \(choose from (.*)\)", message, re.DOTALL)
    unknown = re.fullmatch(r"unrecognized arguments: (.*)", message, re.DOTALL)
    if choice:
        names = re.findall(r"[^\s',]+", choice[3])  # Python 3.12.8 and later print them without quotes
        by_lowercase = {name.lower(): name for name in names}
        similar = [by_lowercase[name] for name in difflib.get_close_matches(choice[2].lower(), by_lowercase)]
        advice = f"did you mean {' or '.join(similar)}?" if similar else f"give one of {', '.join(names)}"
        return f"{choice[1].partition('/')[0]} {choice[2]}: unknown; {advice}"
    if unknown:
        flag = next((word for word in unknown[1].split() if word.startswith("-")), unknown[1])
        similar = difflib.get_close_matches(flag.partition("=")[0], list(parser._option_string_actions), 2, 0.7)
        advice = f"did you mean {' or '.join(similar)}?" if similar else otherwise
        return f"unrecognized arguments: {unknown[1]}; {advice}"
    return message
