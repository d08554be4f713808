"""Cells of the files of others: remarks, quotes and several terms."""

import pytest

from tn_fairseq.synonyms.terms import split_cell, without_remarks


@pytest.mark.parametrize(
    ("cell", "terms"),
    [
        ("glad|joyful", ["glad", "joyful"]),
        ("['glad', 'joyful']", ["glad", "joyful"]),
        ('"glad"; joyful (literary)', ["glad", "joyful"]),
        ("'s Gravenhage, 'tis", ["'s Gravenhage", "'tis"]),
        ("dogs', o'clock", ["dogs'", "o'clock"]),
        ("glad (rare, dialect), joyful *arch.", ["glad", "joyful"]),
        ("1/2", ["1/2"]),
        ("≠sad, glad (antonym), merry (similar term)", ["merry"]),
    ],
)
def test_the_terms_of_a_cell(cell, terms):
    found = [without_remarks(part) for part in split_cell(cell)]
    assert [term for term in found if term] == terms
