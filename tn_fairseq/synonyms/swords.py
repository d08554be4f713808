"""SWORDS: which words people accept in the place of a word in its sentence (Lee et al. 2021, arXiv 2106.04102).

The data are the files ``swords-v1.1_dev.json.gz`` and ``swords-v1.1_test.json.gz`` of github.com/p-lambda/swords.
"""

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..core.errors import InputError, first_line
from ..core.files import member, read_bytes

ACCEPTABLE, REJECTED = 0.5, 0.1  # acceptable: at least half of the judges; rejected: fewer than one in ten
VERDICTS = ("acceptable", "doubtful", "rejected")
_REMEDY = "give swords-v1.1_dev.json.gz of github.com/p-lambda/swords"
_member = partial(member, remedy=_REMEDY)
_TABLES = ("contexts", "targets", "substitutes", "substitute_labels")


class Substitute(NamedTuple):
    """A judged substitute: a lemma of one or several words, and the share of judges who accept it (0 to 1)."""

    text: str
    score: float


class Target(NamedTuple):
    """A word in its context, ``context[start:end]``, with its lemma and its judged substitutes."""

    id: str
    context: str
    start: int
    end: int
    part_of_speech: str  # universal: NOUN, VERB, ADJ, ADV
    lemma: str
    substitutes: tuple[Substitute, ...]

    @property
    def word(self) -> str:
        """The word as it stands in the context."""
        return self.context[self.start : self.end]


def verdict(score: float) -> str:
    """One of VERDICTS for the share of judges who accept a substitute."""
    if score >= ACCEPTABLE:
        return "acceptable"
    return "rejected" if score < REJECTED else "doubtful"


def read_swords(path: str | Path) -> list[Target]:
    """Read the targets of a SWORDS file (.json or .json.gz) in the order of the file.

    As in the evaluation of SWORDS, labels UNSURE do not count, and substitutes without another label are left out, as
    are those that are the target itself or its lemma. Raises InputError, with the place in the file, for a file that is
    missing, damaged or of another format, and for an offset at which the context does not contain the target.
    """
    content: Any = read_bytes(path, _REMEDY)
    try:
        content = json.loads(gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged, or not valid JSON ({first_line(error)}); {_REMEDY}") from None
    contexts, targets, substitutes, labels = (_member(content, name, dict, f"{path}: ") for name in _TABLES)
    judged: dict[str, list[Substitute]] = defaultdict(list)
    for key, entry in substitutes.items():
        place = f"{path}: substitutes[{key!r}]."
        target = _member(entry, "target_id", str, place)
        if target not in targets:
            raise InputError(f"{place}target_id: no target {target!r}; {_REMEDY}")
        votes = _member(labels, key, list, f"{path}: substitute_labels.")
        for vote in votes:
            if vote not in ("TRUE", "FALSE", "UNSURE"):
                raise InputError(
                    f"{path}: substitute_labels[{key!r}]: {vote!r} is not TRUE, FALSE or UNSURE; {_REMEDY}"
                )
        if judges := len(votes) - votes.count("UNSURE"):
            judged[target].append(Substitute(_member(entry, "substitute", str, place), votes.count("TRUE") / judges))
    parsed_targets = [_target(path, key, entry, contexts, judged[key]) for key, entry in targets.items()]
    if not any(target.substitutes for target in parsed_targets):
        raise InputError(f"{path}: contains no judged substitutes; {_REMEDY}")
    return parsed_targets


def _target(path: str | Path, key: str, entry: Any, contexts: Mapping[str, Any], judged: list[Substitute]) -> Target:
    place = f"{path}: targets[{key!r}]."
    context_id = _member(entry, "context_id", str, place)
    context = _member(contexts.get(context_id), "context", str, f"{path}: contexts[{context_id!r}].")
    word, start = _member(entry, "target", str, place), _member(entry, "offset", int, place)
    if not word or start < 0 or not context.startswith(word, start):
        raise InputError(f"{place}offset: the context has no {word!r} at {start}; {_REMEDY}")
    extra = entry.get("extra")
    lemma = extra.get("coinco_lemma") if isinstance(extra, dict) else None
    lemma = lemma if isinstance(lemma, str) else word.lower()
    others = tuple(substitute for substitute in judged if substitute.text.lower() not in (lemma.lower(), word.lower()))
    return Target(key, context, start, start + len(word), _member(entry, "pos", str, place), lemma, others)
