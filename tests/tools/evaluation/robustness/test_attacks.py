"""Attacked data: how it is paired with the original, and one-line errors."""

import json

import pytest
from files import refused
from fine_tuned import attack_glue, write_glue, write_squad

from tn_fairseq.tools.evaluation.robustness.attacks import Example, read_attacks
from tn_fairseq.tools.formats.squad import SquadExample, read_squad

ORIGINAL = [
    SquadExample("a", "who ?", "tom runs", (("tom", 0), ("runs", 4))),
    SquadExample("b", "what ?", "tom runs", (("runs", 4),)),
]
ROWS = {"SST-2/dev.tsv": [["a fine film", "1"], ["a bad film", "0"], ["an old film", "0"]]}


def refusal(original, *attacked) -> str:
    return refused(read_attacks, original, attacked)


def test_attacked_questions_are_paired_by_id(tmp_path):
    original = write_squad(tmp_path / "dev.json", ORIGINAL)
    attacked = SquadExample("b", "what ?", "tom sprints", (("sprints", 4),))
    path = write_squad(tmp_path / "swap.json", [attacked], attack={"share": 0.5})
    (found,) = read_attacks(original, [path])
    assert (found.name, found.task, found.data, found.total) == ("swap", "SQuAD", "SQuAD", 2)
    assert found.originals == [Example(("what ?", "tom runs"), ("runs",))]
    assert found.attacked == [Example(("what ?", "tom sprints"), ("sprints",))]
    assert found.settings == {"share": 0.5}


def test_attacked_files_that_cannot_be_scored(tmp_path):
    original = write_squad(tmp_path / "dev.json", ORIGINAL)
    other = write_squad(tmp_path / "other.json", [SquadExample("c", "?", "tom", (("tom", 0),))])
    message = f"{other}: question 'c' is not in {original}; give what was attacked as --original"
    assert refusal(original, other) == message
    unlabeled = write_squad(tmp_path / "unlabeled.json", [SquadExample("a", "?", "tom", ())])
    assert "question a has no answers to compare with" in refusal(original, unlabeled)
    (tmp_path / "list.json").write_text("[]")
    assert "list.json: data: must be a list" in refusal(original, tmp_path / "list.json")
    assert "nowhere.json: No such file" in refusal(tmp_path / "nowhere.json", original)
    (tmp_path / "again").mkdir()
    again = write_squad(tmp_path / "again" / "other.json", read_squad(other))
    assert "--attacked: two are named other; rename one" in refusal(original, other, again)
    # without the original, it can only be AdvGLUE's file
    assert "its keys must be among sst2" in refusal(None, original) and "for SQuAD, give" in refusal(None, original)


def test_changed_rows_are_paired_by_number(tmp_path):
    original = write_glue(tmp_path / "glue", ROWS)
    folder = attack_glue(tmp_path / "swapped-0.1", ROWS, {"SST-2/dev.tsv": [2, 0]})
    (found,) = read_attacks(original, [folder])
    assert (found.name, found.task, found.data, found.total) == ("swapped-0.1", "SST-2", "SST-2", 3)
    assert found.originals == [Example(("an old film",), ("0",)), Example(("a fine film",), ("1",))]
    assert found.attacked == [Example(("an old film noun7",), ("0",)), Example(("a fine film noun7",), ("1",))]
    assert found.settings == {"seed": 3}
    assert "give what was attacked as --original" in refusal(None, folder)


@pytest.mark.parametrize(
    "description, rows, message",
    [
        ({}, ROWS, '"changed"; attack again'),
        ({"changed": {"SST-2/dev.tsv": []}}, ROWS, '"changed"; attack again'),
        ({"changed": {"STS-B/dev.tsv": [0]}}, ROWS, "'STS-B/dev.tsv' is not a dev file of a task with classes"),
        ({"changed": {"SST-2/train.tsv": [0]}}, ROWS, "'SST-2/train.tsv' is not a dev file"),
        *(
            ({"changed": {"SST-2/dev.tsv": rows}}, ROWS, "SST-2/dev.tsv must be different numbers from 0 to 2")
            for rows in ([3], [1, 1], "01", [[0]], [1.0])
        ),
        *(
            ({"changed": {"SST-2/dev.tsv": [0]}}, {"SST-2/dev.tsv": rows}, message)
            for rows, message in [
                ([["a fine film", "1"]], "1 rows, but"),
                ([["x", "1"], ["a good film", "0"], ["an old film", "0"]], "row 1 (from 0) is not that of"),
                ([["x", "0"], ["a bad film", "0"], ["an old film", "0"]], "row 0 (from 0) is not that of"),
            ]
        ),
    ],
)
def test_attacked_folders_that_do_not_match(tmp_path, description, rows, message):
    original, folder = write_glue(tmp_path / "glue", ROWS), write_glue(tmp_path / "swapped", rows)
    (folder / "attack.json").write_text(json.dumps(description))
    assert message in refusal(original, folder)


def test_a_folder_that_is_not_attacked(tmp_path):
    folder = write_glue(tmp_path / "glue", ROWS)
    assert "attack.json: No such file" in refusal(folder, folder)


def test_the_numbers_of_advglue_are_those_of_the_hub(tmp_path):
    pair = {"premise": "a", "hypothesis": "b"}
    content = {
        "sst2": [{"sentence": "a", "label": 1}],
        "mnli": [{**pair, "label": 0}, {**pair, "label": 1}],
        "mnli-mm": [{**pair, "label": 2}],
        "qnli": [{"question": "a", "sentence": "b", "label": 1}],
        "qqp": [{"question1": "a", "question2": "b", "label": 0}],
        "rte": [{"sentence1": "a", "sentence2": "b", "label": 0, "idx": 7}],
    }
    (tmp_path / "dev.json").write_text(json.dumps(content))
    found = read_attacks(None, [tmp_path / "dev.json"])
    assert {attack.data: [one.golds for one in attack.attacked] for attack in found} == {
        "SST-2": [("1",)],
        "MNLI": [("entailment",), ("neutral",)],
        "MNLI mismatched": [("contradiction",)],
        "QNLI": [("not_entailment",)],
        "QQP": [("0",)],
        "RTE": [("entailment",)],
    }
    assert [one.attacked[0].texts for one in found] == [("a",), *[("a", "b")] * 5]
    assert all(attack.originals is None and attack.name == "dev" for attack in found)


@pytest.mark.parametrize(
    "content, message",
    [
        ({}, "its keys must be among sst2, qqp, mnli, mnli-mm, qnli, rte"),
        ({"sst2": [], "cola": []}, "its keys must be among"),
        ([], "a JSON array, not an object"),
        ({"sst2": []}, "sst2: must be a list of examples"),
        ({"rte": [{"sentence1": "a", "label": 0}]}, "rte[0]: must have the texts sentence1, sentence2"),
        ({"rte": ["a"]}, "rte[0]: must have the texts"),
        ({"sst2": [{"sentence": "a", "label": 2}]}, "sst2[0].label: must be a number from 0 to 1, not 2; correct it"),
        ({"mnli": [{"premise": "a", "hypothesis": "b", "label": "neutral"}]}, "from 0 to 2, not 'neutral'"),
        ({"sst2": [{"sentence": "a", "label": True}]}, "not True"),
        ({"sst2": [{"sentence": "a"}]}, "not None"),
    ],
)
def test_files_that_are_not_advglues(tmp_path, content, message):
    (tmp_path / "dev.json").write_text(json.dumps(content))
    assert message in refusal(None, tmp_path / "dev.json")
