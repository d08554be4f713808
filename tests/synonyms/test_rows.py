import pytest

from tn_fairseq.synonyms.rows import build_rows, combine, keep_pairs

WORDS = {4: "main", 5: "chief", 6: "stay", 7: "Main", 8: "Chief"}

ONE = {4: [5, 6, 7], 5: [4]}
TWO = {4: [8, 6, 5], 6: [4]}


@pytest.mark.parametrize(
    ("candidates", "rows", "coverage"),
    [
        (
            [["main", "primary_winding", "Chief", "chief"], ["main", "chief"], None, ["main", "chief"], ["chief"]],
            {4: [5], 5: [4], 7: [8]},
            (4, 3, 3),
        ),
        ([["stay", "chief", "stay"], None, ["main"], None, None], {4: [6, 5], 6: [4]}, (2, 2, 2)),
        ([None, None, None, ["main", "chief"], ["main"]], {7: [8], 8: [7]}, (2, 2, 2)),  # the casing of the key
        ([[]] * 5, {}, (5, 0, 0)),
    ],
)
def test_rows_contain_the_ids_of_the_synonyms_in_the_order_of_the_source(candidates, rows, coverage):
    assert build_rows(WORDS, candidates) == (rows, coverage)


def test_the_union_lists_shared_synonyms_first_and_then_the_better_ranks():
    # 5 has the ranks 0 and 2, 6 has 1 and 1: a tie, which the first source decides; 8 is first in its source, 7 third
    assert combine([ONE, TWO], "union") == {4: [5, 6, 8, 7], 5: [4], 6: [4]}
    assert combine([TWO, ONE], "union")[4] == [6, 5, 8, 7]
    for sources in ([ONE], [ONE, ONE]):  # are not changed
        assert combine(sources, "union") == combine(sources, "intersection") == ONE


def test_the_intersection_has_what_all_sources_list_by_mean_rank():
    assert combine([ONE, TWO], "intersection") == {4: [5, 6]}
    assert combine([{4: [5, 6, 7]}, {4: [7, 6, 5]}, {4: [7, 5]}], "intersection") == {4: [7, 5]}
    assert combine([ONE, {}], "intersection") == {}


def test_pairs_are_kept_in_order_and_empty_rows_are_dropped():
    words = {4: "main", 5: "chief", 6: "stay", 7: "halt"}
    assert keep_pairs(ONE, words, lambda word, other: True) == ONE
    assert keep_pairs(ONE, words, lambda word, other: (word, other) != ("main", "stay")) == {4: [5, 7], 5: [4]}
    assert keep_pairs(ONE, words, lambda word, other: word == "chief") == {5: [4]}
