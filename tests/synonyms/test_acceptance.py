"""The quality of synonym tables, counted by hand."""

import pytest
import torch

from tn_fairseq.synonyms.acceptance import TableQuality, crossings, judged_synonyms, table_quality
from tn_fairseq.synonyms.swords import Substitute, Target

WORDS = dict(enumerate("total sum all whole bark cry elections poll polls polling election".split()))
IDS = {word: index for index, word in WORDS.items()}


def target(word: str, lemma: str | None = None, part_of_speech: str = "NOUN", **scores: float) -> Target:
    substitutes = tuple(Substitute(name.replace("_", " "), score) for name, score in scores.items())
    return Target(f"t:{word}", word, 0, len(word), part_of_speech, lemma or word.lower(), substitutes)


def table(**rows: str) -> torch.Tensor:
    found = torch.full((len(WORDS), 3), -1, dtype=torch.int32)
    for word, synonyms in rows.items():
        for column, synonym in enumerate(synonyms.split()):
            found[IDS[word], column] = IDS[synonym]
    return found


TARGETS = [
    target("total", sum=0.9, all=0.1, whole=0.0, sum_total=0.9, cry=0.5),
    target("bark", cry=0.5, sum=0.0),
    target("barking", cry=1.0),  # not in the vocabulary
]


def test_judged_pairs_of_a_table():
    # total: sum, all, whole; bark: cry. The acceptable ones are sum and cry for total, and cry for bark.
    expected = TableQuality(targets=2, judged=4, acceptable=2, doubtful=1, rejected=1, held=2, all_acceptable=3)
    assert table_quality(table(total="sum all whole", bark="cry all"), TARGETS, WORDS, by_lemma=False) == expected
    assert table_quality(table(), TARGETS, WORDS, by_lemma=False) == TableQuality(2, 0, 0, 0, 0, 0, 3)


@pytest.mark.parametrize(
    ("row", "by_spelling", "by_lemma", "held"),
    [
        ("poll", 1, 1, 1),
        ("polls", 0, 1, 1),
        ("poll polls", 1, 2, 1),  # two pairs, but one substitute
        ("polling", 0, 0, 0),  # a form of the verb poll, but elections is a noun
        ("election", 0, 0, 0),
    ],
)
def test_an_inflected_synonym_is_judged_by_its_lemma(row, by_spelling, by_lemma, held):
    elections = [target("elections", "election", poll=1.0)]
    quality = table_quality(table(elections=row), elections, WORDS, by_lemma=False)
    assert quality.acceptable == quality.held == by_spelling
    quality = table_quality(table(elections=row), elections, WORDS, by_lemma=True)
    assert (quality.acceptable, quality.held, quality.all_acceptable) == (by_lemma, held, 1)


def test_the_spelling_counts_before_the_lemma():
    words = {0: "gone", 1: "left"}
    (judged,) = judged_synonyms(target("gone", "go", "VERB", leave=0.0, left=1.0), [1, -1], words).values()
    assert judged.text == "left"


@pytest.mark.parametrize(
    ("vocabulary", "expected"),
    [
        ("total sum", 1),  # uncased: everything is lower-case
        ("total sum Other", None),  # cased: Total is not one piece
        ("total sum Total Sum", 1),
        ("total sum Total Other", 0),
    ],
)
def test_casing(vocabulary, expected):
    words = dict(enumerate(vocabulary.split()))
    rows = torch.tensor([[1], [-1], [3], [-1]], dtype=torch.int32)[: len(words)]
    quality = table_quality(rows, [target("Total", sum=1.0)], words, by_lemma=False)
    assert quality.targets == (expected is not None)
    assert quality.judged == quality.held == quality.all_acceptable == (expected or 0)


def test_rows_and_pairs_that_cross_inflections():
    found = crossings(table(elections="polls poll election", total="sum", poll="polls"), WORDS)
    assert found._asdict() == {"rows": 3, "pairs": 5, "rows_crossing": 2, "own_word": 2, "other_word": 1}


def test_pieces_that_are_not_whole_words_are_left_out():
    rows = table(total="sum all", sum="total", all="total")
    words = {index: word for index, word in WORDS.items() if word != "all"}
    assert crossings(rows, words)[:2] == (2, 2)
    assert table_quality(rows, [target("total", sum=0.9, all=0.9)], words, by_lemma=True).judged == 1
