"""The paper's numbers: complete, and consistent with each other up to rounding."""

from statistics import fmean

import pytest

from tn_fairseq.reporting.paper import AVERAGE, GLUE_ROWS, GLUE_TASKS, SQUAD_ROWS, TABLE_5


def test_all_rows_are_present():
    assert len(GLUE_ROWS) == 12 + 2
    assert len(SQUAD_ROWS) == 6
    assert set(SQUAD_ROWS) < set(GLUE_ROWS)


@pytest.mark.parametrize("name", GLUE_ROWS)
def test_averages_match_the_tasks(name):
    row = GLUE_ROWS[name]
    assert tuple(row) == (*GLUE_TASKS, AVERAGE)
    # the numbers of the tasks and the average are rounded by up to 0.05
    assert abs(fmean(row[task] for task in GLUE_TASKS) - row[AVERAGE]) <= 0.1


def test_numbers_are_as_printed():
    assert GLUE_ROWS["ELECTRA-small"]["CoLA"] == 56.8
    assert GLUE_ROWS["ELECTRA-small HC"]["CoLA"] == 62.0
    assert GLUE_ROWS["ELECTRA-small HC, embedding"]["RTE"] == 67.1
    assert GLUE_ROWS["ELECTRA-small SR, sentence"]["QNLI"] == 90.0
    assert GLUE_ROWS["BERT-large SR"]["STS-B"] == 90.1
    assert GLUE_ROWS["ELECTRA-base SR"]["RTE"] == 84.8
    assert SQUAD_ROWS["ELECTRA-small HC"] == {"EM": 77.7, "F1": 85.6}


# the gains that the text of the paper names
@pytest.mark.parametrize(
    ("rows", "name", "metric", "gain"),
    [
        (GLUE_ROWS, "ELECTRA-small HC", AVERAGE, 1.0),
        (GLUE_ROWS, "ELECTRA-small SR", AVERAGE, 1.5),
        (GLUE_ROWS, "ELECTRA-small HC, embedding", AVERAGE, 0.2),
        (GLUE_ROWS, "ELECTRA-small SR, sentence", AVERAGE, 1.2),
        (SQUAD_ROWS, "ELECTRA-small HC", "EM", 1.9),
        (SQUAD_ROWS, "ELECTRA-small HC", "F1", 1.7),
        (SQUAD_ROWS, "ELECTRA-small SR", "EM", 0.2),
        (SQUAD_ROWS, "ELECTRA-small SR", "F1", 0.3),
        (SQUAD_ROWS, "ELECTRA-base HC", "EM", 0.6),
        (SQUAD_ROWS, "ELECTRA-base HC", "F1", 0.5),
        (SQUAD_ROWS, "ELECTRA-base SR", "EM", 0.5),
        (SQUAD_ROWS, "ELECTRA-base SR", "F1", 0.4),
    ],
)
def test_gains_over_the_baseline_match_the_paper(rows, name, metric, gain):
    baseline = " ".join(name.split()[:1])
    assert rows[name][metric] - rows[baseline][metric] == pytest.approx(gain)


def test_robustness_is_as_printed():
    """Drops match the scores, and the exact matches are shares of the questions."""
    assert [(row.attack, row.questions, row.model) for row in TABLE_5] == [
        (attack, questions, model)
        for attack, questions in (("AddSentenceDiverse", 293), ("SwapSynWordNet", 300))
        for model in ("ELECTRA-small", "ELECTRA-small HC", "ELECTRA-small SR")
    ]
    for row in TABLE_5:
        assert row.em_drop == pytest.approx(row.em_original - row.em_attacked, abs=1e-6)
        assert row.f1_drop == pytest.approx(row.f1_original - row.f1_attacked, abs=1e-6)
        for share in (row.em_original, row.em_attacked):
            right = round(share * row.questions / 100)
            assert share == pytest.approx(100 * right / row.questions, abs=0.0051)
    assert TABLE_5[1][3:] == (82.59, 34.13, 48.46, 86.78, 36.60, 50.18)
    assert TABLE_5[5].f1_drop == min(row.f1_drop for row in TABLE_5) == 2.37
