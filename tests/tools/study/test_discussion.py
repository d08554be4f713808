"""The author's conclusions in a report."""

import pytest

from tn_fairseq.core.errors import InputError
from tn_fairseq.tools.study.discussion import read_discussion


@pytest.mark.parametrize(
    ("text", "opening", "rest"),
    [
        ("", [], []),
        ("one\nline\n\n\ntwo\n  \nthree\n", ["one\nline"], ["two", "three"]),
        ("one\n\ntwo\n# A title\nthree\n\n# Another\n", ["one", "two"], ["# A title", "three", "# Another"]),
        ("# A title\n\n#3 is no title", [], ["# A title", "#3 is no title"]),
    ],
)
def test_what_is_above_the_first_title_is_for_the_top(tmp_path, text, opening, rest):
    (tmp_path / "discussion.txt").write_text(text)
    assert read_discussion(tmp_path / "discussion.txt") == (opening, rest)


def test_without_a_file_there_is_none(tmp_path):
    assert read_discussion(tmp_path / "discussion.txt") == ([], [])


def test_another_encoding_is_refused(tmp_path):
    (tmp_path / "discussion.txt").write_bytes("one\n\nD\u00e9j\u00e0 vu\n".encode("latin-1"))
    with pytest.raises(InputError, match="discussion.txt, line 3: not UTF-8 .*; convert it to UTF-8, or delete it"):
        read_discussion(tmp_path / "discussion.txt")
