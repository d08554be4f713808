"""The command ``tn-fairseq``, which is also ``python -m tn_fairseq``."""

import difflib
import logging
import os
import select
import signal
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module

from . import register
from .commands import GROUPS
from .core.errors import InputError, one_line_errors

COMMANDS = {
    f"{group} {name}".strip(): summary for group, summaries in GROUPS.items() for name, summary in summaries.items()
}
HELP = ("-h", "--help")
INTERRUPTED = 128 + signal.SIGINT  # as shells do
# these do not need fairseq, which takes seconds to import and may be damaged
WITHOUT_FAIRSEQ = ("user-dir", "look doctor", "synonyms fetch-wordnet")


@one_line_errors()
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command that the first words name; raises InputError (a one-line exit) for an unknown one.

    The name of the group may be left out if no other group has a command of this name.
    """
    try:
        _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        _end_without_reader()
        raise
    except KeyboardInterrupt as stop:
        print("; ".join(["error: interrupted", *map(str, stop.args)]), file=sys.stderr)
        sys.exit(INTERRUPTED)


def _run(words: list[str]) -> None:
    if words[:1] and words[0] in HELP:
        print(overview(GROUPS))
        return
    if words and words[0] in GROUPS and (len(words) == 1 or words[1] in HELP):
        print(overview([words[0]]))
        return
    command, options = _split(words)
    if command not in WITHOUT_FAIRSEQ and not set(HELP) & set(options):
        # one of fairseq's tasks would ask each user for tensorboardX; look doctor says what it is good for
        logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
        register()
    # only this command is imported, because the imports of the others are slow
    import_module(f".commands.{command.replace(' ', '_').replace('-', '_')}", __package__).main(options)


def _end_without_reader() -> None:
    """End if the reader of the output, such as head, has ended; another broken pipe is an error."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    if poll.poll(0):  # an error or the end, which are always reported
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else, Python would complain at its end
        sys.exit(1)


def overview(groups: Iterable[str]) -> str:
    """The help: a line for each command of the groups."""
    lines = ["usage: tn-fairseq COMMAND ...", ""]
    for group in groups:
        for name, summary in GROUPS[group].items():
            lines.append(f"  {f'{group} {name}'.strip():26}{summary}")
        lines.append("")
    return "\n".join([*lines, "Each command explains itself with --help."])


def _split(words: list[str]) -> tuple[str, list[str]]:
    """The name of the command, and its options; raises InputError if no command or several have this name."""
    for length in (2, 1):
        if (command := " ".join(words[:length])) in COMMANDS:
            return command, words[length:]
    named = [command for command in COMMANDS if words and command.split()[-1] == words[0]]
    if len(named) == 1:
        return named[0], words[1:]
    if not words:
        raise InputError("no command given; tn-fairseq --help lists them")
    given = " ".join(words[:2] if words[0] in GROUPS else words[:1])
    close = difflib.get_close_matches(given, [*COMMANDS, *(command.split()[-1] for command in COMMANDS)], 3)
    similar = named or dict.fromkeys(
        command for match in close for command in COMMANDS if match in (command, command.split()[-1])
    )
    hint = f"did you mean {' or '.join(similar)}?" if similar else "tn-fairseq --help lists the commands"
    raise InputError(f"{given!r} is not a command; {hint}")


if __name__ == "__main__":
    main()
