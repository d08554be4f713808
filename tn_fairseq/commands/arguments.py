"""Command lines from options: a command is a function of a dataclass, whose fields are what ``option`` makes."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast, get_args, get_origin

from ..core.errors import InputError, one_line_errors
from ..core.flags import explain
from ..core.options import check, choices_of, default_of, flag_of, kind_of

Options = TypeVar("Options")
METAVARS: dict[Any, str] = {int: "N", float: "X", Path: "FILE"}
NUMBERS = {int: "an integer", float: "a number"}


def command_line(name: str, description: str | None, run: Callable[[Options], None]) -> Callable[..., None]:
    """The ``main`` of a command: it reads the options of ``run`` from a command line, checks them, and runs."""
    kind = run.__annotations__["options"]

    @one_line_errors()
    def main(argv: Sequence[str] | None = None) -> None:
        run(parse_options(kind, name, description, argv))

    main.__doc__ = run.__doc__
    return main


def parse_options(
    kind: type[Options], command: str, description: str | None, argv: Sequence[str] | None = None
) -> Options:
    """The options in a command line; exits with one line or the help, and raises InputError as ``check`` does."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = options_parser(kind, command, description)
    entries = fields(cast(Any, kind))
    given: dict[str, Any] = {}
    for name in (entry.name for entry in entries if "rest" in entry.metadata and "--" in words):
        given[name], words = tuple(words[words.index("--") + 1 :]), words[: words.index("--")]
    given |= vars(parser.parse_intermixed_args(words))
    for entry in entries:
        if isinstance(given.get(entry.name), list) and _is(entry, Mapping):
            given[entry.name] = _mapping(flag_of(entry), given[entry.name], get_args(kind_of(entry))[1])
    options = kind(**given)
    check(options)
    return options


def options_parser(kind: type, command: str, description: str | None) -> argparse.ArgumentParser:
    """A parser with an argument for each field of a dataclass that is an ``option``."""
    parser = command_parser(command, description)
    groups: dict[str | None, Any] = {None: parser}
    for entry in fields(kind):
        rules, default, value = entry.metadata, default_of(entry), kind_of(entry)
        if "rest" in rules:
            parser.epilog = f'after "--": {rules["help"]}'
        if "help" not in rules or "rest" in rules:
            continue
        arguments: dict[str, Any] = {"help": rules["help"].replace("%", "%%"), "default": argparse.SUPPRESS}
        if default not in (MISSING, None, False, "", (), [], {}) and "(default" not in rules["help"]:
            arguments["help"] += f" (default: {default})"
        if value is bool:
            arguments["action"] = "store_true"
        else:
            is_list, is_mapping = (_is(entry, shape) and "parse" not in rules for shape in (Sequence, Mapping))
            word = get_args(value)[0] if is_list else value
            choices = None if is_mapping else ",".join(map(str, choices_of(entry)))
            metavar = f"{{{choices}}}" if choices else "NAME=VALUE" if is_mapping else METAVARS.get(word)
            arguments["metavar"] = rules.get("metavar") or metavar or entry.name.upper()
            arguments["type"] = _reader(rules.get("parse") or (_pair if is_mapping else word))
            if "const" in rules:
                arguments |= {"nargs": "?", "const": rules["const"]}
            elif "repeat" in rules:
                arguments["action"] = "append"
            elif is_list or is_mapping:
                arguments["nargs"] = "*" if "positional" in rules and default is not MISSING else "+"
                arguments["action"] = "extend" if is_mapping else "store"
            elif "positional" in rules and default is not MISSING:
                arguments["nargs"] = "?"
        title = rules.get("group")
        groups[title] = groups.get(title) or parser.add_argument_group(title)
        if "positional" in rules:
            groups[title].add_argument(entry.name, **arguments)
        else:
            groups[title].add_argument(flag_of(entry), dest=entry.name, required=default is MISSING, **arguments)
    return parser


def _is(entry: "Field[Any]", shape: type) -> bool:
    origin = get_origin(kind_of(entry))
    return isinstance(origin, type) and issubclass(origin, shape)


def _reader(read: Any) -> Callable[[str], Any]:
    """Read a word as a function does, or as a type if it is a number or a path."""
    reads_text = read in (str, Any) or get_origin(read) is not None

    def read_word(text: str) -> Any:
        try:
            return text if reads_text else read(text)
        except ValueError as error:
            expected = NUMBERS.get(read, str(error))
            raise argparse.ArgumentTypeError(f"{text!r}: must be {expected}") from None

    return read_word


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise ValueError("NAME=VALUE")
    return name, value


def _mapping(flag: str, pairs: Sequence[tuple[str, str]], value: Any) -> dict[str, Any]:
    """The values by name; all values of a name if it has several, which else raise InputError."""
    values: dict[str, Any] = {}
    for name, text in pairs:
        if get_origin(value) is not None:
            values.setdefault(name, []).append(text)
            continue
        if name in values:
            raise InputError(f"{flag} names {name} twice; give it once")
        try:
            values[name] = value(text)
        except ValueError:
            raise InputError(f"{flag} {name}={text}: must be {name} and {NUMBERS[value]}") from None
    return values


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
        """Exit with the message."""
        flags = [word.partition("=")[0] for word in self._given if word.startswith("--")]
        known = tuple(self._option_string_actions)
        wrong = [flag for flag in flags if not any(name.startswith(flag) for name in known)]
        if wrong and "required" in message:
            message = f"unrecognized arguments: {wrong[0]}"
        raise SystemExit(f"error: {explain(self, message, self.epilog or f'{self.prog} --help lists the options')}")


def positive(text: str) -> int:
    """A positive integer; raises argparse.ArgumentTypeError for anything else."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, not {text}")
    return int(text)
