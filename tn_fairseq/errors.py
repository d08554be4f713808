"""Bad input gets one line: what is wrong, where, and how to mend it."""

from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Something a user handed in cannot be used; the message is one line and says how to mend it."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn an ``InputError`` into a one-line message on standard error and exit code 1.

    ``SystemExit`` passes through ``fairseq-train`` and Hydra without a traceback, where any other exception would be
    dressed in one. Works as a decorator, too.
    """
    try:
        yield
    except InputError as error:
        raise SystemExit(f"error: {error}") from None
