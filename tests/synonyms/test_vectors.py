import math

import numpy as np
import pytest

from tn_fairseq.errors import InputError
from tn_fairseq.synonyms.vectors import at_least, nearest_neighbors, read_vectors

WORDS = ["main", "chief", "basal", "far"]
LINES = ["main 1 0", "other 3 4", "chief 2 0.2", "basal 1 1", "far -1 0"]


@pytest.fixture
def file_of(tmp_path):
    def write(lines, ending="\n"):
        path = tmp_path / "vectors.txt"
        path.write_bytes(b"".join(line if isinstance(line, bytes) else f"{line}{ending}".encode() for line in lines))
        return path

    return write


def neighbors_of(path, words=WORDS, top_k=10, min_similarity=None):
    return dict(nearest_neighbors(read_vectors(path, words), top_k, min_similarity))


def test_neighbors_are_ranked_by_cosine_and_never_the_word_itself(file_of):
    neighbors = neighbors_of(file_of(LINES))
    assert neighbors["main"] == ["chief", "basal", "far"]
    assert neighbors["far"] == ["basal", "chief", "main"]
    assert list(neighbors) == WORDS


def test_only_the_top_k_are_kept(file_of):
    assert neighbors_of(file_of(LINES), top_k=1)["main"] == ["chief"]


def test_the_minimum_is_a_cosine(file_of):
    path = file_of(LINES)
    at_45_degrees = math.cos(math.pi / 4)
    assert neighbors_of(path, min_similarity=at_45_degrees - 1e-4)["main"] == ["chief", "basal"]
    assert neighbors_of(path, min_similarity=at_45_degrees + 1e-4)["main"] == ["chief"]


def test_blocks_do_not_change_the_result(file_of, monkeypatch):
    path = file_of(LINES)
    expected = neighbors_of(path)
    monkeypatch.setattr("tn_fairseq.synonyms.vectors._ROWS_AT_A_TIME", 3)
    assert neighbors_of(path) == expected


def test_the_header_line_of_word2vec_is_optional(file_of):
    assert neighbors_of(file_of([f"{len(LINES)} 2", *LINES])) == neighbors_of(file_of(LINES))


def test_trailing_spaces_and_windows_line_endings_do_not_matter(file_of):
    assert neighbors_of(file_of(LINES, ending=" \r\n")) == neighbors_of(file_of(LINES))


def test_words_of_glove_may_contain_spaces(file_of):
    assert neighbors_of(file_of([*LINES, ". . . 1 0", "at name@domain.com 1 1"])) == neighbors_of(file_of(LINES))


def test_the_first_vector_of_a_duplicate_counts(file_of):
    assert neighbors_of(file_of([*LINES, "main 0 1"])) == neighbors_of(file_of(LINES))


def test_words_that_are_not_utf8_are_counted_and_skipped(file_of):
    vectors = read_vectors(file_of([*LINES, b"\x96 1 0\n"]), WORDS)
    assert vectors.not_utf8 == 1 and vectors.words == WORDS


def test_neighbors_share_the_casing_of_the_word(file_of):
    words = [*WORDS, "Main", "Basal", "Far", "CHIEF"]
    neighbors = neighbors_of(file_of([*LINES, "Far 1 0.9"]), words)
    assert neighbors["main"] == ["chief", "basal", "far"]
    assert neighbors["Main"] == ["Far", "Basal"]  # Far has its own vector, Basal that of basal
    assert neighbors["CHIEF"] == []


def test_the_version_names_file_size_and_content(file_of):
    path = file_of(LINES)
    version = read_vectors(path, WORDS).version
    assert version.startswith("vectors.txt, 5 vectors of dimension 2, sha256 ")
    assert read_vectors(file_of([*LINES[:-1], "far -1 1"]), WORDS).version != version


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([*LINES, "short 1"], "line 6: 1 numbers, not 2"),
        ([*LINES, "long 1 2 3"], "line 6: 3 numbers, not 2"),
        ([*LINES[:2], "", *LINES[2:]], "line 3: 0 numbers, not 2"),
        (["5 3", *LINES], "line 2: 2 numbers, not 3"),
        (["6 2", *LINES], "promises 6 vectors, but it has 5"),
        (["main 1 x"], "line 1: not a word followed by numbers"),
        (["main"], "line 1: not a word followed by numbers"),
        ([b"\x1f\x8b\x08 \x00\xff\n"], "line 1: not a word followed by numbers"),
        ([*LINES[1:], "main 1 x"], "line 5: could not convert"),
        ([*LINES[1:], "main 1 nan"], "line 5: contains a number that is not finite"),
        ([*LINES[1:], "main inf 1"], "line 5: contains a number that is not finite"),
        ([*LINES[1:], "main 0 0.0"], "line 5: all numbers are zero"),
        ([], "contains no vectors"),
        (["5 2"], "contains no vectors"),
        (["other 3 4"], "none of the dictionary's whole words"),
    ],
)
def test_an_invalid_file_is_reported_with_the_line(file_of, lines, reason):
    path = file_of(lines)
    with pytest.raises(InputError, match=reason) as raised:
        read_vectors(path, WORDS)
    assert str(raised.value).startswith(str(path)) and "\n" not in str(raised.value)


def test_the_error_for_a_missing_file_names_the_flag(tmp_path):
    with pytest.raises(InputError, match="--vectors"):
        read_vectors(tmp_path / "missing.txt", WORDS)


def test_a_similarity_equal_to_the_minimum_is_enough(file_of):
    path = file_of(["main 1 0", "chief 0 2", "basal -3 0"])  # similarities of exactly 0 and -1
    above = neighbors_of(path, min_similarity=0.0)
    assert above == {"main": ["chief"], "chief": ["main", "basal"], "basal": ["chief"]}
    assert neighbors_of(path, min_similarity=-1.0)["main"] == ["chief", "basal"]


def test_a_capitalized_word_gets_the_vector_of_its_lowercase_form(file_of):
    path = file_of(["main 1 0", "chief 0 2", "CHIEF 3 4"])
    vectors = read_vectors(path, ["Main", "Chief", "CHIEF", "Basal"])
    assert vectors.words == ["Main", "Chief", "CHIEF"]
    assert vectors.matrix == pytest.approx(np.array([[1, 0], [0, 1], [0.6, 0.8]]))


def test_pairs_above_a_floor_are_the_neighbors_above_it(file_of):
    path = file_of(["main 1 0", "chief 3 4", "basal 0 2"])  # 0.6 and 0.8 from chief
    vectors = read_vectors(path, WORDS)
    for floor in (-2, 0.0, 0.5, 0.7, 0.9):
        keep = at_least(vectors, floor)
        kept = {word: {other for other in vectors.words if keep(word, other)} - {word} for word in vectors.words}
        assert kept == {word: set(found) for word, found in nearest_neighbors(vectors, 10, floor)}


def test_a_pair_without_a_vector_is_not_above_any_floor(file_of):
    keep = at_least(read_vectors(file_of(LINES), WORDS), -2)
    assert keep("main", "far") and not keep("main", "stay") and not keep("stay", "main")
