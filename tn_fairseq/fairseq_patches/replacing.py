"""Replacement of a function of fairseq by one that calls it."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

REPLACED: list[tuple[Any, str, Callable]] = []  # owner, name, and our function


def replaces(owner: Any, name: str) -> Callable[[Callable], Callable]:
    """A decorator that puts a function in the place of ``owner.name``, and passes it the old one as first argument."""
    original = getattr(owner, name)

    def install(function: Callable) -> Callable:
        @wraps(original)
        def replacement(*args: Any, **options: Any) -> Any:
            return function(original, *args, **options)

        is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
        setattr(owner, name, staticmethod(replacement) if is_static else replacement)
        REPLACED.append((owner, name, replacement))
        return replacement

    return install
