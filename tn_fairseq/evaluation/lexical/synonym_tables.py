"""How good a synonym table is: what people say about the synonyms of a word in its sentence."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from torch import Tensor

from ...synonyms.table import PADDING
from ...synonyms.vocabulary import match_case
from .swords import VERDICTS, Target, verdict

Finder = Callable[[str], int | None]


class TableQuality(NamedTuple):
    """The judged pairs of a table: a target in its sentence, and a substitute in the target's row.

    ``all_acceptable`` counts the acceptable substitutes of one piece for targets of one piece, in the table or not.
    """

    targets: int  # of one piece
    judged: int
    acceptable: int
    doubtful: int
    rejected: int
    all_acceptable: int


def one_piece_substitutes(target: Target, find: Finder) -> Iterator[tuple[int, float]]:
    """The dictionary ids and scores of the target's substitutes of one piece, in the target's casing pattern."""
    for substitute in target.substitutes:
        index = find(match_case(substitute.text, like=target.word))
        if index is not None:
            yield index, substitute.score


def table_quality(table: Tensor, targets: Sequence[Target], find: Finder) -> TableQuality:
    """Compare a synonym table, int32 (V, columns), with the judgments of SWORDS.

    ``find`` gives the id of a word (``word_finder``). Judged substitutes are lemmas, so an inflected synonym in the
    table counts only if its spelling is that of a lemma.
    """
    verdicts: Counter[str] = Counter()
    one_piece = all_acceptable = 0
    for target in targets:
        word = find(target.word)
        if word is None:
            continue
        one_piece += 1
        row = set(table[word].tolist()) - {PADDING}
        for index, score in one_piece_substitutes(target, find):
            all_acceptable += verdict(score) == "acceptable"
            if index in row:
                verdicts[verdict(score)] += 1
    return TableQuality(one_piece, verdicts.total(), *(verdicts[name] for name in VERDICTS), all_acceptable)
