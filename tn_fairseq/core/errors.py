"""One-line errors for bad input: what is wrong, where, and how to fix it."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

# torch puts the traceback of a loader process before the message
_LOADER_TRACEBACK = re.compile(r"Caught \w+ in DataLoader worker process.*\n[\w.]+Error: ", re.DOTALL)


class InputError(ValueError):
    """Input from the user is invalid; the message is one line and says how to fix it."""


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or the name of its class if it has none."""
    return (str(error) or type(error).__name__).splitlines()[0]


@contextmanager
def naming(flag: str) -> Iterator[None]:
    """Put the flag that names a file before the message of each ``InputError`` about that file."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{flag} {error}") from None


@contextmanager
def if_interrupted(advice: str) -> Iterator[None]:
    """Give a KeyboardInterrupt this message, which ``tn-fairseq`` prints."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(advice) from None


@contextmanager
def exits_as_errors() -> Iterator[None]:
    """Turn the exit of a function with ``one_line_errors`` back into an InputError; other exits stay, as of --help."""
    try:
        yield
    except SystemExit as stop:
        if not stop.code:
            raise
        raise InputError(str(stop.code).removeprefix("error: ")) from None


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn an ``InputError`` into a one-line message on standard error and exit code 1.

    The same applies to a file name that is not valid text and so cannot be printed or stored, to a full disk, and to a
    missing fairseq.
    ``SystemExit`` passes through ``fairseq-train`` and Hydra without a traceback, unlike any other exception. Also
    works as a decorator.
    """
    try:
        yield
    except InputError as error:
        message = _LOADER_TRACEBACK.sub("", str(error)).rstrip("\n")
        message = message.replace("\r", r"\r").replace("\n", r"\n")  # file names may contain them
        raise SystemExit(f"error: {message}") from None
    except UnicodeEncodeError as error:
        part = error.object[max(error.start - 40, 0) : error.end + 40]
        raise SystemExit(
            f"error: {part!a} cannot be written as {error.encoding}; rename the file or folder, or set PYTHONUTF8=1"
        ) from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise SystemExit(f"error: {error.strerror}; make room, and run the same command again") from None
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "fairseq":
            raise
        raise SystemExit(
            "error: fairseq is not installed, but this command needs it; use Python 3.11 to 3.13, and install it with "
            "pip install 'tn_fairseq[fairseq]'"
        ) from None
