"""The plot: the contents of its SVG, the same bytes in every run, and one line without matplotlib."""

import logging
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter

import pytest

from tn_fairseq.tools.analysis.rate_plots import PANELS, TEACHER_PANELS, draw_training
from tn_fairseq.tools.analysis.rates import Counts, rate_row
from tn_fairseq.tools.reporting.plot import COLORS, INK
from tn_fairseq.tools.reporting.report_folder import draw_if_possible

TABLES = {"wordnet": 1, "glove $x$ & <b>": 3}


def made(checkpoints: dict[str, int | None], tables: dict[str, int] = TABLES, seeds: int = 2, has_teacher=False):
    """Rows of counts that differ between seeds; ``tables`` gives how often each table fires."""
    return [
        rate_row(
            checkpoint,
            updates,
            table,
            [
                Counts(100, times, 1000 + 10 * seed, 200 + 30 * number, times, teacher_likely=99)
                for seed in range(seeds)
            ],
            has_teacher=has_teacher,
        )
        for number, (checkpoint, updates) in enumerate(checkpoints.items())
        for table, times in tables.items()
    ]


RUN = {f"run/checkpoint_1_{n}.pt": n for n in (1000, 2000, 30000)}


@pytest.fixture
def matplotlib():
    return pytest.importorskip("matplotlib")


@pytest.fixture
def draw(matplotlib, tmp_path):
    """Draw an SVG; return the number of times each text occurs in it, and the file's content."""

    def draw(drawn):
        path = tmp_path / "plot.svg"
        draw_training(drawn, path)
        root = ElementTree.parse(path).getroot()
        texts = Counter(
            "".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")
        )
        return texts, path.read_text(encoding="utf-8")

    return draw


def test_names_and_panels_are_text(draw):
    texts, svg = draw(made(RUN))
    assert set(TABLES) | set(PANELS.values()) <= set(texts)
    assert texts["30k"] == texts["updates"] == 2  # the two panels at the bottom share the axis of those above
    # a single run has no legend and one style
    assert "run" not in texts and "stroke-dasharray" not in svg


def test_both_formats_are_sharp_and_reproducible(matplotlib, tmp_path):
    first, second = ([tmp_path / f"{name}.{suffix}" for suffix in ("png", "svg")] for name in "ab")
    draw_training(made(RUN), *first)
    draw_training(made(RUN), *second)
    for one, other in zip(first, second):
        assert one.read_bytes() == other.read_bytes()
    png, svg = (path.read_bytes() for path in first)
    assert png.startswith(b"\x89PNG") and int.from_bytes(png[16:20], "big") >= 9 * 150
    assert b"tIME" not in png and b"<dc:date>" not in svg
    draw_training(made(RUN, seeds=1), second[1])
    assert svg != second[1].read_bytes()


def test_settings_of_the_users_plots_have_no_effect_and_do_not_change(matplotlib, tmp_path):
    draw_training(made(RUN), tmp_path / "a.svg")
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        draw_training(made(RUN), tmp_path / "b.svg")
        assert dict(matplotlib.rcParams) == before
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_accuracy_is_drawn_once(draw):
    _, one = draw(made(RUN, {"wordnet": 1}))
    _, two = draw(made(RUN))
    # a band for each table in three panels, and one for accuracy
    assert one.count('id="FillBetween') == 4 and two.count('id="FillBetween') == 7
    bands = [part.split("</g>")[0] for part in two.split('id="FillBetween')[1:]]
    assert [sum(color.lower() in band for band in bands) for color in (*COLORS[:2], INK)] == [3, 3, 1]


def test_a_teacher_has_a_row_of_panels_with_one_line_each(draw):
    _, without = draw(made(RUN))
    texts, svg = draw(made(RUN, has_teacher=True))
    assert set(PANELS.values()) | set(TEACHER_PANELS.values()) <= set(texts)
    assert svg.count('id="FillBetween') == without.count('id="FillBetween') + 2
    assert "teacher" not in without


def test_each_run_has_its_own_dash_style(draw):
    texts, svg = draw(made({**RUN, **{f"other/run/checkpoint_1_{n}.pt": n for n in (1000, 2000)}}))
    assert texts["run"] == texts["other/run"] == 1
    assert "stroke-dasharray" in svg


def test_checkpoints_without_updates_are_left_out(draw):
    _, without = draw(made(RUN))
    _, svg = draw(made({**RUN, "imported/bert.pt": None}))
    assert svg == without


@pytest.mark.parametrize("updates", [None, 0, 5000])
def test_checkpoints_with_equal_updates_are_drawn_side_by_side(draw, updates):
    checkpoints = ["a/checkpoint_last.pt", "somewhere/else/checkpoint_last.pt"]
    texts, svg = draw(made(dict.fromkeys(checkpoints, updates)))
    assert "updates" not in texts
    assert texts["checkpoint"] == 2 and min(texts["1"], texts["2"]) >= 2
    for number, checkpoint in enumerate(checkpoints, start=1):
        assert any(f"{number}  {checkpoint}" in text for text in texts)
    assert "FillBetween" not in svg


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("tables", [TABLES, {"nothing": 0, "empty": 0}, {f"table {n}": n for n in range(1, 13)}])
def test_every_table_has_its_name_in_the_legend(draw, tables, seeds):
    texts, _ = draw(made({"run/checkpoint_last.pt": 100} if seeds == 1 else RUN, tables, seeds))
    assert [texts[name] for name in tables] == [1] * len(tables)


def test_a_table_that_fires_rarely_stays_visible_next_to_another(draw):
    common, rare = {"common": 900}, {"rare": 2}
    texts, _ = draw(made(RUN, common))
    assert "0.1" not in texts
    texts, _ = draw(made(RUN, common | rare))
    # decades among mismatches (0.2% to 120%), in sequences (2% to 900%), and zero in every panel
    assert {"0.1", "1", "10", "100", "0"} <= set(texts)


def test_no_debug_messages_if_fairseq_enables_them(matplotlib, tmp_path, caplog):
    logging.getLogger("matplotlib").setLevel(logging.NOTSET)
    with caplog.at_level(logging.DEBUG):
        draw_training(made(RUN), tmp_path / "plot.png")
        logging.getLogger("matplotlib.font_manager").info("one of many")
    assert not caplog.records


def test_without_matplotlib_there_is_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    draw_if_possible(draw_training, made(RUN), [tmp_path / "plot.png", tmp_path / "plot.svg"])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("plot.png and plot.svg are not written: ") and "pip install 'tn_fairseq[plot]'" in line
    assert not list(tmp_path.iterdir())
