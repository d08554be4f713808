import math

import pytest

from tn_fairseq.errors import InputError
from tn_fairseq.synonyms.vectors import nearest_neighbours, read_vectors

WORDS = ["main", "chief", "basal", "far"]
LINES = ["main 1 0", "other 3 4", "chief 2 0.2", "basal 1 1", "far -1 0"]


@pytest.fixture
def file_of(tmp_path):
    def write(lines, ending="\n"):
        path = tmp_path / "vectors.txt"
        path.write_bytes(b"".join(line if isinstance(line, bytes) else f"{line}{ending}".encode() for line in lines))
        return path

    return write


def neighbours_of(path, words=WORDS, top_k=10, min_similarity=None):
    return dict(nearest_neighbours(read_vectors(path, words), top_k, min_similarity))


def test_neighbours_are_ranked_by_cosine_and_never_the_word_itself(file_of):
    neighbours = neighbours_of(file_of(LINES))
    assert neighbours["main"] == ["chief", "basal", "far"]
    assert neighbours["far"] == ["basal", "chief", "main"]
    assert list(neighbours) == WORDS


def test_only_the_top_k_are_kept(file_of):
    assert neighbours_of(file_of(LINES), top_k=1)["main"] == ["chief"]


def test_the_floor_is_on_the_cosine(file_of):
    path = file_of(LINES)
    at_45_degrees = math.cos(math.pi / 4)
    assert neighbours_of(path, min_similarity=at_45_degrees - 1e-4)["main"] == ["chief", "basal"]
    assert neighbours_of(path, min_similarity=at_45_degrees + 1e-4)["main"] == ["chief"]


def test_blocks_do_not_change_the_result(file_of, monkeypatch):
    path = file_of(LINES)
    whole = neighbours_of(path)
    monkeypatch.setattr("tn_fairseq.synonyms.vectors._ROWS_AT_A_TIME", 3)
    assert neighbours_of(path) == whole


def test_the_header_line_of_word2vec_is_optional(file_of):
    assert neighbours_of(file_of([f"{len(LINES)} 2", *LINES])) == neighbours_of(file_of(LINES))


def test_trailing_blanks_and_windows_line_ends_do_not_matter(file_of):
    assert neighbours_of(file_of(LINES, ending=" \r\n")) == neighbours_of(file_of(LINES))


def test_words_of_glove_may_hold_spaces(file_of):
    assert neighbours_of(file_of([*LINES, ". . . 1 0", "at name@domain.com 1 1"])) == neighbours_of(file_of(LINES))


def test_of_a_duplicate_the_first_vector_counts(file_of):
    assert neighbours_of(file_of([*LINES, "main 0 1"])) == neighbours_of(file_of(LINES))


def test_words_that_are_not_utf8_are_counted_and_passed_over(file_of):
    vectors = read_vectors(file_of([*LINES, b"\x96 1 0\n"]), WORDS)
    assert vectors.not_utf8 == 1 and vectors.words == WORDS


def test_neighbours_share_the_casing_of_the_word(file_of):
    words = [*WORDS, "Main", "Basal", "Far", "CHIEF"]
    neighbours = neighbours_of(file_of([*LINES, "Far 1 0.9"]), words)
    assert neighbours["main"] == ["chief", "basal", "far"]
    assert neighbours["Main"] == ["Far", "Basal"]  # Far has a vector of its own, Basal that of basal
    assert neighbours["CHIEF"] == []


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
        (["6 2", *LINES], "promises 6 vectors, it holds 5"),
        (["main 1 x"], "line 1: not a word and its numbers"),
        (["main"], "line 1: not a word and its numbers"),
        ([b"\x1f\x8b\x08 \x00\xff\n"], "line 1: not a word and its numbers"),
        ([*LINES[1:], "main 1 x"], "line 5: could not convert"),
        ([*LINES[1:], "main 1 nan"], "line 5: holds a number that is not finite"),
        ([*LINES[1:], "main inf 1"], "line 5: holds a number that is not finite"),
        ([*LINES[1:], "main 0 0.0"], "line 5: all numbers are zero"),
        ([], "holds no vectors"),
        (["5 2"], "holds no vectors"),
        (["other 3 4"], "none of the dictionary's whole words"),
    ],
)
def test_a_bad_file_is_one_line_with_file_and_line(file_of, lines, reason):
    path = file_of(lines)
    with pytest.raises(InputError, match=reason) as raised:
        read_vectors(path, WORDS)
    assert str(raised.value).startswith(str(path)) and "\n" not in str(raised.value)


def test_a_missing_file_names_the_flag(tmp_path):
    with pytest.raises(InputError, match="--vectors"):
        read_vectors(tmp_path / "missing.txt", WORDS)
