"""Options: each is declared once, as a field of a dataclass, from which command lines, checks and guides are made."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from numbers import Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from .errors import InputError
from .flags import similar

_BOUNDS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("above", "above", lambda value, bound: value > bound),
    ("at_least", "at least", lambda value, bound: value >= bound),
    ("below", "below", lambda value, bound: value < bound),
    ("at_most", "at most", lambda value, bound: value <= bound),
)
Condition = str | Mapping[str, Any]


def option(
    help: str,
    *,
    default: Any = MISSING,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    choices: Collection[str] | None = None,
    needs: Condition | None = None,
    needed_by: Condition | None = None,
    unless: Condition | None = None,
    not_with: Condition | None = None,
    flag: str | None = None,
    metavar: str | None = None,
    positional: bool = False,
    repeat: bool = False,
    rest: bool = False,
    const: str | None = None,
    group: str | None = None,
    parse: Callable[[str], Any] | None = None,
) -> Any:
    """A field of a dataclass with what its value must be, and how a command line gives it; without default, required.

    Every number of a list and every value of a mapping must be within the bounds, and every item of a list and every
    key of a mapping one of the ``choices``, which a ``Literal`` also names.

    A condition is the name of another option that is given, which means that it differs from its default; or maps the
    names of other options to the values of which one must have or contain one. The option has no effect unless what it
    ``needs`` holds; is missing if what it is ``needed_by`` holds, or ``unless`` another holds; and excludes those that
    it is ``not_with``.

    The type says how a command line gives a value: True is a flag alone, a sequence takes several words, a mapping
    takes words NAME=VALUE and can be given again, and ``parse`` reads a word of any other type; it raises ValueError
    with what it must be. ``flag`` replaces a name that is a keyword of Python. A ``repeat`` flag takes one word each
    time. The ``rest`` is what follows "--". A flag without a word means ``const``. ``group`` is a title in --help.
    """
    metadata = {
        name: rule for name, rule in locals().items() if name != "default" and rule is not None and rule is not False
    }
    if isinstance(default, list | dict | set):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def flag(name: str) -> str:
    """The flag of an option with this name."""
    return f"--{name.replace('_', '-')}"


def flag_of(entry: "Field[Any]") -> str:
    """The flag of an option."""
    return str(entry.metadata.get("flag") or flag(entry.name))


def default_of(entry: "Field[Any]") -> Any:
    """The value of an option that is not given; MISSING if it must be."""
    return entry.default if entry.default_factory is MISSING else entry.default_factory()


def kind_of(entry: "Field[Any]") -> Any:
    """The type of an option's value; of X | None, it is X."""
    kind = entry.type
    return get_args(kind)[0] if get_origin(kind) in (Union, UnionType) else kind


def choices_of(entry: "Field[Any]") -> Collection[Any]:
    """The values that an option may have; empty if there are others."""
    kind = kind_of(entry)
    inner = get_args(kind)[0] if get_origin(kind) not in (None, Literal) else kind
    return entry.metadata.get("choices") or (get_args(inner) if get_origin(inner) is Literal else ())


def check(options: Any, kind: Any = None, say: Callable[[str], str] | None = None) -> None:
    """Raises InputError for the first option that is wrong, missing, without effect, or excluded by another.

    ``kind`` is the dataclass with the options, by default that of ``options``. ``say`` spells the name of an option, by
    default as its flag; in Python, ``str`` does.
    """
    declared = {entry.name: entry for entry in fields(kind or type(options)) if entry.metadata}

    def spell(name: str) -> str:
        return say(name) if say else flag_of(declared[name])

    def value_of(name: str) -> Any:  # a configuration of an older version may lack an option
        return getattr(options, name, default_of(declared[name]))

    def is_given(name: str) -> bool:
        return bool(value_of(name) != default_of(declared[name]))

    def holds(condition: Condition) -> bool:
        if isinstance(condition, str):
            return is_given(condition)
        return any(set(_items(wanted)) & set(_items(value_of(name))) for name, wanted in condition.items())

    def text(condition: Condition) -> str:
        if isinstance(condition, str):
            return spell(condition)
        return " or ".join(f"{spell(name)} {' or '.join(map(str, _items(v)))}" for name, v in condition.items())

    for name, entry in declared.items():
        value, rules, given = value_of(name), entry.metadata, is_given(name)
        if default_of(entry) is MISSING and isinstance(value, Sequence) and not value:
            raise InputError(f"{spell(name)} is missing: {rules['help']}")
        _check_values(spell(name), value, entry)
        if given and not holds(rules.get("needs", name)):
            raise InputError(f"{spell(name)} has no effect without {text(rules['needs'])}; give it, or omit this")
        if not given and "needed_by" in rules and holds(rules["needed_by"]):
            raise InputError(f"{text(rules['needed_by'])} needs {spell(name)}: {rules['help']}")
        if not given and "unless" in rules and not holds(rules["unless"]):
            raise InputError(f"give {spell(name)} or {text(rules['unless'])}")
        if given and "not_with" in rules and holds(rules["not_with"]):
            raise InputError(f"{spell(name)} and {text(rules['not_with'])} exclude each other; omit one")


def _items(value: Any) -> Iterator[Any]:
    """The value, or what it contains."""
    return iter(value) if isinstance(value, Collection) and not isinstance(value, str) else iter((value,))


def _check_values(name: str, value: Any, entry: "Field[Any]") -> None:
    """Raises InputError for values that are no choice, of another type, or out of bounds."""
    choices, bounds = choices_of(entry), [bound for bound in _BOUNDS if bound[0] in entry.metadata]
    for item in _items(value) if choices else ():
        if item is not None and item not in choices:
            raise InputError(f"{name} {item}: unknown; {similar(str(item), list(map(str, choices)))}")
    if kind_of(entry) is bool and not isinstance(value, bool):
        raise InputError(f"{name} {value!r}: must be True or False")
    for number in _items(value.values() if isinstance(value, Mapping) else value):
        if number is None or not (bounds or kind_of(entry) in (int, float)):
            continue
        if not isinstance(number, Real) or isinstance(number, bool) or not math.isfinite(number):
            raise InputError(f"{name} {number!r}: must be a finite number")
        if not all(is_within(number, entry.metadata[key]) for key, _, is_within in bounds):
            texts = [f"{words} {entry.metadata[key]:,}" for key, words, _ in bounds]
            raise InputError(f"{name} {number}: must be {' and '.join(texts)}")
