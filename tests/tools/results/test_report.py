"""The table of results and its files, and how comparisons are shown."""

import math
import re

import numpy as np
import pandas as pd
from files import refused

from tn_fairseq.tools.results import plot
from tn_fairseq.tools.results.compare import compare
from tn_fairseq.tools.results.layout import align, shorten
from tn_fairseq.tools.results.measures import GROUPS, MEASURES, measure_of
from tn_fairseq.tools.results.report import (
    COMPARISONS,
    FILES,
    TABLE,
    Section,
    check_output,
    page,
    report_folder,
    sections_of,
    write_report,
)
from tn_fairseq.tools.results.show import decimals, findings, markdown, number, show, significant, wide
from tn_fairseq.tools.results.table import join, read_table, table_of, write_table

VALUES = {  # the differences of "clear" are 3 and 3.1, those of "other" -1 and 2; "single" has one pair
    "plain": {1: 10.0, 2: 20.0},
    "clear": {1: 13.0, 2: 23.1},
    "other": {1: 9.0, 2: 22.0},
    "single": {1: 8.0},
}
ROWS = [
    {"arm": arm, "seed": seed, "measure": measure, "value": value}
    for measure in ("accuracy", "loss")
    for arm, of in VALUES.items()
    for seed, value in of.items()
]
TABLE_OF_ROWS = table_of(ROWS, start="s", data="held-out text")
COMPARED = compare(TABLE_OF_ROWS, "plain")


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


def test_a_table_is_read_as_it_was_written(tmp_path):
    write_table(TABLE_OF_ROWS, tmp_path / "t.parquet", {"plan": "ä"})
    table, about = read_table(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(table, TABLE_OF_ROWS)
    assert about == {"plan": "ä"}
    pd.testing.assert_frame_equal(join(table, TABLE_OF_ROWS.assign(value=0.0)), table)  # the first counts


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1")
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    for one in (path, tmp_path / "other.parquet"):
        assert str(one) in refused(read_table, one)


def test_every_measure_has_a_group_and_a_title():
    assert {measure.group for measure in MEASURES.values()} == {*GROUPS, ""}
    for measure in MEASURES.values():
        assert measure.titled("DATA", "PART") and "{" not in measure.titled("DATA", "PART")
    assert measure_of("loss").titled() == "loss (bits)" and measure_of("mine").titled(part="x") == "mine x"


def test_what_is_printed():
    lines = cells(show(COMPARED[COMPARED["measure"] == "accuracy"], ["A note."]))
    assert lines[:4] == [
        ["n", "value", "sd", "difference", "p", "Holm", "could see"],
        ["accuracy (%)"],
        ["plain", "2", "15.00 ± 63.53", "7.07", "-", "-", "-", "-"],
        ["clear", "2", "18.05 ± 64.17", "7.14", "+3.05 ± 0.64", "0.010", "0.042", "17.33"],
    ]
    text = show(COMPARED, ["A note."])
    assert "A note." in text and "2 of 4 differences are significant" in text
    long = COMPARED.assign(arm=COMPARED["arm"].map(lambda arm: "x" * 200 + arm))
    assert max(map(len, show(long).splitlines())) <= 120


def test_a_wide_table_marks_what_is_clear():
    """More is better for accuracy, and less for the loss."""
    lines = markdown(wide(COMPARED, markdown=True))
    assert lines[0] == "|  | plain | clear | other | single |"
    assert lines[2] == "| accuracy (%) | 15.00 | **+3.05 ± 0.64** | +0.50 ± 19.06 | −2.00 |"
    better, worse = (row[2] for row in wide(COMPARED).rows)
    assert better == '<b class="better">+3.05 ± 0.64</b>' and 'class="worse"' in worse


def test_findings_name_the_measures_with_a_clear_difference():
    compared = compare(TABLE_OF_ROWS, "plain", margins={"accuracy": 4})
    lines = list(findings(compared))
    assert lines[0] == "clear: better on accuracy; worse on loss; no clear difference on 0 of 2 measures."
    assert lines[1] == "other: no clear difference on 2 of 2 measures."
    assert lines[2].startswith("2 of 4 intervals exclude zero.") and "2 of 4 differences" in lines[3]
    assert "larger than 4 is excluded for clear; tested: clear, other (" in lines[4]
    assert significant(compare(TABLE_OF_ROWS, None)) == "" and list(findings(compare(TABLE_OF_ROWS, None))) == []


def test_numbers():
    values = (("%", 31.0123), ("%", 0.23456), ("%", 0.0071831), ("bits", 7.9421), ("updates", 328.4), ("", 0.0))
    assert [decimals(*pair) for pair in values] == [2, 3, 5, 3, 0, 3]
    row = {"measure": "loss", "value": 4.7, "difference": -0.00008, "difference_low": -0.00015}
    ends = ("difference", "difference_low", "difference_high", True)
    assert number(row | {"difference_high": -0.00001}, *ends) == "−0.0001 ± 0.0001"  # clear, so not shown as zero
    assert number(row | {"difference_high": 0.00001}, *ends) == "+0.000 ± 0.000"
    assert number(row | {"value": math.nan, "difference_high": 0.0}, "value") == ""


def test_columns_are_aligned_and_cut():
    assert align(["a long heading", ["a", "10"], "", ["bb", "2"]]) == ["a long heading", "a   10", "", "bb   2"]
    assert align([["a/long/path.pt", "12"], ["short.pt", "3"]], width=12) == ["…path.pt  12", "short.pt   3"]
    assert [shorten("abcdef", width) for width in (6, 5, 2)] == ["abcdef", "…cdef", "…f"]


def test_a_report_has_three_files_and_its_page_needs_no_network(tmp_path):
    arms = COMPARED.assign(arm=COMPARED["arm"].replace("other", "<b>"))
    curve = plot.lines({"plain": ([1, 2], [3, 4])}, ["plain"], "accuracy (%)")
    html = page("<Title>", ["A lead."], [Section(plots={"a caption": curve}, bullets=["<i>"]), *sections_of(arms)])
    with report_folder(tmp_path, FILES, "a") as folder:
        write_report(folder, "a", TABLE_OF_ROWS, COMPARED, html, {"date": "today"})
    assert {path.name for path in tmp_path.iterdir()} == {*FILES}
    read = pd.read_csv(tmp_path / COMPARISONS)
    assert np.allclose(read["difference"], COMPARED["difference"], equal_nan=True, atol=1e-6)
    assert read_table(tmp_path / TABLE)[1] == {"report": "a", "date": "today"}
    assert "has the report of a" in refused(check_output, tmp_path, "b")
    assert "&lt;Title&gt;" in html and "&lt;i&gt;" in html and "<td>&lt;b&gt;</td>" in html
    assert not re.search(r'(src|href)="(?!#)', html) and "<script" not in html and "default-src 'none'" in html
    assert html.count("<table>") == html.count('<div class="wide">') == 2  # a wide table scrolls by itself
    assert html.count("<figure>") == 1


def test_a_figure_gives_the_same_bytes_each_time(tmp_path):
    drawn = [plot.lines({"a": ([1, 2, 3], [1.0, 2.0, 1.5])}, ["a"], "loss", zero=True, points=True) for _ in range(2)]
    assert drawn[0] == drawn[1] and "$" not in drawn[0] and "loss" in drawn[0]
    with plot.drawing((2, 2)) as figure:
        figure.subplots().plot([1, 2])
        for name in ("a.png", "a.svg"):
            plot.save(figure, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG" and "<svg" in (tmp_path / "a.svg").read_text()
