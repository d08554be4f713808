"""Combine the synonyms of several sources, and filter them."""

from collections.abc import Callable, Mapping, Sequence

from ..synonym_table import Rows

COMBINATIONS = ("union", "intersection")


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
