"""The quality of synonym tables, counted by hand."""

import pytest
import torch

from tn_fairseq.evaluation.lexical.swords import Substitute, Target
from tn_fairseq.evaluation.lexical.synonym_tables import table_quality
from tn_fairseq.evaluation.lexical.words import word_finder

WORDS = ["total", "sum", "all", "whole", "bark", "cry"]


def target(word: str, **scores: float) -> Target:
    substitutes = tuple(Substitute(name.replace("_", " "), score) for name, score in scores.items())
    return Target(f"t:{word}", word, 0, len(word), "NOUN", word.lower(), substitutes)


def table(**rows: list[str]) -> torch.Tensor:
    found = torch.full((len(WORDS), 3), -1, dtype=torch.int32)
    for word, synonyms in rows.items():
        for column, synonym in enumerate(synonyms):
            found[WORDS.index(word), column] = WORDS.index(synonym)
    return found


TARGETS = [
    target("total", sum=0.9, all=0.1, whole=0.0, sum_total=0.9, cry=0.5),
    target("bark", cry=0.5, sum=0.0),
    target("barking", cry=1.0),  # not in the vocabulary
]


def test_judged_pairs_of_a_table():
    find = word_finder(dict(enumerate(WORDS)))
    quality = table_quality(table(total=["sum", "all", "whole"], bark=["cry", "all"]), TARGETS, find)
    # total: sum, all, whole; bark: cry. The acceptable ones are sum and cry for total, and cry for bark.
    assert quality._asdict() == {
        "targets": 2,
        "judged": 4,
        "acceptable": 2,
        "doubtful": 1,
        "rejected": 1,
        "all_acceptable": 3,
    }


def test_an_empty_table_has_no_judged_pairs():
    quality = table_quality(table(), TARGETS, word_finder(dict(enumerate(WORDS))))
    assert (quality.judged, quality.acceptable, quality.all_acceptable) == (0, 0, 3)


@pytest.mark.parametrize(
    ("vocabulary", "word", "expected"),
    [
        (["total", "sum"], "Total", 1),  # uncased: everything is lower-case
        (["total", "sum", "Total"], "Total", 0),  # cased: the row of Total, and Sum is missing
        (["total", "sum", "Total", "Sum"], "Total", 1),
    ],
)
def test_casing(vocabulary, word, expected):
    rows = torch.tensor([[1], [-1], [3], [-1]], dtype=torch.int32)[: len(vocabulary)]
    quality = table_quality(rows, [target(word, sum=1.0)], word_finder(dict(enumerate(vocabulary))))
    assert quality.judged == quality.all_acceptable == expected
