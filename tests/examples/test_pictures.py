"""The command that makes the pictures of the pages, on a small page of cases."""

import re

import pytest
from files import refused
from helpers import BROWSER, load_script, write_programs

from tn_fairseq.tools.look.case_page import Case, Synonym, case_page
from tn_fairseq.tools.results.table import table_of, write_table

pytest.importorskip("matplotlib")
from PIL import Image, ImageChops  # noqa: E402  comes with matplotlib

pictures = load_script("examples/pictures.py")
PAPER, GOLD, SYNONYM = (0xF6, 0xF4, 0xEE), (0xFB, 0xE5, 0xB0), (0xDF, 0xE2, 0xFF)
MARGIN = 32


def case(gold: str, words: int = 1, corrected: bool = True) -> Case:
    context = [("an adaptive immune system whose " * words, 0), (f" {gold}", 2), (" function is", 0)]
    synonyms = [Synonym("main", 0.4), Synonym("chief", 0.1)]
    prediction = "main" if corrected else "old"
    return Case("wordnet", context, gold, 0.25, prediction, 0.4, "adjective", "same form", synonyms, corrected)


@pytest.fixture
def analysis(tmp_path):
    """A folder as the analysis writes it: a page of four cases, one of them a near miss, and rates."""
    folder = tmp_path / "false negatives"
    folder.mkdir()
    cases = [case("primary"), case("first"), case("principal"), case("capital", corrected=False)]
    (folder / "cases.html").write_text(case_page("checkpoint.pt", 2500, "valid", cases), encoding="utf-8")
    rows = [
        {"arm": f"run/{updates}.pt", "checkpoint": str(updates), "measure": measure, "value": updates / 100}
        for updates in (100, 200)
        for measure in ("accuracy", "prediction_rate")
    ]
    write_table(table_of(rows), folder / "results.parquet")
    return folder


def run(analysis, *flags) -> None:
    pictures.main([str(analysis), "--output", str(analysis.parent / "pictures"), *flags])


def error(analysis, *flags) -> str:
    return refused(run, analysis, *flags)


def opened(analysis, name="cases.png"):
    """The picture and its file's size; checks that it has equal margins with nothing but background."""
    path = analysis.parent / "pictures" / name
    picture = Image.open(path).convert("RGB")
    background = Image.new("RGB", picture.size, picture.getpixel((0, 0)))
    width, height = picture.size
    assert ImageChops.difference(picture, background).getbbox() == (MARGIN, MARGIN, width - MARGIN, height - MARGIN)
    assert path.stat().st_size < 300_000
    return picture


def near(color, other) -> bool:
    return all(abs(one - two) < 8 for one, two in zip(color, other))


@pytest.mark.skipif(BROWSER is None, reason="no chromium")
def test_the_pictures_show_the_first_cases_and_have_narrow_margins(analysis, capsys):
    run(analysis)
    two = opened(analysis)
    assert 1560 <= two.width <= 1620 and 1200 < two.height < 2400
    assert near(two.getpixel((0, 0)), PAPER)
    colors = [color for _, color in two.getcolors(256)]
    assert all(any(near(color, one) for color in colors) for one in (GOLD, SYNONYM))
    assert opened(analysis, "training.png").width > 1000
    assert f"cases.png: {two.width} x {two.height}, " in capsys.readouterr().out

    run(analysis, "--view", "show=near")  # the only near miss
    one = opened(analysis)
    assert one.width == two.width and two.height / 2 < one.height < two.height - 300

    # longer than the picture
    page = case_page("checkpoint.pt", 2500, "valid", [case("primary", words=2000)])
    (analysis / "cases.html").write_text(page, encoding="utf-8")
    assert "cases.html: too long for a picture" in error(analysis)


@pytest.mark.parametrize("name", ["cases.html", "results.parquet"])
def test_foreign_and_missing_files_get_one_line(analysis, name):
    (analysis / name).write_text("<html><head></head></html>")
    assert f"{name}: not a " in error(analysis)
    (analysis / name).unlink()
    assert f"{name}: " in error(analysis)


def test_the_rates_of_one_checkpoint_are_no_curve(analysis):
    assert pictures.training(analysis / "results.parquet").width > 1000
    write_table(table_of([{"arm": "a.pt", "checkpoint": "9", "measure": "accuracy"}]), analysis / "results.parquet")
    assert pictures.training(analysis / "results.parquet") is None


@pytest.mark.parametrize(
    ("script", "said"),
    [("", "no browser found; install Chromium"), ("exit 3", "made no picture of .*cases.html: exit code 3")],
)
def test_a_browser_that_is_missing_or_fails_gets_one_line(analysis, script, said, monkeypatch):
    folder = write_programs(analysis.parent / "bin", **({"chromium": script} if script else {}))
    monkeypatch.setenv("PATH", str(folder))
    assert re.search(said, error(analysis))


def test_pictures_that_are_too_large_or_cannot_be_written_get_one_line(analysis, monkeypatch):
    assert "--cases 0: give 1 or more" in error(analysis, "--cases", "0")
    monkeypatch.setattr(pictures, "photograph", lambda *_: Image.effect_noise((1000, 1000), 100).convert("RGB"))
    assert "cases.png: larger than 300 KB" in error(analysis)
    monkeypatch.setattr(pictures, "photograph", lambda *_: pictures.training(analysis / "results.parquet"))
    (analysis.parent / "pictures").write_text("a file")
    assert "cases.png: cannot be written" in error(analysis)
