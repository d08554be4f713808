"""Attacked data: how it is paired with the original, and one-line errors."""

from files import refused
from fine_tuned import write_squad

from tn_fairseq.tools.evaluation.robustness.attacks import Example, read_attacks
from tn_fairseq.tools.formats.squad import SquadExample, read_squad

ORIGINAL = [
    SquadExample("a", "who ?", "tom runs", (("tom", 0), ("runs", 4))),
    SquadExample("b", "what ?", "tom runs", (("runs", 4),)),
]


def refusal(original, *attacked) -> str:
    return refused(read_attacks, original, attacked)


def test_attacked_questions_are_paired_by_id(tmp_path):
    original = write_squad(tmp_path / "dev.json", ORIGINAL)
    attacked = SquadExample("b", "what ?", "tom sprints", (("sprints", 4),))
    path = write_squad(tmp_path / "swap.json", [attacked], attack={"share": 0.5})
    (found,) = read_attacks(original, [path])
    assert (found.name, found.total) == ("swap", 2)
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
