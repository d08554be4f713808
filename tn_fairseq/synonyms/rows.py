"""Rows of a synonym table: convert words to ids, and combine and filter the rows of several sources."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ..core.vocabulary import match_case

Rows = dict[int, list[int]]  # the ids of the synonyms of a word, best first, by the id of the word


class Coverage(NamedTuple):
    """How many words the source knows, how many it has another word for, and how many have a synonym in the table."""

    known: int
    with_another_word: int
    with_synonym: int


def build_rows(words: Mapping[int, str], candidates: Iterable[Sequence[str] | None]) -> tuple[Rows, Coverage]:
    """Return the rows that are not empty, and their coverage.

    ``words`` are the whole words (id -> word) that can be keys and values. ``candidates`` yields for each of them, in
    order, the words that a source offers as synonyms, or None if it does not know the word. A candidate is kept if, in
    the key's casing pattern, it is one of ``words`` other than the key.
    """
    ids = {word: index for index, word in words.items()}
    rows = {}
    known = with_another_word = 0
    for (index, word), offered in zip(words.items(), candidates, strict=True):
        if offered is None:
            continue
        known += 1
        with_another_word += any(candidate.lower() != word.lower() for candidate in offered)
        synonyms = dict.fromkeys(ids.get(match_case(candidate, like=word)) for candidate in offered)
        rows[index] = [synonym for synonym in synonyms if synonym not in (None, index)]
    rows = _without_empty(rows)
    return rows, Coverage(known, with_another_word, with_synonym=len(rows))


def combine(sources: Sequence[Rows], combination: str) -> Rows:
    """The synonyms that any source lists (``union``) or all sources list (``intersection``).

    Synonyms that more sources list come first, then those with a better mean rank, then those of an earlier source.
    """
    rows = {}
    for word in sorted(set().union(*sources)):
        ranks: dict[int, list[int]] = {}
        for source in sources:
            for rank, synonym in enumerate(source.get(word, ())):
                ranks.setdefault(synonym, []).append(rank)
        kept = [synonym for synonym in ranks if combination == "union" or len(ranks[synonym]) == len(sources)]
        rows[word] = sorted(kept, key=lambda synonym: (-len(ranks[synonym]), sum(ranks[synonym]) / len(ranks[synonym])))
    return _without_empty(rows)


def keep_pairs(rows: Rows, words: Mapping[int, str], keep: Callable[[str, str], bool]) -> Rows:
    """Keep the pairs for which ``keep(word, synonym)`` is true, in their order; ``words`` maps ids to words."""
    return _without_empty(
        {word: [synonym for synonym in row if keep(words[word], words[synonym])] for word, row in rows.items()}
    )


def _without_empty(rows: Rows) -> Rows:
    return {word: row for word, row in rows.items() if row}
