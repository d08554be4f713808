"""Reports of version 0.2.0 give the rows that this version reads from its own."""

import json

import pytest
from preprocessed import refused

from tn_fairseq.tools.study import figures
from tn_fairseq.tools.study.earlier_reports import read_any_report
from tn_fairseq.tools.study.plan import Run, Start

ATTACK = {"attack": "swap", "data": "SQuAD", "checkpoint": "a.seed3", "seeds": 1, "score": "EM"}
WORDS = {"checkpoint": "a", "updates": 5, "seeds": 3, "data": "pairs", "measure": "Spearman", "part": "", "items": 9}
WORDS |= {"baseline": "plain", "value": 0.5, "low": 0.4, "high": 0.6, "seed_sd": 0.1, "difference": 0.2}
WORDS |= {"difference_low": 0.1, "difference_high": 0.3, "difference_p": 0.01}


def write(folder, name, content) -> None:
    folder.mkdir(parents=True)
    (folder / name).write_text(json.dumps(content))
    (folder / "command.txt").touch()


def test_scores_of_fine_tuning_and_attacks(tmp_path):
    def run(task, seed, **valid):
        return {"checkpoint": "a.seed3", "task": task, "seed": seed, "updates": 9, "valid": valid}

    glue = [run("RTE", 1, accuracy=50.0), run("RTE", 2, accuracy=60.0), run("MRPC", 1, accuracy=20.0, f1=90.0)]
    write(tmp_path / "measures/s/glue/a/seed3", "glue.json", glue)
    write(tmp_path / "measures/s/squad/a/seed3", "squad.json", [run("SQuAD", 1, EM=70.0, F1=80.0)])
    scores = {"scores": [ATTACK | {"original": 70.0, "attacked": 40.0, "drop": 30.0}], "attacks": []}
    write(tmp_path / "measures/s/robustness/a/seed3", "robustness.json", scores)
    found = figures.fine_tuned(tmp_path, Run("s", "a", 3))
    assert {key[1]: value for key, value in found} == {
        "RTE": 55,
        "MRPC": 20,
        "average": 37.5,
        "SQuAD EM": 70,
        "SQuAD F1": 80,
        "SQuAD EM under swap": 40,
        "SQuAD EM under swap, drop": 30,
    }
    assert {key[1]: key[3] for key, _ in found if "under" in key[1]} == {
        "SQuAD EM under swap": 1,
        "SQuAD EM under swap, drop": -1,
    }


def test_words(tmp_path):
    write(tmp_path / "measures/s/lexical", "lexical.json", {"checkpoints": [WORDS], "synonym_tables": []})
    (row,) = figures.lexical_rows("s", Start(), tmp_path)
    assert (row["measure"], row["arm"]) == ("pairs: similarity of words (Spearman)", "a")
    assert [row[key] for key in ("value", "difference", "low", "high", "p")] == [0.5, 0.2, 0.1, 0.3, 0.01]


@pytest.mark.parametrize("content", ["{}", "[1]", '{"scores": [{}]}', '{"checkpoints": 1}', '{"comparisons": 1}'])
def test_other_files(tmp_path, content):
    (tmp_path / "glue.json").write_text(content)
    message = refused(read_any_report, tmp_path / "glue.json", "measure again")
    assert message.startswith(f"{tmp_path / 'glue.json'}: not a report") and message.endswith("; measure again")
