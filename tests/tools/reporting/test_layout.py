"""Tables: aligned columns, unchanged headings, a limit on the line length, and numbers."""

import random

from tn_fairseq.tools.reporting.layout import align, cell, shorten


def test_columns_are_aligned():
    rng = random.Random(1)
    rows = [["x" * rng.randint(0, 9) for _ in range(4)] for _ in range(20)]
    lines = align(rows, left=(0, 2))
    position = 0
    for column in range(4):
        width = max(len(row[column]) for row in rows)
        for row, line in zip(rows, lines):
            place = line[position : position + width].ljust(width)
            assert place == (row[column].ljust(width) if column in (0, 2) else row[column].rjust(width))
        position += width + 2
    assert all(line == line.rstrip() for line in lines)


def test_strings_are_unchanged_and_do_not_widen_columns():
    lines = ["a heading that is long ", ["a", "10"], "", ["bb", "2"]]
    assert align(lines) == ["a heading that is long ", "a   10", "", "bb   2"]


def test_the_first_column_is_cut_to_fit_the_width():
    rows = [["a/long/path.pt", "12"], ["short.pt", "3"]]
    assert align(rows, width=100) == align(rows)
    assert align(rows, width=12) == ["…path.pt  12", "short.pt   3"]


def test_shortened_paths_keep_their_end():
    assert [shorten("abcdef", width) for width in (7, 6, 5, 2)] == ["abcdef", "abcdef", "…cdef", "…f"]


def test_numbers_with_half_the_width_of_their_interval():
    assert [cell(None, ".2f"), cell(0, ".2f"), cell(1.5, "+.1f")] == ["-", "0.00", "+1.5"]
    assert [cell(1.5, form, 0.0, 2.5) for form in (".2f", "+.1f")] == ["1.50 ± 1.25", "+1.5 ± 1.2"]
