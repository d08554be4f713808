"""Bad input gets one line: what is wrong, where, and how to mend it."""

from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Something a user handed in cannot be used; the message is one line and says how to mend it."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn an ``InputError`` into a one-line message on standard error and exit code 1.

    So is a name that can be neither printed nor stored, for its bytes are no text. ``SystemExit`` passes through
    ``fairseq-train`` and Hydra without a traceback, where any other exception would be dressed in one. Works as a
    decorator, too.
    """
    try:
        yield
    except InputError as error:
        message = str(error).replace("\r", r"\r").replace("\n", r"\n")  # a file's name may hold them
        raise SystemExit(f"error: {message}") from None
    except UnicodeEncodeError as error:
        part = error.object[max(error.start - 40, 0) : error.end + 40]
        raise SystemExit(
            f"error: {part!a} cannot be written as {error.encoding}; rename the file or folder, or set PYTHONUTF8=1"
        ) from None
