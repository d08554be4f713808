"""The options of the attacks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...core.options import option

INFLECTIONS = ("keep", "any")
SENSES = ("all", "first")


@dataclass(frozen=True)
class Swapping:
    """How many words are swapped, and for what.

    int(``share`` x words) words are swapped, but at least one and at most ``most``. With the ``inflection`` "keep", a
    synonym gets the form of the word, and *a* before it becomes *an* if necessary; with "any", it is WordNet's lemma.
    ``senses`` are those of the word, with its part of speech, whose synonyms count: "all", or only the "first".
    """

    share: float = option("share of the words to swap", default=0.1, above=0, at_most=1)
    most: int = option("at most N words", default=10, at_least=1)
    inflection: str = option(
        "keep: give synonyms the form of the word, and correct a and an before them; any: WordNet's lemmas, as in the "
        "paper",
        default="keep",
        choices=INFLECTIONS,
    )
    senses: str = option(
        "all: synonyms in any sense; first: only in the most frequent sense", default="all", choices=SENSES
    )
    seed: int = option("seed", default=1)


@dataclass(frozen=True, kw_only=True)
class SwapOptions(Swapping):
    """The questions, and how to attack them."""

    squad: Path = option("questions in SQuAD 1.1's format")
    output: Path = option("file for the attacked questions")
    place: Literal["context", "question"] = option("what to swap", default="context", flag="--in")
    workers: int = option("processes", default=1, at_least=1)
    show: int = option("print N random attacked texts", default=0, at_least=0)
    swords: str | None = option("print how people judge such swaps; a file of SWORDS", default=None, metavar="FILE")


@dataclass(frozen=True, kw_only=True)
class DistractorOptions:
    """The questions, and how to attack them."""

    squad: Path = option("questions in SQuAD 1.1's format")
    output: Path = option("file for the attacked questions")
    seed: int = option("seed", default=1)
    workers: int = option("processes", default=1, at_least=1)
    show: int = option("print N random distractors", default=0, at_least=0)
