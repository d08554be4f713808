"""The paper's numbers: complete, and consistent with each other up to rounding."""

from statistics import fmean

import pytest

from tn_fairseq.tools.reporting.paper import AVERAGE, GLUE_ROWS, GLUE_TASKS, SQUAD_ROWS, TABLE_5


def test_all_rows_are_present_and_averages_match_the_tasks():
    assert len(GLUE_ROWS) == 12 + 2 and len(SQUAD_ROWS) == 6 and set(SQUAD_ROWS) < set(GLUE_ROWS)
    for name, row in GLUE_ROWS.items():
        assert tuple(row) == (*GLUE_TASKS, AVERAGE)
        # the numbers of the tasks and the average are rounded by up to 0.05
        assert abs(fmean(row[task] for task in GLUE_TASKS) - row[AVERAGE]) <= 0.1, name


# the gains that the text of the paper names
@pytest.mark.parametrize(
    ("rows", "metric", "gains"),
    [
        (GLUE_ROWS, AVERAGE, {"small HC": 1.0, "small SR": 1.5, "small HC, embedding": 0.2, "small SR, sentence": 1.2}),
        (SQUAD_ROWS, "EM", {"small HC": 1.9, "small SR": 0.2, "base HC": 0.6, "base SR": 0.5}),
        (SQUAD_ROWS, "F1", {"small HC": 1.7, "small SR": 0.3, "base HC": 0.5, "base SR": 0.4}),
    ],
)
def test_gains_over_the_baseline_match_the_paper(rows, metric, gains):
    for name, gain in gains.items():
        baseline = f"ELECTRA-{name.split()[0]}"
        assert rows[f"ELECTRA-{name}"][metric] - rows[baseline][metric] == pytest.approx(gain)


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
