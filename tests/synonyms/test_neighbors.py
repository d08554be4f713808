import math

import numpy as np
import pytest

from tn_fairseq.synonyms.neighbors import Vectors, at_least, nearest_neighbors


def vectors_of(**rows):
    matrix = np.array(list(rows.values()), dtype=np.float32)
    return Vectors(list(rows), matrix / np.linalg.norm(matrix, axis=1, keepdims=True), "")


VECTORS = vectors_of(main=(1, 0), chief=(2, 0.2), basal=(1, 1), far=(-1, 0))


def test_neighbors_are_ranked_by_cosine_and_never_the_word_itself():
    neighbors = dict(nearest_neighbors(VECTORS, top_k=10))
    assert list(neighbors) == VECTORS.words
    assert neighbors["main"] == ["chief", "basal", "far"] and neighbors["far"] == ["basal", "chief", "main"]


@pytest.mark.parametrize(
    ("top_k", "floor", "expected"),
    [
        (1, None, ["chief"]),
        (10, math.cos(math.pi / 4) - 1e-4, ["chief", "basal"]),  # basal is at 45 degrees
        (10, math.cos(math.pi / 4) + 1e-4, ["chief"]),
        (10, -1.0, ["chief", "basal", "far"]),  # far is at exactly -1
    ],
)
def test_only_the_top_k_at_or_above_the_minimum_are_kept(top_k, floor, expected):
    assert dict(nearest_neighbors(VECTORS, top_k, floor))["main"] == expected


def test_blocks_do_not_change_the_result(monkeypatch):
    expected = dict(nearest_neighbors(VECTORS, 10))
    monkeypatch.setattr("tn_fairseq.synonyms.neighbors._ROWS_AT_A_TIME", 3)
    assert dict(nearest_neighbors(VECTORS, 10)) == expected


def test_neighbors_share_the_casing_of_the_word():
    vectors = vectors_of(main=(1, 0), Main=(1, 0), basal=(1, 1), Basal=(1, 1), Far=(1, 0.9), CHIEF=(1, 0))
    neighbors = dict(nearest_neighbors(vectors, 10))
    assert (neighbors["main"], neighbors["Main"], neighbors["CHIEF"]) == (["basal"], ["Far", "Basal"], [])


@pytest.mark.parametrize("floor", [-2, 0.0, 0.5, 0.7, 0.9])
def test_pairs_at_or_above_a_floor_are_the_neighbors_there(floor):
    vectors = vectors_of(main=(1, 0), chief=(3, 4), basal=(0, 2))  # cosines of exactly 0, and of 0.6 and 0.8
    keep = at_least(vectors, floor)
    assert not keep("main", "stay") and not keep("stay", "main")  # without a vector
    kept = {word: {other for other in vectors.words if keep(word, other)} - {word} for word in vectors.words}
    assert kept == {word: set(found) for word, found in nearest_neighbors(vectors, 10, floor)}
