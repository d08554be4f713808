"""The table of comparisons: its layout in a terminal, the correction of p values, and its files."""

import csv
import json
from dataclasses import asdict, replace

import pytest
from files import refused

from tn_fairseq.tools.reporting import comparison
from tn_fairseq.tools.reporting.comparison import (
    Comparison,
    comparison_lines,
    corrected,
    decimals,
    draw_comparisons,
    read_report,
    report_files,
    significant,
    write_report,
)

PLAIN = Comparison(name="plain", data="swords", measure="leniency", seeds=3, value=1.2, low=1.0, high=1.5)
HARD = replace(PLAIN, name="hard", updates=12_000, value=1.45, baseline="plain", difference=0.25)
HARD = replace(HARD, difference_low=-0.5, difference_high=0.7, p=0.04)


def cells(lines: list[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]


def test_the_layout_of_values_and_differences():
    rows = corrected(
        [PLAIN, HARD, replace(PLAIN, data="BLiMP", measure="accuracy", part="cries", unit="%", value=90.0)]
    )
    assert cells(comparison_lines(rows)) == [
        ["updates", "seeds", "value", "difference", "p", "Holm"],
        ["swords: leniency"],
        ["plain", "-", "3", "1.20 ± 0.25"],
        ["hard", "12,000", "3", "1.45 ± 0.25", "+0.25 ± 0.60", "0.040", "0.040"],
        [],
        ["BLiMP: accuracy, cries (%)"],
        ["plain", "-", "3", "90.00 ± 0.25"],
        [],
        ["difference", "from the baseline, plain"],
        ["p", "two-sided p value of the difference"],
        ["Holm", "the same after Holm's correction for all differences of the report"],
    ]
    assert cells(comparison_lines([PLAIN])) == [["seeds", "value"], ["swords: leniency"], ["plain", "3", "1.20 ± 0.25"]]


def test_what_is_unknown_is_a_dash_but_what_is_not_compared_is_empty():
    single = replace(HARD, name="single", seeds=1, low=None, high=None, difference_low=None, p=None, seed_sd=None)
    lines = cells(comparison_lines(corrected([replace(PLAIN, seed_sd=0.1), HARD, single])))
    assert lines[2] == ["plain", "-", "3", "1.20 ± 0.25", "0.10"]
    assert lines[4] == ["single", "12,000", "1", "1.45", "-", "+0.25", "-", "-"]


def test_everything_fits_in_120_columns():
    wide = {"updates": 1_000_000, "items": 100_000, "low": -100.0, "high": 100.0, "seed_sd": 57.74, "value": 100.0}
    wide |= {"baseline": "n" * 80, "difference": -100.0, "difference_low": -200.0, "difference_high": 100.0, "p": 1e-9}
    row = Comparison(name="n" * 80, data="d" * 80, measure="m" * 80, part="t" * 80, unit="%", seeds=10, **wide)
    of_seeds = replace(row, updates=None, items=None, median=100.0, best=100.0, seeds_needed=100_000)
    for rows in ([row], [of_seeds]):
        lines = [*comparison_lines(corrected(rows)), *significant(corrected(rows))]
        assert max(map(len, lines)) <= 120 and "<0.001" in lines[2]


def test_which_differences_are_significant():
    """Three tests: 3 * 0.01 and 2 * 0.03; a part of another measure is none of them."""
    rows = [replace(HARD, name=name, p=p) for name, p in zip("abcd", (0.03, 0.01, 0.5, None))]
    found = corrected([*rows, replace(HARD, name="e", p=1e-9, detail=True)])
    assert [row.holm for row in found] == [pytest.approx(0.06), pytest.approx(0.03), 0.5, None, None]
    assert significant(found) == ["After Holm's correction, 1 of 3 differences are significant: b, swords: leniency."]
    assert significant(rows) == [] == significant(corrected([PLAIN]))
    (none,) = significant(corrected([replace(HARD, p=0.06)]))
    assert none == "After Holm's correction, 0 of 1 differences are significant."


def test_decimals_follow_the_size():
    values = (("%", 31.0123), ("%", 0.23456), ("%", 0.0071831), ("bits", 7.9421), ("updates", 328.4), ("", 0.0))
    assert [decimals(*pair) for pair in values] == [2, 3, 5, 3, 0, 3]


def test_a_measure_has_the_decimals_of_its_smallest_value():
    for values, shown in (((0.0, 52.0), ["0.00", "52.00"]), ((0.05, 2.5), ["0.050", "2.500"])):
        rows = [replace(PLAIN, name=f"{value}", unit="%", value=value, low=None) for value in values]
        assert [line[-1] for line in cells(comparison_lines(rows))[2:]] == shown
    rows = [replace(PLAIN, unit="%", value=value, low=None) for value in (0.0021, 0.25)]
    assert [line[-1] for line in cells(comparison_lines(rows))[2:]] == ["0.00210", "0.25000"]


def test_files_agree_and_are_read_again(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(comparison, "draw_comparisons", lambda rows, *paths: drawn.extend(paths))
    rows = corrected([PLAIN, HARD])
    write_report(tmp_path, "lexical", rows, "a table", runs=[1])
    assert {path.name for path in [*tmp_path.iterdir(), *drawn]} == set(report_files("lexical"))
    content = json.loads((tmp_path / "lexical.json").read_text())
    assert content == {"comparisons": [asdict(row) for row in rows], "runs": [1]}
    assert read_report(tmp_path / "lexical.json", "") == rows
    with open(tmp_path / "lexical.csv", newline="") as file:
        read = list(csv.DictReader(file))
    assert [row["difference"] for row in read] == ["", "0.25"] and list(read[0]) == list(asdict(PLAIN))
    assert (tmp_path / "lexical.txt").read_text() == "a table\n"
    write_report(tmp_path / "..", "none", [], "nothing")
    assert not (tmp_path / ".." / "none.csv").exists()


@pytest.mark.parametrize(
    "content", ["{}", '{"comparisons": 1}', '{"comparisons": [{"name": "a"}]}', '{"comparisons": [1]}']
)
def test_files_that_are_no_report(tmp_path, content):
    (tmp_path / "glue.json").write_text(content)
    message = refused(read_report, tmp_path / "glue.json", "run it again")
    assert message == f"{tmp_path / 'glue.json'}: not a report of this version; run it again"


def test_without_matplotlib_the_other_files_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    write_report(tmp_path, "glue", [PLAIN], "a table")
    assert {path.name for path in tmp_path.iterdir()} == {"glue.csv", "glue.json", "glue.txt"}
    assert capsys.readouterr().err.startswith("glue.png and glue.svg are not written: ")
    refused(draw_comparisons, [PLAIN], tmp_path / "plot.png")
