"""How good a synonym table is: what people say about its synonyms, and how many of its pairs cross inflections."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from ..core.vocabulary import match_case, word_finder
from .inflection import Relation, readings, relation
from .swords import ACCEPTABLE, VERDICTS, Substitute, Target, verdict


class TableQuality(NamedTuple):
    """The judged pairs of a table: a target in its sentence, and a synonym in the target's row.

    ``all_acceptable`` counts the acceptable substitutes of one piece for targets of one piece, and ``held`` those that
    the target's row holds.
    """

    targets: int  # of one piece
    judged: int
    acceptable: int
    doubtful: int
    rejected: int
    held: int
    all_acceptable: int


class Crossings(NamedTuple):
    """How many rows and pairs of a table cross inflections: a word and a synonym in another form.

    ``own_word`` counts the pairs of two forms of one word (*elections*, *election*), ``other_word`` those of two words
    in different forms or parts of speech (*elections*, *vote*). A row crosses inflections if one of its pairs does.
    """

    rows: int
    pairs: int
    rows_crossing: int
    own_word: int
    other_word: int


def judged_synonyms(
    target: Target, row: Iterable[int], words: Mapping[int, str], by_lemma: bool = True
) -> dict[int, Substitute]:
    """The words in a row of a synonym table that are judged at a target: dictionary id -> the judged substitute.

    ``words`` are the dictionary's whole words (``whole_words``). Judged substitutes are lemmas: *poll* for the target
    *elections*. A synonym is judged if it is one of them or, ``by_lemma``, an inflected form of one with the target's
    part of speech (*polls*).
    """
    substitutes = {substitute.text.lower(): substitute for substitute in target.substitutes}
    judged: dict[int, Substitute] = {}
    for synonym in row:
        if synonym not in words:
            continue
        word = words[synonym].lower()
        lemmas = [reading.lemma for reading in readings(word) if reading.part_of_speech == target.part_of_speech]
        for spelling in (word, *sorted(lemmas if by_lemma else ())):
            if spelling in substitutes:
                judged.setdefault(synonym, substitutes[spelling])
    return judged


def table_quality(
    table: Tensor,
    targets: Sequence[Target],
    words: Mapping[int, str],
    by_lemma: bool,
    kept: Collection[tuple[str, int]] | None = None,
) -> TableQuality:
    """Compare a synonym table, int32 (V, columns), with the judgments of SWORDS; see ``judged_synonyms``.

    If ``kept`` is given, only synonyms count that are in it, after the id of their target.
    """
    find = word_finder(words)
    verdicts: Counter[str] = Counter()
    one_piece = held = all_acceptable = 0
    for target in targets:
        index = find(target.word)
        if index is None:
            continue
        one_piece += 1
        row = [synonym for synonym in table[index].tolist() if kept is None or (target.id, synonym) in kept]
        judged = judged_synonyms(target, row, words, by_lemma)
        verdicts.update(verdict(substitute.score) for substitute in judged.values())
        for substitute in target.substitutes:
            is_one_piece = find(match_case(substitute.text, like=target.word)) is not None
            if is_one_piece and substitute.score >= ACCEPTABLE:
                all_acceptable += 1
                held += substitute in judged.values()
    acceptable, doubtful, rejected = (verdicts[name] for name in VERDICTS)
    return TableQuality(one_piece, verdicts.total(), acceptable, doubtful, rejected, held, all_acceptable)


def crossings(table: Tensor, words: Mapping[int, str]) -> Crossings:
    """Count the rows and pairs of a synonym table, int32 (V, columns), that cross inflections; for English.

    ``words`` are the dictionary's whole words (``whole_words``); pairs of anything else are left out.
    """
    relations: Counter[Relation] = Counter()
    rows = rows_crossing = 0
    for index, row in enumerate(table.tolist()):
        row_relations = [
            relation(words[index], words[synonym]) for synonym in row if index in words and synonym in words
        ]
        relations.update(row_relations)
        rows += bool(row_relations)
        rows_crossing += any(kind != Relation.SAME_FORM for kind in row_relations)
    own_word, other_word = relations[Relation.OWN_WORD], relations[Relation.OTHER_WORD]
    return Crossings(rows, relations.total(), rows_crossing, own_word, other_word)
