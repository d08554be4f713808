"""The rows of a report that a study reads."""

import json
from dataclasses import asdict

import pytest
from files import refused

from tn_fairseq.tools.reporting.comparison import Comparison, decimals, read_report


def test_decimals_follow_the_size():
    values = (("%", 31.0123), ("%", 0.23456), ("%", 0.0071831), ("bits", 7.9421), ("updates", 328.4), ("", 0.0))
    assert [decimals(*pair) for pair in values] == [2, 3, 5, 3, 0, 3]


def test_rows_are_read(tmp_path):
    row = Comparison(name="plain", data="swords", measure="leniency", seeds=3, value=1.2, low=1.0, high=1.5)
    (tmp_path / "lexical.json").write_text(json.dumps({"comparisons": [asdict(row)], "runs": [1]}))
    assert read_report(tmp_path / "lexical.json", "") == [row]


@pytest.mark.parametrize(
    "content", ["{}", '{"comparisons": 1}', '{"comparisons": [{"name": "a"}]}', '{"comparisons": [1]}']
)
def test_files_that_are_no_report(tmp_path, content):
    (tmp_path / "glue.json").write_text(content)
    message = refused(read_report, tmp_path / "glue.json", "run it again")
    assert message == f"{tmp_path / 'glue.json'}: not a report of this version; run it again"
