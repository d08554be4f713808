"""How good a synonym table is: what people say about its synonyms, and how many of its pairs cross inflections."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from ...synonyms.inflection import Relation, readings, relation
from ...synonyms.table import PADDING
from ...synonyms.vocabulary import match_case
from .swords import VERDICTS, Target, verdict
from .words import word_finder


class TableQuality(NamedTuple):
    """The judged pairs of a table: a target in its sentence, and a judged substitute that the target's row holds.

    ``all_acceptable`` counts the acceptable substitutes of one piece for targets of one piece, in the table or not.
    """

    targets: int  # of one piece
    judged: int
    acceptable: int
    doubtful: int
    rejected: int
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


def one_piece_substitutes(target: Target, find: Callable[[str], int | None]) -> Iterator[tuple[int, float]]:
    """The dictionary ids and scores of the target's substitutes of one piece, in the target's casing pattern.

    ``find`` gives the id of a word (``word_finder``).
    """
    for substitute in target.substitutes:
        index = find(match_case(substitute.text, like=target.word))
        if index is not None:
            yield index, substitute.score


def table_quality(table: Tensor, targets: Sequence[Target], words: Mapping[int, str], by_lemma: bool) -> TableQuality:
    """Compare a synonym table, int32 (V, columns), with the judgments of SWORDS.

    ``words`` are the dictionary's whole words (``whole_words``). Judged substitutes are lemmas: *poll* for the target
    *elections*. A row holds a substitute if it lists the lemma itself or, ``by_lemma``, an inflected form of it with
    the target's part of speech (*polls*).
    """
    find = word_finder(words)
    verdicts: Counter[str] = Counter()
    one_piece = all_acceptable = 0
    for target in targets:
        index = find(target.word)
        if index is None:
            continue
        one_piece += 1
        row = {synonym for synonym in table[index].tolist() if synonym != PADDING}
        lemmas = {lemma for synonym in row if by_lemma for lemma in _lemmas(words[synonym], target.part_of_speech)}
        for substitute, score in one_piece_substitutes(target, find):
            all_acceptable += verdict(score) == "acceptable"
            if substitute in row or words[substitute].lower() in lemmas:
                verdicts[verdict(score)] += 1
    return TableQuality(one_piece, verdicts.total(), *(verdicts[name] for name in VERDICTS), all_acceptable)


def _lemmas(word: str, part_of_speech: str) -> Iterator[str]:
    return (reading.lemma for reading in readings(word.lower()) if reading.part_of_speech == part_of_speech)


def crossings(table: Tensor, words: Mapping[int, str]) -> Crossings:
    """Count the rows and pairs of a synonym table, int32 (V, columns), that cross inflections; for English."""
    relations: Counter[Relation] = Counter()
    rows = rows_crossing = 0
    for index, row in enumerate(table.tolist()):
        found = [relation(words[index], words[synonym]) for synonym in row if synonym != PADDING]
        relations.update(found)
        rows += bool(found)
        rows_crossing += any(kind != Relation.SAME_FORM for kind in found)
    own_word, other_word = relations[Relation.OWN_WORD], relations[Relation.OTHER_WORD]
    return Crossings(rows, relations.total(), rows_crossing, own_word, other_word)
